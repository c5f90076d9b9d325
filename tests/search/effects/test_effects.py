"""Effects on graphs small enough to know them."""

import pytest

pytest.importorskip("tvm")

from tvm import relax
from tvm.error import InternalError
from tvm.ir import IRModule

from passfit.errors import ModelError
from passfit.passes.sequence.catalogue import CATALOGUE, parse_spec
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.search.effects.effects import FIELDS, effects
from passfit.search.effects.relation import RELATIONS
from passfit.search.evaluate.evaluation import Evaluator
from passfit.targets import get_target

from ...kernels.programs import module_of
from ...passes.graphs import EXAMPLES

pytestmark = pytest.mark.tvm
TARGET = get_target("x86-64")
op = relax.op


def twice() -> IRModule:
    """exp(x) · exp(x), computed twice: what is equal must be found before it can be dropped."""
    return EXAMPLES["eliminate-common-subexpr"].module()


def products() -> IRModule:
    """Two products with the same left-hand side and transposed right-hand sides."""
    return module_of(
        ((8, 16), (16, 16), (16, 16)),
        lambda x, v, w: op.nn.relu(op.add(op.matmul(x, op.permute_dims(v)), op.matmul(x, op.permute_dims(w)))),
    )


def ports(module: IRModule) -> tuple[list[str], list[str]]:
    return [f"x{number}" for number in range(len(module["main"].params))], ["y"]


def profiled(module: IRModule) -> dict:
    return effects(module, TARGET, *ports(module))


@pytest.mark.parametrize("graph", [twice, products])
def test_workers_and_a_clock_change_nothing(graph) -> None:
    from passfit.search.evaluate.workers import InProcess

    module, clock = graph(), {}
    alone = effects(module, TARGET, *ports(module), workers=InProcess, clock=clock)
    assert profiled(module) == alone
    assert set(clock) == {each["spec"] for each in alone["passes"]} and all(clock.values())


def by_spec(found: dict) -> dict[str, dict]:
    return {each["spec"]: each for each in found["passes"]}


def test_finding_equal_values_enables_dropping_them():
    found = profiled(twice())
    first, second = "eliminate-common-subexpr", "dead-code-elimination"
    passes = by_spec(found)
    assert passes[first]["changed"] and not passes[second]["changed"]
    assert second in passes[first]["enables"] and passes[second]["enables"] == []
    (pair,) = (each for each in found["pairs"] if (each["first"], each["second"]) == (first, second))
    assert (pair["effect"], pair["changed"], pair["alone"]) == ("enables", True, {"ram": 0, "sum": 0})


def test_two_passes_that_want_the_same_operators_disable_each_other():
    passes = by_spec(profiled(EXAMPLES["fold-batchnorm-to-conv2d"].module()))
    one, other = "fold-batchnorm-to-conv2d", "decompose-ops-for-inference"
    assert passes[one]["changed"] and passes[other]["changed"]
    assert other in passes[one]["disables"] and one in passes[other]["disables"]


@pytest.mark.parametrize("graph", [twice, products])
def test_every_number_is_a_difference_of_two_footprints(graph):
    module = graph()
    found, fresh = profiled(module), Evaluator(module, "again", TARGET, *ports(module))

    def footprint(*specs):
        known = fresh.evaluate([parse_spec(each) for spec in specs for each in spec.split("; ")]).footprint
        return [getattr(known, field) for field in FIELDS]

    def difference(new, old):
        return dict(zip(FIELDS, (a - b for a, b in zip(new, old, strict=True)), strict=True))

    down = "; ".join(TVM_DEFAULT)
    for each in found["passes"]:
        tail = () if "; " in each["spec"] else (down,)
        assert each["delta"] == difference(footprint(each["spec"], *tail), footprint(down)), each
    for pair in found["pairs"]:
        tail = () if "; " in pair["second"] else (down,)
        after = footprint(pair["first"], pair["second"], *tail)
        assert pair["delta"] == difference(after, footprint(pair["first"], down)), pair


@pytest.mark.parametrize("graph", [twice, products])
def test_pairs_and_passes_tell_the_same(graph):
    found = profiled(graph())
    passes = by_spec(found)
    for name, each in passes.items():
        for kind in RELATIONS:
            assert each[kind] == [p["second"] for p in found["pairs"] if (p["first"], p["effect"]) == (name, kind)]
    for pair in found["pairs"]:
        alone = passes[pair["second"]]
        assert passes[pair["first"]]["changed"] and pair["first"] != pair["second"]
        assert pair["changed"] or alone["changed"], "nothing changed: it need not be listed"
        assert pair["alone"] == {field: alone["delta"][field] for field in ("ram", "sum")}


def test_equal_states_are_evaluated_once():
    found = profiled(products())["tried"]
    assert found["passes"] < found["pairs"] and found["states"] <= found["pairs"]


def test_a_pass_that_fails_changes_nothing_and_is_listed(monkeypatch):
    def broken(self, module):
        raise InternalError("boom")

    monkeypatch.setenv("PASSFIT_STORE", "off")
    monkeypatch.setattr(CATALOGUE["fuse-transpose-matmul"], "apply", broken)
    found = profiled(products())
    failed = by_spec(found)["fuse-transpose-matmul"]
    assert failed["failed"] == "InternalError: boom" and not failed["changed"] and not any(failed["delta"].values())
    assert not any("fuse-transpose-matmul" in (pair["first"], pair["second"]) for pair in found["pairs"])


def test_a_pass_that_fails_only_after_another_is_disabled_by_it(monkeypatch):
    kind = CATALOGUE["fuse-transpose-matmul"]
    works = kind.apply
    module = products()

    def fussy(self, given):
        if given is not module:
            raise InternalError("boom")
        return works(self, given)

    monkeypatch.setenv("PASSFIT_STORE", "off")
    monkeypatch.setattr(kind, "apply", fussy)
    found = profiled(module)
    pair = next(each for each in found["pairs"] if each["second"] == "fuse-transpose-matmul")
    assert (pair["failed"], pair["effect"], pair["changed"]) == ("InternalError: boom", "disables", False)


def test_a_model_tvms_default_cannot_compile_is_refused(monkeypatch):
    def broken(self, module):
        raise InternalError("no such operator")

    monkeypatch.setenv("PASSFIT_STORE", "off")
    monkeypatch.setattr(CATALOGUE["legalize"], "apply", broken)
    with pytest.raises(ModelError, match="no such operator"):
        profiled(twice())
