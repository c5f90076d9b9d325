"""Keep quantised models quantised: integer layers, integer moves, vendors' operators in ONNX's own."""
