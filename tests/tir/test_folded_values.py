"""Results of kernels on constants are computed once, and no more of them kept than fit."""

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import relax
from tvm.ir import GenericConst

from passfit.passes.graph.folding.constant_folder import fold_constants
from passfit.passes.sequence.catalogue import parse_spec
from passfit.tir.memoise import FoldedValues

from ..kernels.programs import module_of

pytestmark = pytest.mark.tvm


def _kernel(extent: int):
    module = parse_spec("legalize").apply(module_of([(extent,)], relax.op.exp))
    return next(each for each in module.functions.values() if not isinstance(each, relax.Function))


def _made(asked: list, folded: FoldedValues, kernel, tensor) -> object:
    return folded.get_or_make(kernel, [tensor], lambda: asked.append(tensor) or [tensor])


def test_a_kernel_runs_once_for_each_tensor():
    asked, folded = [], FoldedValues()
    one, other = (tvm.runtime.tensor(np.zeros(4, "float32")) for _ in range(2))
    for kernel, tensor in ((_kernel(4), one), (_kernel(4), one), (_kernel(4), other), (_kernel(5), one)):
        _made(asked, folded, kernel, tensor)
    assert [each.same_as(one) for each in asked] == [True, False, True]


def test_the_latest_results_are_kept():
    asked, folded = [], FoldedValues(most=3 << 10)
    kernel, tensors = _kernel(4), [tvm.runtime.tensor(np.zeros(4, "float32")) for _ in range(3)]
    for number in (0, 1, 0, 2, 0, 1):  # two fit: the second is dropped for the third
        _made(asked, folded, kernel, tensors[number])
    assert [next(n for n, each in enumerate(tensors) if each.same_as(one)) for one in asked] == [0, 1, 2, 1]


def test_equal_graphs_share_folded_constants():
    weight = relax.const(np.arange(6, dtype="float32").reshape(2, 3))
    made = parse_spec("legalize").apply(
        module_of([(4, 3)], lambda x: relax.op.matmul(x, relax.op.permute_dims(weight)))
    )
    first, second = (_constants(fold_constants(made, may_grow=True)) for _ in range(2))
    assert len(first) == 1 and first[0].same_as(second[0])


def _constants(module) -> list:
    found = []
    relax.analysis.post_order_visit(
        module["main"], lambda each: found.append(each.value) if isinstance(each, GenericConst) else None
    )
    return found
