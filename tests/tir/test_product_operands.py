"""Products of tensors are recognised and counted: reductions of one tensor never count as such."""

import pytest

pytest.importorskip("tvm")

from tvm import relax

from passfit.kernels.rules.rule import Speed
from passfit.kernels.rules.vector_reduction import vector_sums
from passfit.targets import Machine
from passfit.tir.counts.product_operands import multiply_adds

from ..kernels.programs import lowered, weight

pytestmark = pytest.mark.tvm
op = relax.op

_COUNTS = {
    "convolution": 4 * 14 * 14 * 8 * 3 * 3,
    "padded convolution": 4 * 16 * 16 * 8 * 3 * 3,
    "depthwise convolution": 8 * 16 * 16 * 3 * 3,
    "matrix product": 8 * 16 * 32 * 16,
    "product of a maximum": 8 * 16 * 32 * 16,
}
_PRODUCTS = {
    "convolution": lambda x: op.nn.conv2d(x, weight(4, 8, 3, 3)),
    "padded convolution": lambda x: op.nn.conv2d(x, weight(4, 8, 3, 3), padding=1),
    "depthwise convolution": lambda x: op.nn.conv2d(x, weight(8, 1, 3, 3), padding=1, groups=8),
    "matrix product": lambda x: op.matmul(x, weight(16, 32)),
    "product of a maximum": lambda x: op.matmul(op.nn.relu(x), weight(16, 32)),
}
_OTHERS = {
    "mean": lambda x: op.mean(x, [2, 3]),
    "sum of squares": lambda x: op.sum(op.multiply(x, x), [3]),
    "sum of a tensor and its maximum": lambda x: op.sum(op.multiply(x, op.nn.relu(x)), [3]),
    "softmax": lambda x: op.nn.softmax(x, 3),
    "sum with a factor of each row": lambda x: op.sum(op.multiply(x, weight(8, 1, 1)), [3]),
    "pooling": lambda x: op.nn.max_pool2d(x, (2, 2), (2, 2)),
    "largest": lambda x: op.argmax(x, 3),
}


@pytest.mark.parametrize("name", [*_PRODUCTS, *_OTHERS])
def test_a_product_is_no_reduction_of_one_tensor(name: str) -> None:
    program = lowered([(1, 8, 16, 16)], (_PRODUCTS | _OTHERS)[name])
    found = [each for kernel in program.kernels.values() for each in vector_sums(kernel, frozenset(), Machine())]
    assert all(each.speed is (Speed.LANES if name in _PRODUCTS else Speed.FAST) for each in found)
    if name != "sum of a tensor and its maximum":  # a multiply-add, of one tensor
        assert sum(map(multiply_adds, program.kernels.values())) == _COUNTS.get(name, 0)
