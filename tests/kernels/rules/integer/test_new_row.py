"""Add a made-up instruction as a row, as a newcomer would: an operator, its expansion, the row, and results on this machine.

dot4    total.4s, w.16b, x.16b      four products of int8 added to each int32
"""

import pytest

pytest.importorskip("tvm")

from passfit.codegen.expand import products
from passfit.kernels.rules.integer.micro_kernel import MicroKernel
from passfit.kernels.rules.integer.runs.nhwc_vnni import NhwcVnni
from passfit.kernels.rules.integer.runs.word_runs import WordRuns
from passfit.targets import Machine
from passfit.tir.operators.declare import call, declare

from .channels import assert_exact, conv

pytestmark = pytest.mark.tvm
DOT4 = declare("tests.dot4")


def multiply(total, weights, values):
    return call(DOT4, "int32", total, weights, values)


def expand(_has, found):
    """Write the operator: here by shifts and products, for a processor that has it by its intrinsic."""
    total, weights, values = found.args
    return products.sum_of_parts(total, weights, values, 8)


def row(loops):
    return MicroKernel("dot4", lambda machine: machine.int8_dot, loops, multiply=multiply, group=4, values="int8")


@pytest.mark.parametrize(
    ("loops", "machine"),
    [
        (NhwcVnni, Machine(int8_dot=True)),
        (NhwcVnni, Machine(1, 20, int8_dot=True)),
        (WordRuns, Machine(1, 20, int8_dot=True)),
    ],
)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    ("channels", "taps", "pads"), [(8, (3, 3), (1, 1, 1, 1)), (16, (1, 1), (0, 0, 0, 0)), (3, (2, 3), (0, 1, 1, 0))]
)
def test_a_row_and_its_expansion_make_a_schedule_rule(channels, taps, pads, dtype, loops, machine, monkeypatch):
    monkeypatch.setitem(products.WRITERS, DOT4, expand)
    kernel = conv(channels, 16, (7, 9), taps, pads=pads, dtype=dtype)
    number = next(n for n, param in enumerate(kernel.params) if "w" in param.name)
    assert not list(row(loops)(kernel, frozenset({number}), Machine()))
    (found,) = row(loops)(kernel, frozenset({number}), machine)
    assert "tests.dot4" in str(found.kernel)
    assert_exact(kernel, [found])
