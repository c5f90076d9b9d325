"""Small networks of today's architectures, written to ONNX by today's exporters: run by a Python that has them."""
