"""Find the equal places of a repeat: layers alike share the same peak, so all of them need it or none does.

    layer 1                layer 2                layer 3
    made ► … ► read late   made ► … ► read late   made ► … ► read late      equal but for their weights
       └──────────┴───────────┴──────────┴───────────┴──────────┴── run again at once: the peak moves

One layer alone would lower nothing, and a search layer by layer pays for the same choice as often as there are layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .partitioner import Partitioner


def equal_offsets(paths: Partitioner, first: int, last: int) -> Iterator[int]:
    """Yield the distances to later runs of steps equal to `first` to `last`.

    No two overlap. Equal steps have kernels that split alike and operands of the same shapes, made and last read as many steps away.
    """
    forms = paths.forms
    wanted = [forms.start(0)]
    for step in range(first, last + 1):
        wanted.append(forms.grown(wanted[-1], first, step))
    start = last + 1
    while start + last - first < paths.count:
        form, length = wanted[0], 0
        while length <= last - first:
            form = forms.grown(form, start, start + length)
            if form != wanted[length + 1]:
                break
            length += 1
        else:
            yield start - first
            start += last - first
        start += 1
