"""Run a compiled library, compare it with ONNX Runtime, measure its memory and time."""

from .run import verify_library

__all__ = ["verify_library"]
