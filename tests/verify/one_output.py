"""Compare single arrays as the only output of a model."""

from __future__ import annotations

import numpy as np

from passfit.errors import NumericError
from passfit.verify.compare import Case, Difference, compare


def compare_output(where: str, result: np.ndarray, expected: np.ndarray, tolerance: float) -> Difference:
    """Compare one output with ONNX Runtime's alone; `where` goes before the error. Raises NumericError."""
    case = Case({}, {"x": expected}, {"x": expected})
    try:
        return compare([{"x": result}], [case], tolerance)
    except NumericError as error:
        raise NumericError(f"{where}: {error}") from error
