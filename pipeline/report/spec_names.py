"""How pictures and tables call the passes of effects.json."""

from __future__ import annotations

from ..passes.sequence.sequence import TVM_DEFAULT


def shown(spec: str) -> str:
    """A pass is called by its spec; a whole way down from graph to kernels by how it differs from TVM's default."""
    passes = spec.split("; ")
    if len(passes) == 1:
        return spec
    names = {each.partition("{")[0] for each in passes}
    differing = [each for each in passes if each not in TVM_DEFAULT]
    missing = [each for each in TVM_DEFAULT if each not in names]
    return ", ".join(differing + [f"without {each}" for each in missing]) or spec
