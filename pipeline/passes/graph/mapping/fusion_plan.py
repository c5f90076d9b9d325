"""Choose which values of a graph exist in memory, by dynamic programming over its frontier.

    a ─► b ─┬─► c ─► d          exist: b, d           kernels: {a, b}, {c, d}
            └──────► d          exist: d              kernel:  {a, b, c, d}; b and a are computed at each reader

A plan is a set of existing values, outputs among them. The kernel of an existing value computes it from other existing
ones: its group is the value and all that do not exist on the way, repeated in every group that needs them. So groups
form no circle, each has one result, and the plan's cost is the sum of theirs, its peak the largest of their steps.

Values are decided in order. All that later decisions depend on are the values that do not exist and are still to be
read (`pending`); of equal ones the cheaper is kept, or the front of peak, workspace and time. Beyond WIDTH states the worst are
dropped, and the plan is not proved. After IOS (Ding et al., MLSys 2021) and Gao et al. (2025), who search such states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .value_sets import Values as Values
from .value_sets import value_sets

#: states kept after each value
WIDTH = 96


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


def best_plan(values: Values, cost: Cost, *, by_peak: bool, width: int = WIDTH, others: Sequence[frozenset[int]] = ()) -> Plan:
    """Find the existing values of least (ram, time), or of least (time, ram) unless `by_peak`.

    A group is legal if its cost, and that of every value in it, is known. The plan is no worse than that in which
    everything exists, and than those of `others` that are legal.
    """
    search = _Search(values, cost, by_peak, width)
    found = search.run()
    everything = frozenset(each for each, reads in enumerate(values.reads) if reads is not None)
    known = [plan for exist in (everything, *others) if (plan := evaluated(values, cost, exist)) is not None]
    return min((found, *known), key=lambda plan: plan.order(by_peak))


def evaluated(values: Values, cost: Cost, exist: frozenset[int]) -> Plan | None:
    """Compute time and peak of a plan; None if a group is not legal. The plan counts as not proved."""
    groups = {result: group_of(values, exist, result) for result in sorted(exist)}
    last = {each: len(values.reads) if each in values.outputs else -1 for each in range(len(values.reads))}
    for result, group in groups.items():
        for member in group:
            if cost(group_of(values, exist, member)) is None:
                return None
            for each in values.reads[member] or ():
                last[each] = max(last[each], result)
    time, peak, workspace = 0.0, 0, 0
    for result, group in groups.items():
        found = cost(group)
        assert found is not None
        time, workspace = time + found.time, max(workspace, found.workspace)
        live = [each for each in range(result) if last[each] >= result and (each in exist or values.reads[each] is None)]
        saved = any(last[each] == result for each in found.in_place if each in live)
        peak = max(peak, sum(values.nbytes[each] for each in live) + (0 if saved else values.nbytes[result]))
    return Plan(exist, time, peak, workspace, proved=False)


#: decisions up to a value: peak, workspace and time so far, and the values that exist, as a linked list
_Partial = tuple[int, int, float, "tuple | None"]


class _Search:
    """Hold the search of one plan; sets of values are the bits of integers."""

    def __init__(self, values: Values, cost: Cost, by_peak: bool, width: int):
        self.values, self.by_peak, self.width = values, by_peak, width
        self.sets = value_sets(values)
        self.proved = True
        self._cost = lru_cache(None)(lambda group: cost(self.sets.members(group)))

    def run(self) -> Plan:
        states: dict[int, list[_Partial]] = {0: [(0, 0, 0.0, None)]}
        for value in self.sets.computed:
            states = self._narrowed(self._decided(states, value), value)
        best = min((each for found in states.values() for each in found), key=self._order)
        peak, workspace, time, exist = best
        return Plan(frozenset(_unlinked(exist)), time, peak, workspace, self.proved)

    def _order(self, partial: _Partial) -> tuple[float, float]:
        peak, workspace, time, _ = partial
        return (peak + workspace, time) if self.by_peak else (time, peak + workspace)

    def _decided(self, states: dict[int, list[_Partial]], value: int) -> dict[int, list[_Partial]]:
        following: dict[int, list[_Partial]] = {}
        keep = _keep_balanced if self.by_peak else _keep_fastest
        for pending, found in states.items():
            choice = self.sets.choice(value, pending)
            cost = self._cost(choice.group)
            if cost is None:
                continue
            saved = any(choice.freed >> each & 1 for each in cost.in_place)
            step = choice.held + (0 if saved else self.values.nbytes[value])
            rest = following.setdefault(choice.rest, [])
            for peak, workspace, time, exist in found:
                made = max(peak, step), max(workspace, cost.workspace), time + cost.time, (value, exist)
                keep(rest, made)
            if choice.more is not None:
                more = following.setdefault(choice.more, [])
                for each in found:
                    keep(more, each)
        return following

    def _narrowed(self, states: dict[int, list[_Partial]], value: int) -> dict[int, list[_Partial]]:
        if len(states) <= self.width:
            return states
        self.proved = False

        def promise(state: tuple[int, list[_Partial]]) -> tuple:
            pending, found = state
            ram, time = min((peak + workspace if self.by_peak else 0, time) for peak, workspace, time, _ in found)
            owed = sum(cost.time for group in self.sets.ends(pending) if (cost := self._cost(group)))
            return ram, time + owed, pending

        kept = sorted(states.items(), key=promise)[: self.width]
        if all(pending for pending, _ in kept) and 0 in states:
            kept[-1] = 0, states[0]  # from which every value can still be made
        return dict(kept)


def _keep_balanced(front: list[_Partial], made: _Partial) -> None:
    """Add a partial plan to the front of peak, workspace and time, unless one there is as good."""
    peak, workspace, time, _ = made
    for each in front:
        if each[0] <= peak and each[1] <= workspace and each[2] <= time:
            return
    front[:] = [each for each in front if each[0] < peak or each[1] < workspace or each[2] < time]
    front.append(made)


def _keep_fastest(front: list[_Partial], made: _Partial) -> None:
    """Add a partial plan to the front of peak and workspace at the least time, unless one there is as good."""
    if front and made[2] < front[0][2]:
        front.clear()
    if not front or made[2] == front[0][2]:
        _keep_balanced(front, made)


def _unlinked(linked: tuple | None) -> Iterator[int]:
    while linked is not None:
        value, linked = linked
        yield value
