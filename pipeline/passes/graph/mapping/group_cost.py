"""Model a group of kernels as one: bytes moved, arithmetic done again, workspace."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....program.mapping import Fusion, fusion_of
from .fused_blocks import FusedBlocks
from .fused_blocks import KernelCalls as KernelCalls
from .group_form import group_form

#: worth in bytes moved of an operation done again, of an iteration of a reduction in plain loops, of a kernel call
OPERATION, UNTILED, CALL = 0.25, 6.0, 1024.0
#: most kernels in a group
MOST_MEMBERS = 48
#: forms kept, some 50 MB; and by form, the model with the numbers of its operands in place
_MOST_MODELS = 1 << 16
_MODELS: dict[object, tuple[GroupModel, tuple[int, ...]] | None] = {}


@dataclass(frozen=True)
class GroupModel:
    """Modelled needs of a group.

    `moved` and `workspace` are in bytes; `arithmetic` counts operations if nothing is done again, `redone` those that
    are, beyond what each kernel repeats alone, and `saved` those of elements that the group does not need; `untiled` counts iterations of reductions that lose their fast schedule,
    which the schedule of the group tells, not this model.
    """

    moved: int
    arithmetic: int
    redone: int
    untiled: int
    workspace: int
    in_place: frozenset[int]
    calls: int = 1
    saved: int = 0

    @property
    def time(self) -> float:
        return self.moved + OPERATION * self.redone + UNTILED * self.untiled + CALL * self.calls


def model_of(calls: KernelCalls, group: frozenset[int]) -> GroupModel | None:
    """Model a group, its last value the result; None if its kernels may not be fused.

    Models are kept with the calls: plans for ram and latency ask for the same groups.
    """
    if group not in calls.models:
        calls.models[group] = _model_once(calls, group)
    return calls.models[group]


def _model_once(calls: KernelCalls, group: frozenset[int]) -> GroupModel | None:
    """Model each form of a group once: the layers of a network, and the graphs of a search, repeat few forms."""
    if len(group) == 1:
        return _alone(calls, next(iter(group)))
    if len(group) > MOST_MEMBERS or any(calls.kernels[each] is None for each in group):
        return None
    form, outside = group_form(calls, group)
    if form not in _MODELS:
        if len(_MODELS) >= _MOST_MODELS:
            _MODELS.clear()
        found = _model(calls, group)
        numbers = {value: number for number, value in enumerate(outside)}
        _MODELS[form] = None if found is None else (found, tuple(sorted(numbers[each] for each in found.in_place)))
    known = _MODELS[form]
    if known is None:
        return None
    model, in_place = known
    return replace(model, in_place=frozenset(outside[each] for each in in_place)) if in_place else model


def _model(calls: KernelCalls, group: frozenset[int]) -> GroupModel | None:
    fused = FusedBlocks(calls, group)
    alone = [_single(calls, each) for each in sorted(group)]
    redone = fused.operations - sum(each.operations for each in alone)
    for producer, mapping in fused.edges():
        if redone > 0 and fusion_of(producer, mapping) is Fusion.NEVER:
            return None
    return GroupModel(
        fused.moved, sum(each.arithmetic for each in alone), max(redone, 0), 0, fused.workspace, fused.in_place,
        saved=max(-redone, 0),
    )  # fmt: skip


def _alone(calls: KernelCalls, value: int) -> GroupModel:
    kernel, operands = calls.kernels[value], calls.reads[value] or ()
    if kernel is None:
        return GroupModel(sum(calls.nbytes[each] for each in {*operands, value}), 0, 0, 0, 0, frozenset())
    if value in calls.placed:
        return GroupModel(0, 0, 0, 0, 0, frozenset(operands), calls=0)
    single = _single(calls, value)
    return GroupModel(single.moved, single.arithmetic, 0, 0, single.workspace, single.in_place)


def _single(calls: KernelCalls, value: int) -> FusedBlocks:
    """Return the blocks of a value's kernel alone, made once."""
    if value not in calls.alone:
        calls.alone[value] = FusedBlocks(calls, frozenset({value}))
    return calls.alone[value]
