"""Find model files by path or PyPI source, cached by content: `resolve_source`, `model_record`."""
