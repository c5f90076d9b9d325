"""Compare two results of a model on a target, down to buffers and ONNX nodes: `compare`, `compare_table`, `markdown`, `as_json`."""

from .comparison import BufferChange, Comparison, Figure, compare
from .formats import as_json, because, compare_table, markdown
from .pairs import pairs_of

__all__ = [
    "BufferChange",
    "Comparison",
    "Figure",
    "as_json",
    "because",
    "compare",
    "compare_table",
    "markdown",
    "pairs_of",
]
