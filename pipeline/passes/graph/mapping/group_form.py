"""Number the form of a group: groups of one form have one model, in whichever layer or graph they stand.

values      12: matmul(3, 7)   13: add(12, 4)         reads of a group {12, 13}
form        matmul(-1, -2)     add(0, -3)             members by their place, others by their first appearance
"""

from __future__ import annotations

from .fused_blocks import KernelCalls

#: numbers of all calls met, identified by their kernel and the bytes of their result and operands
_CALLS: dict[object, int] = {}


def group_form(calls: KernelCalls, group: frozenset[int]) -> tuple[tuple[int, ...], list[int]]:
    """Return the form of a group of kernels, and the values it reads from outside, by number."""
    places = {value: place for place, value in enumerate(sorted(group))}
    outside: dict[int, int] = {}
    form: list[int] = []
    for value in places:
        form.append(_number(calls, value))
        for read in calls.reads[value] or ():
            place = places.get(read)
            form.append(-1 - outside.setdefault(read, len(outside)) if place is None else place)
    return tuple(form), list(outside)


def _number(calls: KernelCalls, value: int) -> int:
    """Return the number of a call: equal for calls that differ in the place of their operands only."""
    known = calls.numbers.get(value)
    if known is None:
        reads = calls.reads[value] or ()
        operands = tuple((calls.nbytes[each], calls.itemsize(each)) for each in reads)
        kind = calls.kernels[value], calls.nbytes[value], operands
        known = calls.numbers[value] = _CALLS.setdefault(kind, len(_CALLS))
    return known
