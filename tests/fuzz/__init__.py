"""Differential fuzzer: random operators and networks, compared with ONNX Runtime on the file as given."""
