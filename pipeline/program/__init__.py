"""The lowered function as steps and buffers: pure Python, knows neither TVM nor ONNX."""

from .program import DTYPE_BYTES, Buffer, Overlay, Port, Program, Step, Tensor, View, Weight
from .row_dependence import Follows, Rows, Splits

__all__ = ["DTYPE_BYTES", "Buffer", "Follows", "Overlay", "Port", "Program", "Rows", "Splits", "Step", "Tensor", "View", "Weight"]
