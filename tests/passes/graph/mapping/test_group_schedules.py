"""Groups of a plan are scheduled by the kernel they become, once for all groups alike."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tvm


def _planned(steps: tuple[str, ...]):
    from ...test_stored_plan import _called

    module, called = _called(steps=steps)
    return module, called, frozenset(called.bindings)


@pytest.mark.parametrize(
    "steps", [("conv", "relu"), ("own softmax", "conv", "relu"), ("conv", "transpose", "own softmax")]
)
def test_the_kernel_of_a_group_is_the_one_it_becomes_in_its_module(steps: tuple[str, ...]) -> None:
    import tvm_ffi
    from tvm import relax
    from tvm.ir import GenericConst

    from passfit.passes.graph.mapping.group_schedules import _fuse
    from passfit.passes.graph.mapping.kernel_calls import write_groups

    module, called, group = _planned(steps)
    kernel, constants = _fuse(module, called, group)
    whole = relax.transform.FuseTIR()(write_groups(module, called, frozenset({max(group)})))
    (call,) = [binding.value for block in whole["main"].body.blocks for binding in block.bindings]
    assert tvm_ffi.structural_equal(
        kernel.without_attr("global_symbol"), whole[call.args[0]].without_attr("global_symbol")
    )
    assert constants == {n for n, each in enumerate(call.args[1].fields) if isinstance(each, GenericConst)}


def test_a_group_is_scheduled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from passfit.passes.graph.mapping import group_schedules
    from passfit.support.result_store import ResultStore

    store = ResultStore(None)
    monkeypatch.setattr(group_schedules, "shared_store", lambda: store)
    found = group_schedules.group_schedule(*_planned(("conv", "relu")))
    monkeypatch.setattr(group_schedules, "_fuse", None)  # a second one is not made
    assert group_schedules.group_schedule(*_planned(("conv", "relu"))) == found
    with pytest.raises(TypeError):
        group_schedules.group_schedule(*_planned(("conv", "own softmax")))
