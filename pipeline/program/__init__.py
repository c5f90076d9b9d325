"""Describe a lowered model as steps and buffers, without TVM or ONNX.

Public faces: the dataclasses in `__all__`; `check.first_problem`, `serial.program_to_json`, `serial.program_from_json`.
"""

from .program import DTYPE_BYTES, Buffer, Call, Guard, Loop, Overlay, Port, Program, Step, Tensor, View, Weight, Window
from .row_dependence import Follows, Rows, Splits

__all__ = [
    "DTYPE_BYTES", "Buffer", "Call", "Follows", "Guard", "Loop", "Overlay", "Port", "Program", "Rows", "Splits", "Step", "Tensor", "View", "Weight",
    "Window",
]  # fmt: skip
