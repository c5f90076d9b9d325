"""Express operators of the domains `com.microsoft`, of ONNX Runtime's tools, and `ai.onnx.ml` in ONNX's own."""
