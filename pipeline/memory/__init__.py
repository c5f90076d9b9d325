"""Liveness, arena planning, the independent validator and the footprint: pure Python, knows neither TVM nor ONNX."""
