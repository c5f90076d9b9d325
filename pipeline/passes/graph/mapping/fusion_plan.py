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

import sys
from collections.abc import Iterator, Sequence

from .plan_account import Cost, Plan, evaluate_plan
from .value_sets import Values, value_sets

#: states kept after each value
WIDTH = 96
#: states kept by the search for a limit
NARROW = 8


#: decisions up to a value: peak, workspace and time so far, and the values that exist, as a linked list
_Partial = tuple[int, int, float, "tuple | None"]
#: by pending values: the decisions to compare
_States = dict[int, list[_Partial]]
#: time, workspace, and the operands whose memory the result may take, as bits; None for a group that is not legal
_Cost = tuple[float, int, int]


class PlanSearch:
    """Search the best plan of a graph by the costs of its groups.

    Sets of values are the bits of integers. By peak, a narrow search finds a limit first: no partial plan beyond it is
    kept. Those are the last of all, so the wide search finds the same plan without them.
    """

    def __init__(self, values: Values, cost: Cost, *, by_peak: bool, width: int = WIDTH):
        self.values, self.by_peak = values, by_peak
        self.sets = value_sets(values)
        self._known: dict[int, _Cost | None] = {}
        self._given = cost
        #: by pending values: the time of the groups that no pending value reads
        self._owed: dict[int, float] = {}
        self._widths = ([NARROW] if by_peak and width > NARROW else []) + [width]

    def best(self, others: Sequence[frozenset[int]] = ()) -> Plan:
        """Return the existing values of least (ram, time), or of least (time, ram) unless by peak.

        A group is legal if its cost, and that of every value in it, is known. The plan is no worse than that in which
        everything exists, and than those of `others` that are legal.
        """
        everything = frozenset(self.sets.computed)
        found = [plan for exist in (everything, *others) if (plan := evaluate_plan(self.values, self._given, exist))]
        for width in self._widths:
            limit = min((plan.peak + plan.workspace for plan in found if self.by_peak), default=sys.maxsize)
            found = [*self._search(width, limit), *found]
        return min(found, key=lambda plan: plan.order(self.by_peak))

    def _cost(self, group: int) -> _Cost | None:
        if group not in self._known:
            found = self._given(self.sets.members(group))
            in_place = 0 if found is None else sum(1 << each for each in found.in_place)
            self._known[group] = None if found is None else (found.time, found.workspace, in_place)
        return self._known[group]

    def _search(self, width: int, limit: int) -> list[Plan]:
        """Return the best plan within a limit of peak and workspace, or none."""
        states: _States = {0: [(0, 0, 0.0, None)]}
        proved = True
        for value in self.sets.computed:
            states = self._decide(states, value, limit)
            if len(states) > width:
                states, proved = self._narrow(states, width), False
        best = min((each for found in states.values() for each in found), key=self._order, default=None)
        if best is None:
            return []
        peak, workspace, time, exist = best
        return [Plan(frozenset(_unlinked(exist)), time, peak, workspace, proved)]

    def _order(self, partial: _Partial) -> tuple[float, float]:
        peak, workspace, time, _ = partial
        return (peak + workspace, time) if self.by_peak else (time, peak + workspace)

    def _decide(self, states: _States, value: int, limit: int) -> _States:
        following: _States = {}
        keep = _keep_balanced if self.by_peak else _keep_fastest
        choices, known, nbytes = self.sets.choice, self._known, self.values.nbytes[value]
        for pending, found in states.items():
            group, left, held, freed, undone = choices(value, pending)
            cost = known[group] if group in known else self._cost(group)
            if cost is None:
                continue
            spent, scratch, in_place = cost
            step = held if freed & in_place else held + nbytes
            most = limit if left else sys.maxsize
            if step + scratch <= most:
                rest = following.get(left) or following.setdefault(left, [])
                for peak, workspace, time, exist in found:
                    peak, workspace = peak if peak > step else step, workspace if workspace > scratch else scratch
                    if peak + workspace > most:
                        continue
                    made = peak, workspace, time + spent, (value, exist)
                    if rest:
                        keep(rest, made)
                    else:
                        rest.append(made)
            if undone is not None:
                kept = found if pending else [each for each in found if each[0] + each[1] <= limit]
                more = following.get(undone)
                if more:
                    for each in kept:
                        keep(more, each)
                else:
                    following[undone] = kept.copy()
        return {pending: found for pending, found in following.items() if found}

    def _narrow(self, states: _States, width: int) -> _States:
        def promise(state: tuple[int, list[_Partial]]) -> tuple:
            pending, found = state
            ram, time = min((peak + workspace if self.by_peak else 0, time) for peak, workspace, time, _ in found)
            if pending not in self._owed:
                self._owed[pending] = sum(cost[0] for group in self.sets.ends(pending) if (cost := self._cost(group)))
            return ram, time + self._owed[pending], pending

        kept = sorted(states.items(), key=promise)[:width]
        if all(pending for pending, _ in kept) and 0 in states:
            kept[-1] = 0, states[0]  # from which every value can still be made
        return dict(kept)


def _keep_balanced(front: list[_Partial], made: _Partial) -> None:
    """Add a partial plan to the front of peak, workspace and time, unless one there is as good."""
    peak, workspace, time, _ = made
    beaten = False
    for other_peak, other_workspace, other_time, _ in front:
        if other_peak <= peak and other_workspace <= workspace and other_time <= time:
            return
        beaten = beaten or (other_peak >= peak and other_workspace >= workspace and other_time >= time)
    if beaten:
        front[:] = [each for each in front if each[0] < peak or each[1] < workspace or each[2] < time]
    front.append(made)


def _keep_fastest(front: list[_Partial], made: _Partial) -> None:
    """Add a partial plan to the front of peak and workspace at the least time."""
    if front and made[2] < front[0][2]:
        front.clear()
    if not front or made[2] == front[0][2]:
        _keep_balanced(front, made)


def _unlinked(linked: tuple | None) -> Iterator[int]:
    while linked is not None:
        value, linked = linked
        yield value
