"""Check products of values of open length, by vectors, matrices and batches of these, against ONNX Runtime."""

from __future__ import annotations

import re

import numpy as np
import pytest

from passfit.errors import ModelError

from ....models import NodeBuilder
from .checking import check, imported
from .test_readers import ROWS, Build, cases, ints, model_of_reader

OPEN: dict[str, Build] = {
    "n": lambda b, v: b.node("Gather", v, b.constant(np.array(1)), axis=1),
    "nx4": lambda b, v: v,
    "4xn": lambda b, v: b.node("Transpose", v),
    "nx2x2": lambda b, v: b.node("Reshape", v, ints(b, -1, 2, 2)),
    "2x2xn": lambda b, v: b.node("Reshape", b.node("Transpose", v), ints(b, 2, 2, -1)),
}
FIXED: dict[str, Build] = {
    "x".join(map(str, shape)): lambda b, v, shape=shape: b.weight(*shape)  # type: ignore[misc]
    for shape in ((2,), (4,), (ROWS,), (4, 3), (3, 4), (3, 2), (2, 3), (1, 2, 3), (5, 3, 2), (ROWS, 2, 2))
}
#: operands whose product is refused, as the length may be another one than the number it is multiplied by, or is there twice
REFUSED = [("7", "nx4"), ("4xn", "7"), ("nx4", "4xn"), ("nx2x2", "7x2x2"), ("nx2x2", "2x2xn")]
WORKS = [
    *(("nx4", each) for each in ("4", "4x3")), *((each, "4xn") for each in ("4", "3x4")),
    *(("nx2x2", each) for each in ("2", "2x3", "1x2x3")), *((each, "2x2xn") for each in ("2", "3x2")),
    ("n", "n"), ("n", "nx4"), ("4xn", "n"), ("4xn", "nx4"), ("nx2x2", "nx2x2"),
]  # fmt: skip


def product(first: str, second: str) -> Build:
    def build(b: NodeBuilder, v: str) -> str:
        return b.node("MatMul", *((OPEN | FIXED)[each](b, v) for each in (first, second)))

    return build


@pytest.mark.parametrize(("first", "second"), WORKS)
def test_a_product_is_that_of_onnx_runtime(first: str, second: str) -> None:
    check(model_of_reader(product(first, second)), cases(), rtol=1e-5)


@pytest.mark.parametrize(("first", "second"), REFUSED)
def test_a_product_with_another_number_is_refused(first: str, second: str) -> None:
    with pytest.raises(ModelError, match=re.escape("whose length the data decide: its ")):
        imported(model_of_reader(product(first, second)))
