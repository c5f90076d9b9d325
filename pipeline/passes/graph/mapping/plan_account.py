"""Account a plan of fusion: its groups, with the time, the peak and the largest workspace of them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .value_sets import Values


@dataclass(frozen=True)
class GroupCost:
    """Cost of a group as one kernel.

    `time` is in bytes moved or their worth, `workspace` in bytes; its result may take the memory of `in_place` operands.
    """

    time: float
    workspace: int = 0
    in_place: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Plan:
    """Existing values, inputs excluded, with the modelled time, peak and largest workspace; `proved` the best of all.

    Peak and workspace are added: a workspace lies beside the arena, one for all kernels.
    """

    exist: frozenset[int]
    time: float
    peak: int
    workspace: int = 0
    proved: bool = True

    def order(self, by_peak: bool) -> tuple[float, float]:
        """Return the key that the better plan has less of."""
        ram = self.peak + self.workspace
        return (ram, self.time) if by_peak else (self.time, ram)


#: cost of the group of some values, the last one its result; None if it is not legal
Cost = Callable[[frozenset[int]], "GroupCost | None"]


def group_of(values: Values, exist: frozenset[int], result: int) -> frozenset[int]:
    """Collect `result` and all values that do not exist on the way to it."""
    found, left = {result}, [result]
    while left:
        for each in values.reads[left.pop()] or ():
            if values.reads[each] is not None and each not in exist and each not in found:
                found.add(each)
                left.append(each)
    return frozenset(found)


def evaluate_plan(values: Values, cost: Cost, exist: frozenset[int]) -> Plan | None:
    """Compute time and peak of a plan; None if a group is not legal. The plan counts as not proved."""
    groups = {result: group_of(values, exist, result) for result in sorted(exist)}
    last = {each: len(values.reads) if each in values.outputs else -1 for each in range(len(values.reads))}
    for result, group in groups.items():
        for member in group:
            if cost(group_of(values, exist, member)) is None:
                return None
            for each in values.reads[member] or ():
                last[each] = max(last[each], result)
    there = [each in exist or values.reads[each] is None for each in range(len(values.reads))]
    time, peak, workspace, live, first = 0.0, 0, 0, 0, 0
    dying = [0] * (len(last) + 1)
    for result, group in groups.items():
        found = cost(group)
        assert found is not None
        time, workspace = time + found.time, max(workspace, found.workspace)
        for each in range(first, result):
            live -= dying[each]
            if there[each] and last[each] >= result:
                live += values.nbytes[each]
                dying[last[each]] += values.nbytes[each]
        first = result
        saved = any(there[each] and each < result == last[each] for each in found.in_place)
        peak = max(peak, live + (0 if saved else values.nbytes[result]))
    return Plan(exist, time, peak, workspace, proved=False)
