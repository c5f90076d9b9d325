"""Run a compiled library, compare it with ONNX Runtime, measure its memory and time."""

from .cases import choose_cases, with_plain_sums
from .run import verify_library

__all__ = ["choose_cases", "verify_library", "with_plain_sums"]
