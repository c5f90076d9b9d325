"""What the served model makes of the arrays it is handed."""

import numpy as np
import pytest


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 3)])
def test_an_input_keeps_its_rank(shape):
    from passfit.tracking.serve import _check

    port = {"name": "x", "shape": list(shape), "dtype": "float32"}
    found = _check({"x": np.ones(shape[::-1], np.float64).T}, port, alone=True)
    assert (found.shape, found.dtype, found.flags.c_contiguous) == (shape, np.float32, True)
