"""Fused element-wise groups stay within the limit of expression size, with the same results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ...profiles import examples

pytestmark = pytest.mark.tvm

_SHAPE = (3, 8)


def _operations() -> dict[str, Callable]:
    from tvm import relax

    op, zero = relax.op, relax.const(0.1)
    return {
        "tanh": lambda a, b: op.tanh(a), "sin": lambda a, b: op.sin(a), "add": op.add, "multiply": op.multiply,
        "swish": lambda a, b: op.multiply(a, op.sigmoid(a)), "double": lambda a, b: op.multiply(op.add(a, a), relax.const(0.4)),
        "where": lambda a, b: op.where(op.greater(a, zero), b, op.negative(a)), "clip": lambda a, b: op.clip(a, -1, 1),
        "sum": lambda a, b: op.add(op.sum(op.tanh(a), axis=[1], keepdims=True), b),
    }  # fmt: skip


def _graph(chosen: list[tuple[str, int, int]]) -> Callable:
    """The operations, each on two of the last values."""
    from tvm import relax

    def body(x: relax.Expr) -> relax.Expr:
        values, operations = [x], _operations()
        for name, one, other in chosen:
            recent = values[-4:]
            made = operations[name](recent[one % len(recent)], recent[other % len(recent)])
            values.append(relax.op.tanh(made) if name == "multiply" else made)
        return values[-1]

    return body


def _loads(kernel: object) -> int:
    """What the kernel's stores read, once everything that can be is computed where it is read."""
    import tvm_ffi
    from tvm.ir import TensorLoad

    from passfit.tir.inlining import inlined

    found: list[TensorLoad] = []
    tvm_ffi.structural_walk(inlined(kernel).body, [(TensorLoad, found.append)])
    return len(found)


def _same(body: Callable, most: int, monkeypatch: pytest.MonkeyPatch) -> list:
    """The kernels of a graph, after a comparison with the same graph whose operators are not fused."""
    from passfit.kernels.lower.schedule_program import schedule_program
    from passfit.passes.graph import bound_groups

    from ...kernels.programs import lowered, run

    monkeypatch.setattr(bound_groups, "MOST_OPERATIONS", most)
    fused, plain = lowered([_SHAPE], body), lowered([_SHAPE], body, ("legalize",))
    x = np.random.default_rng(0).standard_normal(_SHAPE).astype("float32")
    expected, found = run(schedule_program(plain)[0], [x]), run(schedule_program(fused)[0], [x])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)
    return list(fused.kernels.values())


@settings(max_examples=examples(15))
@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted("tanh sin add multiply swish double where clip sum".split())),
            st.integers(0, 3),
            st.integers(0, 3),
        ),
        min_size=1,
        max_size=14,
    )
)
def test_parts_compute_what_the_operators_do(chosen: list[tuple[str, int, int]]):
    with pytest.MonkeyPatch.context() as patch:
        for kernel in _same(_graph(chosen), 24, patch):
            assert _loads(kernel) <= 24 + 8  # a single operator may be larger than it may be


@pytest.mark.parametrize("name", ["swish", "double", "where"])
def test_a_long_chain_of_values_read_twice_has_no_large_kernel(name: str, monkeypatch: pytest.MonkeyPatch):
    """Without a bound this would never end: 40 steps are a tree of a million million reads."""
    from passfit.passes.graph.bound_groups import MOST_OPERATIONS

    kernels = _same(_graph([(name, 3, 3)] * 40), MOST_OPERATIONS, monkeypatch)
    assert max(map(_loads, kernels)) <= MOST_OPERATIONS


def test_the_count_is_that_of_the_inlined_kernel():
    """Of a chain that reads each value twice, n steps read the input 2**n times, and add as often but once."""
    from tvm import relax

    from passfit.passes.graph.expansion_size import expansion

    from ...kernels.programs import lowered

    def body(x: relax.Expr) -> relax.Expr:
        for _ in range(6):
            x = relax.op.add(x, x)
        return x

    (kernel,) = lowered([_SHAPE], body).kernels.values()
    (size,), sums = expansion(kernel, 1).sizes([0])
    stores = 6
    assert sums == 0 and _loads(kernel) == 2**6
    assert size == 2 * (2**6 - 1) and len(expansion(kernel, 1).stores) == stores


def test_groups_of_ordinary_size_stay_as_they_are():
    from tvm import relax

    from passfit.passes.graph.bound_groups import bounded_groups
    from passfit.passes.sequence.catalogue import parse_spec

    from ...kernels.programs import module_of

    module = module_of([_SHAPE], _graph([("swish", 3, 3), ("where", 3, 2), ("clip", 3, 3)]))
    for spec in ("legalize", "fold-constant"):
        module = parse_spec(spec).apply(module)
    grouped = relax.transform.FuseOps()(relax.transform.AnnotateTIROpPattern()(module))
    assert bounded_groups(grouped).same_as(grouped)
