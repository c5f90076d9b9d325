"""Compare each pass in TVM, and all passes in the C library, with ONNX Runtime."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from passfit.passes.base import Level, Pass
from passfit.passes.sequence.catalogue import CATALOGUE, parse_spec

from ..models import run as run_onnx
from ..models import save
from .models import MODELS

pytestmark = pytest.mark.tvm

_TOLERANCE, _LOSSY_TOLERANCE = 1e-4, 2e-2
GRAPH_PASSES = sorted(name for name, kind in CATALOGUE.items() if kind.levels == {Level.GRAPH} and name != "legalize")
TAILS = (
    ("legalize",),
    ("legalize", "fuse-operators"),
    ("legalize", "fold-constant{grow=0}"),
    ("legalize", "fold-constant", "fuse-operators"),
    ("legalize", "fold-constant", "fuse-operators{depth=2}"),
    ("legalize", "fold-constant", "fuse-operators{over=pooling}"),
    ("legalize", "fold-constant", "fuse-operators{over=reduction}"),
    ("legalize", "fuse-operators{over=reduction}", "fold-constant", "fuse-operators"),
    ("legalize", "fold-constant", "fuse-by-mapping"),
    ("legalize", "fold-constant", "fuse-by-mapping{objective=latency}"),
    ("legalize", "fold-constant", "fuse-by-mapping{objective=latency,redo=0}"),
)
ARRANGED = (("share",), ("share{copies=0}", "order"), ("order{by=greedy}", "share{in_place=0}", "order"))
#: what the graph passes do to the models: every pair not named here changes nothing
FIRES = {
    "conv_pool": {
        "canonicalize-bindings", "dead-code-elimination", "decompose-ops-for-inference", "fold-batch-norm",
        "fold-batchnorm-to-conv2d", "fuse-transpose-matmul", "simplify", "simplify-expressions", "to-mixed-precision",
    },
    "residual": {
        "dead-code-elimination", "decompose-ops-for-inference", "fold-batch-norm", "fold-batchnorm-to-conv2d", "simplify",
    },
    "attention": {
        "adjust-matmul-order", "canonicalize-bindings", "fast-math",
        "fuse-transpose-matmul", "to-mixed-precision",
    },
    "concat_slice": {"to-mixed-precision"},
    "mlp": {"canonicalize-bindings", "fast-math", "fold-scale-axis", "simplify", "to-mixed-precision"},
}  # fmt: skip
#: TVM's own errors: ToMixedPrecision does not know a mean over axes given as a tuple of int64
FAILS = {("residual", "to-mixed-precision"): "Expected TensorType, but got T.int64"}
ORDERS = (
    "order{by=given}",
    "order{by=depth-first}",
    "order{by=on-demand}",
    "order{by=greedy}",
    "order",
    "order{by=best}",
)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory):
    """A function that imports a model of MODELS: the canonical ONNX and the graph."""
    from passfit.frontend.canonicalise import import_model
    from passfit.frontend.relax.to_relax import to_relax

    folder, known = tmp_path_factory.mktemp("models"), {}

    def load(name: str):
        if name not in known:
            model = import_model(save(MODELS[name](), folder))
            known[name] = model, to_relax(model)
        return known[name]

    return load


def _agrees(imported, name: str, specs: tuple[str, ...]) -> None:
    """Replays the passes, one after the other by themselves, and runs what comes out."""
    from passfit.passes.sequence.replay import replay
    from passfit.passes.sequence.sequence import Sequence

    from ..kernels.programs import run

    model, graph = imported(name)
    lowered, _ = replay(Sequence.parse(specs), graph, model, name)
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    for got, expected in zip(run(lowered, [x]), run_onnx(model, {"x": x}), strict=True):
        assert got.shape == expected.shape
        tolerance = _LOSSY_TOLERANCE if Sequence.parse(specs).lossy else _TOLERANCE
        assert np.abs(got - expected).max() <= tolerance * np.ptp(expected), specs


def _ways() -> list:
    """Pair each tail with two of the models by default, and with all of them at night."""
    return [
        pytest.param(
            name, tail, id=f"{' '.join(tail)}-{name}", marks=[] if (at - row) % len(MODELS) < 2 else pytest.mark.nightly
        )
        for row, tail in enumerate(TAILS)
        for at, name in enumerate(MODELS)
    ]


@pytest.mark.parametrize(("name", "tail"), _ways())
def test_every_way_down_keeps_the_results(imported, name: str, tail: tuple[str, ...]):
    _agrees(imported, name, tail)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("spec", GRAPH_PASSES)
def test_every_graph_pass_keeps_the_results(imported, name: str, spec: str):
    from passfit.passes.sequence.failures import failure_of

    graph = imported(name)[1]
    if (name, spec) in FAILS:
        with pytest.raises(Exception, match=re.escape(FAILS[name, spec])) as caught:
            parse_spec(spec).apply(graph)
        assert failure_of(caught.value) is not None
        return
    after = parse_spec(spec).apply(graph)
    fires = after.script() != graph.script()
    assert fires == (spec in FIRES[name]), f"{spec} {'changes' if fires else 'does not change'} {name}"
    if fires:
        _agrees(imported, name, (spec, *TAILS[3]))


def test_the_lists_name_passes_and_models_that_exist():
    assert set(FIRES) == set(MODELS)
    assert set().union(*FIRES.values()) | {spec for _, spec in FAILS} <= set(GRAPH_PASSES)
    assert not {(name, spec) for name, specs in FIRES.items() for spec in specs} & set(FAILS)


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_keeps_the_results(imported, order: str):
    _agrees(imported, "residual", (*TAILS[3], order))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("passes", ARRANGED, ids=" ".join)
def test_sharing_memory_keeps_the_results(imported, name: str, passes: tuple[str, ...]):
    _agrees(imported, name, (*TAILS[3], *passes))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly if name == "residual" else ()) for name in MODELS]
)
def test_all_passes_together_give_a_library_that_agrees(imported, name: str, tmp_path: Path):
    """One library a model, of all exact graph passes it takes, twice, and a tail of its own."""
    from passfit import api
    from passfit.targets import get_target

    tail = TAILS[3 + list(MODELS).index(name)]
    exact = [parse_spec(spec) for spec in GRAPH_PASSES if not CATALOGUE[spec].lossy]
    chain = _taken(imported(name)[1], [*exact, *reversed(exact)])
    sequence = tmp_path / "sequence.json"
    sequence.write_text(json.dumps({"passes": [*(each.spec for each in chain), *tail, "share", "order"]}))
    model = save(MODELS[name](), tmp_path, f"{name}.onnx")
    report = api.compile_model(model, get_target("x86-64"), out=tmp_path / "out", sequence=sequence)
    assert len(chain) >= len(exact)
    if report.measured.ran:
        assert report.measured.max_rel_error <= _TOLERANCE


def _taken(graph, passes: list[Pass]) -> list[Pass]:
    """Those of `passes` that do not fail, each on what the ones before made."""
    from passfit.passes.sequence.failures import failure_of

    taken = []
    for each in passes:
        try:
            graph = each.apply(graph)
        except Exception as error:
            if failure_of(error) is None:
                raise
            continue
        taken.append(each)
    return taken
