"""The lowered function as steps and buffers: pure Python, knows neither TVM nor ONNX."""

from .program import DTYPE_BYTES, Buffer, Overlay, Port, Program, Step, Tensor, View, Weight

__all__ = ["DTYPE_BYTES", "Buffer", "Overlay", "Port", "Program", "Step", "Tensor", "View", "Weight"]
