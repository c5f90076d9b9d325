"""Plan the fusion of a module; correct the model by schedules until it stands.

plan ─► groups with an unusual product ─► fused and scheduled ─► slower or larger than modelled? ─► plan again
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate

from tvm.ir import IRModule, Var

from ....kernels.rules.rule import Speed
from ....program.mapping import MappingType
from ..fuse_operators import FuseOperators
from ..fusion_barriers import groups, is_kernel_call
from ..rules.dataflow import bindings_of
from .fusion_plan import PlanSearch
from .group_cost import OPERATION, UNTILED, model_of
from .group_schedules import group_schedule, speed_alone
from .kernel_calls import CalledKernels
from .plan_account import GroupCost, Plan, group_of

#: plans at most; in the last one, no group is taken that was not scheduled, or that runs in plain loops
ROUNDS = 6
#: ratio to the modelled arithmetic from which that of a schedule counts; up to 2.1 for layer norms, which count otherwise
_UNMODELLED = 4
#: share of `UNTILED` an iteration takes longer than by its own rule
_SLOWER = {Speed.LANES: 1 / 24, Speed.LOOPS: 1.0}


@dataclass(frozen=True)
class _Flaw:
    """Needs of a scheduled group beyond the model's, which every group of the same culprits shares.

    No rule takes one of plain `loops`. `redone` counts arithmetic beyond the model's: a loop may compute all between two
    rows to get both.
    """

    workspace: int
    untiled: int
    redone: int = 0
    loops: bool = False


def scheduled_plan(module: IRModule, called: CalledKernels, *, by_peak: bool, redo: float) -> Plan:
    """Find the plan of least peak or time, with at most `redo` of arithmetic again."""
    flaws: dict[frozenset[int], _Flaw] = {}
    sound: set[frozenset[int]] = set()
    seen: set[frozenset[int]] = set()
    alone = (
        model_of(called.calls, frozenset([each]))
        for each in range(len(called.values.reads))
        if called.calls.kernels[each]
    )
    unfused = sum(each.time + OPERATION * each.arithmetic for each in alone if each is not None)
    refused: set[frozenset[int]] = set()
    final = False

    def untiled_of(group: frozenset[int]) -> int:
        model = model_of(called.calls, group)
        own = 0 if model is None else model.untiled
        return max([own, *(flaw.untiled for culprits, flaw in flaws.items() if culprits <= group)])

    def cost(group: frozenset[int]) -> GroupCost | None:
        found = [flaw for culprits, flaw in flaws.items() if culprits <= group]
        model = model_of(called.calls, group)
        redone = 0 if model is None else max([model.redone, *(flaw.redone for flaw in found)])
        if model is None or (len(group) > 1 and redone > redo * (model.arithmetic - model.saved)):
            return None
        if final and group not in sound and _is_unusual(called, group):
            return GroupCost(math.inf, sys.maxsize)  # on the way to a group that stands, no group of its own
        for flaw in found:
            untiled, workspace = max(model.untiled, flaw.untiled), max(model.workspace, flaw.workspace)
            model = replace(model, untiled=untiled, workspace=workspace, redone=redone)
        if len(group) > 1 and (UNTILED * model.untiled > unfused or any(each <= group for each in refused)):
            return None  # its slow loops take longer than all kernels together: no memory is worth that
        return GroupCost(model.time, model.workspace, model.in_place)

    by_rules = existing_by_rules(module, called)
    for turn in range(1, ROUNDS + 1):
        final = turn == ROUNDS
        plan = PlanSearch(called.values, cost, by_peak=by_peak).best([by_rules])
        found = [group_of(called.values, plan.exist, each) for each in sorted(plan.exist)]
        doubtful = [group for group in found if group not in seen and _is_unusual(called, group)]
        seen.update(doubtful)
        new: list[frozenset[int]] = []
        for group in doubtful:
            flaw = _flaw(module, called, group)
            if flaw is None or not flaw.loops:
                sound.add(group)
            if flaw is not None:
                new.append(_culprits(called, group))
                flaws[new[-1]] = flaw
        if not new:
            new = [
                _culprits(called, group)
                for group in _beyond({group: UNTILED * untiled_of(group) for group in found if len(group) > 1}, unfused)
            ]
            refused.update(new)
        if not new:
            break
    return plan


def _beyond(times: Mapping[frozenset[int], float], limit: float) -> list[frozenset[int]]:
    """Return the slowest groups, without which the times of the others stay within a limit."""
    ordered = sorted(times, key=lambda group: (times[group], sorted(group)))
    sums = accumulate(times[group] for group in ordered)
    return [group for group, total in zip(ordered, sums, strict=True) if total > limit]


def existing_by_rules(module: IRModule, called: CalledKernels) -> frozenset[int]:
    """Return the values that exist if TVM's rules fuse: a plan that is never to be beaten by."""
    numbers = {binding.var: number for number, binding in called.bindings.items()}
    return frozenset(numbers[each] for each in _results_by_rules(module) if each in numbers) | called.values.exist


@lru_cache(2)
def _results_by_rules(module: IRModule) -> frozenset[Var]:
    """Return the results of the groups of TVM's rules; a module is planned for several objectives."""
    variables = [binding.var for binding in bindings_of(module["main"]) if is_kernel_call(binding.value)]
    return frozenset(variables[max(members)] for members in groups(module, FuseOperators().group))


def _is_unusual(called: CalledKernels, group: frozenset[int]) -> bool:
    """Return whether rules might not take the group: it has more than one reduction, or a product amid index maps."""
    if len(group) == 1:
        return False
    reducing = _reducing(called, group)
    if len(reducing) != 1:
        return len(reducing) > 1
    (place,) = reducing
    if place != min(group) and any(
        set(called.values.reads[reader] or ()) & group and reader <= place for reader in group
    ):
        return True  # a producer of the product's operand
    return any(
        (kernel := called.calls.kernels[reader]) is not None
        and reader > place
        and kernel.mapping in (MappingType.REORGANISE, MappingType.SHUFFLE)
        for reader in group
    )


def _reducing(called: CalledKernels, group: frozenset[int]) -> frozenset[int]:
    return frozenset(each for each in group if _iterations(called, each))


def _culprits(called: CalledKernels, group: frozenset[int]) -> frozenset[int]:
    """Return the members that keep a group from a fast schedule: its reductions, or the one with what comes before."""
    reducing = _reducing(called, group)
    if len(reducing) != 1:
        return reducing or group
    before = frozenset(each for each in group if each <= max(reducing))
    return before if len(before) > 1 else group


def _flaw(module: IRModule, called: CalledKernels, group: frozenset[int]) -> _Flaw | None:
    model, schedule = model_of(called.calls, group), group_schedule(module, called, group)
    assert model is not None
    if schedule is None:
        return _Flaw(sys.maxsize, 0, loops=True)
    untiled = 0
    if schedule.speed > Speed.FAST:
        slowed = sum(_iterations(called, each) for each in group if speed_alone(module, called, each) < schedule.speed)
        untiled = round(slowed * _SLOWER[schedule.speed])
    redone = (
        schedule.arithmetic - model.arithmetic
        if schedule.arithmetic > _UNMODELLED * (model.arithmetic + model.redone)
        else 0
    )
    if schedule.workspace <= model.workspace and untiled <= model.untiled and not redone:
        return None
    return _Flaw(schedule.workspace, untiled, redone, schedule.speed is Speed.LOOPS)


def _iterations(called: CalledKernels, value: int) -> int:
    kernel = called.calls.kernels[value]
    return sum(block.iterations for block in kernel.blocks if block.reduces) if kernel else 0
