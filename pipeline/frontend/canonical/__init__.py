"""Bring ONNX models into one static form, one change per file; `frontend/canonicalise.py` puts them in order."""
