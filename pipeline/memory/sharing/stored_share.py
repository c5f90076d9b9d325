"""Keep the merges of `share` in the store, by the form of their program: states, splits and targets share most of them.

"share 1f3a… 1 1 64": [[3], [[7, 2, 1024]], [[2, 4096]], [[7, 5, 0, true]]]     steps dropped; tensors moved, with
                                                                                buffer and offset; bytes; views
"""

from __future__ import annotations

from dataclasses import astuple, replace

from ...program import Program, View
from ...program.form import form_key
from ...support.result_store import shared_store
from ..liveness import ALIGNMENT
from .overlay import drop_empty_buffers
from .share import merge_buffers


def stored_share(program: Program, *, in_place: bool = True, copies: bool = True) -> Program:
    """Return `share` of the program, found once for each form."""

    def compute() -> list[list]:
        return _changes(program, merge_buffers(program, in_place=in_place, copies=copies, alignment=ALIGNMENT))

    key = f"share {form_key(program)} {in_place:d} {copies:d} {ALIGNMENT}"
    return drop_empty_buffers(_apply(program, shared_store().get_or_make(key, compute)))


def _changes(program: Program, merged: Program) -> list[list]:
    """List the differences of a merged program; the steps left keep their order."""
    left = iter(merged.steps)
    following = next(left, None)
    dropped = []
    for number, step in enumerate(program.steps):
        if step is following:
            following = next(left, None)
        else:
            dropped.append(number)
    tensors = enumerate(zip(program.tensors, merged.tensors, strict=True))
    moved = [[number, after.buffer, after.offset] for number, (before, after) in tensors if before is not after]
    buffers = enumerate(zip(program.buffers, merged.buffers, strict=True))
    grown = [[number, after.nbytes] for number, (before, after) in buffers if before is not after]
    return [dropped, moved, grown, [list(astuple(view)) for view in merged.views[len(program.views) :]]]


def _apply(program: Program, changes: list[list]) -> Program:
    dropped, moved, grown, views = changes
    without = frozenset(dropped)
    tensors, buffers = list(program.tensors), list(program.buffers)
    for number, buffer, offset in moved:
        tensors[number] = replace(tensors[number], buffer=buffer, offset=offset)
    for number, nbytes in grown:
        buffers[number] = replace(buffers[number], nbytes=nbytes)
    return replace(
        program,
        steps=tuple(step for number, step in enumerate(program.steps) if number not in without),
        tensors=tuple(tensors),
        buffers=tuple(buffers),
        views=program.views + tuple(View(*each) for each in views),
    )
