"""Bytes inside a plan leave out inputs until they were read, and outputs once they are written."""

from __future__ import annotations

import pytest

from passfit.program import Buffer, Port, Program, Step, Tensor


@pytest.fixture
def literature(scripts):
    import literature

    return literature


def chain(sizes: tuple[int, ...]) -> Program:
    """Make a program of one tensor after the other, from an input to an output."""
    return Program(
        name="chain",
        steps=tuple(Step(f"k{number}", (number,), (number + 1,)) for number in range(len(sizes) - 1)),
        tensors=tuple(Tensor((size,), "int8", buffer=number) for number, size in enumerate(sizes)),
        buffers=tuple(Buffer(f"t{number}", size) for number, size in enumerate(sizes)),
        weights=(),
        inputs=(Port("x", 0),),
        outputs=(Port("y", len(sizes) - 1),),
    )


def test_inputs_and_outputs_are_left_out_while_they_hold_data(literature):
    assert literature.without_ports(chain((100, 30, 20, 50))) == 50
    assert literature.without_ports(chain((100, 30, 50))) == 30
    assert literature.without_ports(chain((100, 50))) == 0


def test_ours_is_the_least_that_takes_no_more_arithmetic(literature):
    own = {
        "default": {"ram": 90, "inside": 40, "extra": 0.2},
        "any arithmetic": {"ram": 50, "inside": 10, "extra": 3.0},
        "whole kernels": {"ram": 100, "inside": 60, "extra": 0.0},
    }
    assert literature._ours(own, "all SRAM", None) == (90, 0.2)
    assert literature._ours(own, "without input", 0.1) == (60, 0.0)
    assert literature._ours(own, "without input", 0.3) == (40, 0.2)
    assert literature._ours({}, "all SRAM", None) is None
