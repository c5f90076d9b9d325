"""Test that identical kernels share one body, and that only identical ones do."""

from dataclasses import replace

import pytest

pytest.importorskip("tvm")

from tvm import te, tirx

from passfit.codegen.functions.merge_kernels import merge_identical_kernels
from passfit.kernels.lower.lower import Lowered
from passfit.program import Buffer, Port, Program, Step, Tensor

pytestmark = pytest.mark.tvm


def scale(factor, count=8, name="x"):
    x = te.placeholder((count,), name=name)
    return te.create_prim_func(
        [x, te.compute((count,), lambda i: x[i] * tirx.const(factor, "float32"), name=f"{name}2")]
    )


def chain(**kernels) -> Lowered:
    """Make a program that calls the kernels one after another."""
    steps = tuple(Step(name, (number,), (number + 1,)) for number, name in enumerate(kernels))
    tensors = tuple(Tensor((8,), "float32", buffer=number) for number in range(len(kernels) + 1))
    buffers = tuple(Buffer(f"b{number}", 32) for number in range(len(tensors)))
    program = Program("chain", steps, tensors, buffers, (), (Port("x", 0),), (Port("y", len(kernels)),))
    return Lowered(program, kernels, ())


def test_equal_kernels_are_one_whatever_their_variables_are_called():
    found = merge_identical_kernels(chain(double=scale(2.0), again=scale(2.0, name="y"), triple=scale(3.0)))
    assert [step.kernel for step in found.program.steps] == ["again", "again", "triple"]
    assert sorted(found.kernels) == ["again", "triple"]
    assert merge_identical_kernels(found) is found


def test_other_constants_shapes_or_attributes_are_other_kernels():
    promised = scale(2.0)
    before = chain(a=promised, b=scale(3.0), c=promised.with_attr("tirx.noalias", False))
    before = replace(before, kernels=before.kernels | {"d": scale(2.0, 9)})
    assert merge_identical_kernels(before) is before
