"""Bring ONNX models into one static form, one change per file: `canonicalise.import_model`, `canonicalize`."""
