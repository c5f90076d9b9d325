"""Run a library, compare it with ONNX Runtime, measure its memory and time: `build_and_run`, `run`, `compare`."""
