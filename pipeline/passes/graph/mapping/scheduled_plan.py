"""Plan the fusion of a module by the model of its groups."""

from __future__ import annotations

from tvm.ir import IRModule

from .fusion_plan import GroupCost, Plan, best_plan
from .group_cost import model_of
from .kernel_calls import CalledKernels


def scheduled_plan(module: IRModule, called: CalledKernels, *, by_peak: bool, redo: float) -> Plan:
    def cost(group: frozenset[int]) -> GroupCost | None:
        model = model_of(called.calls, group)
        if model is None or model.redone > redo * model.arithmetic:
            return None
        return GroupCost(model.time, model.workspace, model.in_place)

    return best_plan(called.values, cost, by_peak=by_peak)
