"""Declare operators of integer sums that a target computes in few instructions: `pairs`, `quads`, `runs`."""

from tvm.ir import register_op_attr


def declare(*names: str) -> None:
    """Declare operators that are vectorized lane by lane, and pure."""
    for name in names:
        register_op_attr(name, "TVectorizable", True)
        register_op_attr(name, "TCallEffectKind", 1)
