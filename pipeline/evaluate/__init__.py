"""Accuracy of a model on the user's samples: the file in ONNX Runtime, and the executed library on each target."""
