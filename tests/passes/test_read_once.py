"""Which kernels read each element once: poolings without overlap, reductions of whole axes."""

import pytest

pytest.importorskip("tvm")

from passfit.passes.legalize import Legalize
from passfit.passes.read_once import reads_once
from tvm import relax
from tvm.tirx import PrimFunc

from ..kernels.programs import module_of

pytestmark = pytest.mark.tvm


def pool(kind, size, strides, padding=(0, 0, 0, 0), dilation=(1, 1)):
    operator = relax.op.nn.max_pool2d if kind == "max" else relax.op.nn.avg_pool2d
    return lambda x: operator(x, size, strides, list(padding), dilation)


CASES = {
    "pooling": (pool("max", (2, 2), (2, 2)), True),
    "average pooling": (pool("avg", (2, 2), (2, 2)), True),
    "gaps between windows": (pool("max", (2, 2), (3, 3)), True),
    "overlapping windows": (pool("max", (3, 3), (2, 2)), False),
    "overlap in one axis": (pool("max", (2, 3), (2, 2)), False),
    "dilated windows that interleave": (pool("max", (2, 2), (2, 2), dilation=(2, 2)), False),
    "padding": (pool("max", (2, 2), (2, 2), padding=(1, 1, 1, 1)), False),
    "mean of planes": (lambda x: relax.op.mean(x, [2, 3], True), True),
    "sum of one axis": (lambda x: relax.op.sum(x, [1]), True),
    "softmax": (lambda x: relax.op.nn.softmax(x, -1), False),
    "element-wise": (relax.op.sqrt, False),
    "transpose": (lambda x: relax.op.permute_dims(x, [0, 2, 3, 1]), False),
    "two inputs": (lambda x: relax.op.sum(x * x, [1]), None),
}


@pytest.mark.parametrize("case", CASES)
def test_reads_once(case):
    body, expected = CASES[case]
    module = Legalize().apply(module_of([(1, 4, 12, 12)], body))
    kernels = [function for function in module.functions.values() if isinstance(function, PrimFunc)]
    if expected is not None:
        assert any(map(reads_once, kernels)) is expected
