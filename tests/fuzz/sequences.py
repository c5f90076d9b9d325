"""Make a drawn sequence concrete: a split at `@fraction+count` becomes steps of the program at hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from passfit.errors import SequenceError

if TYPE_CHECKING:
    import onnx

_PLACE = re.compile(r"@([0-9.]+)\+(\d+)")


def resolved(passes: Sequence[str], model: onnx.ModelProto) -> tuple[str, ...]:
    """Return `passes` for an imported model: each split takes as many steps as fit, or is left out."""
    if not any(_PLACE.search(spec) for spec in passes):
        return tuple(passes)
    from passfit.backend.built import host
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.base import LoweredPass
    from passfit.passes.sequence.replay import lower_by_sequence
    from passfit.passes.sequence.sequence import Sequence as PassSequence

    first = next(
        number
        for number, spec in enumerate(passes)
        if spec.startswith(("order", "split-rows", "split-channels", "share"))
    )
    kept = list(passes[:first])
    lowered = lower_by_sequence(PassSequence.parse(kept), to_relax(model), model, "model", host().machine)
    for spec in passes[first:]:
        for concrete in _candidates(spec, len(lowered.program.steps)):
            added = PassSequence.parse([*kept, concrete]).passes[-1]
            if "split" not in concrete and not concrete.startswith("order"):
                kept.append(concrete)  # applied after scheduling
                break
            assert isinstance(added, LoweredPass)
            try:
                lowered = added.apply(lowered)
            except SequenceError:
                continue
            kept.append(concrete)
            break
    return tuple(kept)


def _candidates(spec: str, steps: int) -> list[str]:
    """List the specs to try for a drawn one, the longest region first."""
    place = _PLACE.search(spec)
    if place is None:
        return [spec]
    found = []
    for start in dict.fromkeys((int(float(place[1]) * steps), 0)):
        for count in range(int(place[2]), 0, -1):
            if start + count < steps:
                found.append(spec.replace(place[0], f"{start}-{start + count}"))
    return found
