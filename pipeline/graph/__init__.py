"""The lowered function as steps and buffers: pure Python, knows neither TVM nor ONNX."""

from .program import DTYPE_BYTES, Buffer, Port, Program, Step, Tensor, Weight

__all__ = ["DTYPE_BYTES", "Buffer", "Port", "Program", "Step", "Tensor", "Weight"]
