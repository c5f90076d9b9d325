"""Express operators of the domain `com.microsoft`, which ONNX Runtime's tools write, in ONNX's own."""
