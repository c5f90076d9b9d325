"""Name the passes of effects.json in pictures and tables."""

from __future__ import annotations

from ..passes.sequence.sequence import TVM_DEFAULT


def shown(spec: str) -> str:
    """Name a pass by its spec, a whole lowering by its difference from TVM's default."""
    passes = spec.split("; ")
    if len(passes) == 1:
        return spec
    names = {each.partition("{")[0] for each in passes}
    differing = [each for each in passes if each not in TVM_DEFAULT]
    missing = [each for each in TVM_DEFAULT if each not in names]
    return ", ".join(differing + [f"without {each}" for each in missing]) or spec
