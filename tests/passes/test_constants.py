"""Folded constants equal LLVM's results bit for bit, in their original dtypes."""

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax
from tvm.ir import GenericConst

from passfit.passes.graph.folding import constant_folder
from passfit.passes.graph.folding.constant_folder import fold_constants
from passfit.passes.sequence.catalogue import parse_spec
from passfit.tir.memoise import FoldedValues

from ..kernels.programs import module_of
from ..profiles import examples

pytestmark = pytest.mark.tvm

_UNARY = {
    "sqrt": relax.op.sqrt,
    "negative": relax.op.negative,
    "exp": relax.op.exp,
    "transpose": lambda x: relax.op.permute_dims(x, [2, 0, 1]),
    "flat": lambda x: relax.op.reshape(x, (-1,)),
    "new axis": lambda x: relax.op.expand_dims(x, 1),
    "rows": lambda x: relax.op.strided_slice(x, [0], [1], [3]),
    "halves": lambda x: relax.op.split(x, 2, axis=2)[1],
    "mean": lambda x: relax.op.mean(x, 1),
    "integers": lambda x: relax.op.astype(relax.op.multiply(x, relax.const(9.0)), "int64"),
    "nan": relax.op.isnan,
    "nowhere nan": lambda x: relax.op.where(relax.op.isnan(x), relax.const(0.0), x),
    "padded": lambda x: relax.op.nn.pad(x, (0, 0, 1, 2, 0, 1)),
}
_BINARY = {
    "add": relax.op.add,
    "subtract": relax.op.subtract,
    "multiply": relax.op.multiply,
    "divide": relax.op.divide,
    "maximum": relax.op.maximum,
    "minimum": relax.op.minimum,
    "less": relax.op.less,
}


def _folded(values: list[np.ndarray], body) -> object:
    def whole(x):
        return relax.op.add(x, relax.op.sum(relax.op.astype(body(*map(relax.const, values)), "float32")))

    return parse_spec("legalize").apply(module_of([(2,)], whole))


@settings(max_examples=examples(60))
@given(st.sampled_from(sorted(_UNARY) + sorted(_BINARY)), st.integers(0, 99), st.booleans())
def test_numpy_computes_what_llvm_does(name, seed, odd):
    generator = np.random.default_rng(seed)
    values = [generator.standard_normal((4, 3, 6)).astype("float32") for _ in range(2)]
    if odd:
        values[0].flat[[0, 5]], values[1].flat[[5, 7]] = (np.nan, np.inf), (-0.0, np.nan)
        values[0].flat[7] = 0.0
    one = name in _UNARY
    module = _folded(values[:1] if one else values, _UNARY[name] if one else _BINARY[name])
    ours = fold_constants(module, may_grow=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(constant_folder, "values_of", lambda kernel, arguments: None)
        patched.setattr(constant_folder, "_FOLDED", FoldedValues())
        compiled = fold_constants(module, may_grow=True)
    assert tvm_ffi.structural_equal(ours, compiled) or odd  # NaN is not equal to itself
    for mine, theirs in zip(_constants(ours), _constants(compiled), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


def _constants(module) -> list[np.ndarray]:
    found = []
    relax.analysis.post_order_visit(
        module["main"], lambda each: found.append(each.value.numpy()) if isinstance(each, GenericConst) else None
    )
    return found


def test_a_scalar_keeps_its_dtype():
    module = module_of([(3,)], lambda x: relax.op.add(x, relax.op.astype(_sum_of_integers(), "float32")))
    legal = parse_spec("legalize").apply(module)
    folded = constant_folder._evaluate(legal, constant_folder._foldable(legal, may_grow=True))
    assert [str(each.ty.dtype) for each in folded.values()] == ["int64", "float32"]


def _sum_of_integers() -> relax.Expr:
    return relax.op.add(relax.const(1, "int64"), relax.const(2, "int64"))


def test_what_is_taken_out_of_a_folded_tuple_is_folded_on():
    def body(x):
        parts = relax.op.split(relax.const(np.arange(6, dtype="float32")), 2)
        return relax.op.add(x, relax.op.multiply(parts[0], parts[1]))

    module = fold_constants(parse_spec("legalize").apply(module_of([(3,)], body)), may_grow=True)
    (constant,) = _constants(module)
    np.testing.assert_array_equal(constant, [0, 4, 10])
