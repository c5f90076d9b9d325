"""Loops over neighbours become vectors of Helium, of four numbers or sixteen bytes; loops whose steps depend on each other do not."""

import pytest

pytest.importorskip("tvm")

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import IRModule
from tvm.tirx import BufferStore, For, PrimFunc

from passfit.codegen.bare.vector_loops import vectorise_loops
from passfit.targets import get_target
from passfit.tir.expressions import collect
from passfit.tir.loop_nests import buffer_of

pytestmark = pytest.mark.tvm
M55 = get_target("mps3-an547")
VECTORIZED = 2


def loop(value, dtype="float32", extent=23, at=lambda i: i, target=M55, result=None):
    """Make y[at(i)] = value(i, x, y) for `extent` steps."""
    i = tirx.Var("i", "int32")
    x, y = buffer_of("x", [64], dtype), buffer_of("y", [64], result or dtype)
    body = For(i, tirx.const(0), tirx.const(extent), 0, BufferStore(y, value(i, x, y), [at(i)]))
    kernel = PrimFunc([x, y], body, attrs=None).with_attr("target", tvm.target.Target(target.tvm_config()))
    return kernel, vectorise_loops(kernel)


def lanes_of(kernel):
    return [int(each.extent) for each in collect(kernel.body, For) if int(each.kind) == VECTORIZED]


def load(buffer, index):
    return tirx.BufferLoad(buffer, [index])


@pytest.mark.parametrize(
    ("dtype", "extent", "lanes", "trips"),
    [
        ("float32", 23, 4, [5, 3]), ("float32", 24, 4, [6]), ("int32", 5, 4, [1, 1]), ("int8", 40, 16, [2, 8]),
        ("uint8", 16, 16, [1]), ("float32", 3, None, [3]), ("int8", 15, None, [15]), ("float16", 24, None, [24]),
        ("int64", 24, None, [24]), ("float64", 24, None, [24]), ("int8", 0, None, [0]),
    ],
)  # fmt: skip
def test_vectors_are_as_long_as_registers_and_the_rest_stays_a_loop(dtype, extent, lanes, trips):
    _, found = loop(lambda i, x, y: load(x, i) + load(x, i + 1), dtype, extent)
    assert lanes_of(found) == ([lanes] if lanes else [])
    assert [int(each.extent) for each in collect(found.body, For) if int(each.kind) != VECTORIZED] == trips
    tvm.tirx.transform.VectorizeLoop(True)(IRModule({"main": found.without_attr("target")}))


@pytest.mark.parametrize("ahead", [0, 1, 5])
def test_an_operand_may_be_replaced_at_its_own_place_or_ahead_and_shared_by_all_steps(ahead):
    _, found = loop(lambda i, x, y: load(y, i + ahead) * load(x, 3))
    assert lanes_of(found) == [4]


@pytest.mark.parametrize(
    "value",
    [
        lambda i, x, y: load(y, i - 1), lambda i, x, y: load(y, 0), lambda i, x, y: load(x, 2 * i),
        lambda i, x, y: load(x, 20 - i), lambda i, x, y: load(x, i) + i.astype("float32"),
        lambda i, x, y: tirx.if_then_else(i < 4, load(x, i), load(x, 0)),
        lambda i, x, y: tirx.Select(i < 4, load(x, i), load(x, 0)), lambda i, x, y: tirx.log(load(x, i)),
    ],
)  # fmt: skip
def test_other_loops_stay(value):
    given, found = loop(value)
    assert tvm_ffi.structural_equal(given, found)


def test_results_apart_stay():
    assert lanes_of(loop(lambda i, x, y: load(x, i), at=lambda i: 2 * i)[1]) == []
    assert lanes_of(loop(lambda i, x, y: load(x, i), at=lambda i: tirx.const(0))[1]) == []


def test_results_of_comparisons_stay():
    assert lanes_of(loop(lambda i, x, y: load(x, i) > load(x, i + 1), result="bool")[1]) == []
    assert lanes_of(loop(lambda i, x, y: tirx.Select(load(x, i) > 0.0, load(x, i + 1), 2.0))[1]) == [4]


def test_integers_are_not_divided():
    assert lanes_of(loop(lambda i, x, y: tirx.floordiv(load(x, i), tirx.const(3)), "int32")[1]) == []


@pytest.mark.parametrize("name", ["x86-64", "rpi4", "mps2-an386", "stm32u585", "rv32-virt"])
def test_other_targets_keep_their_loops(name):
    given, found = loop(lambda i, x, y: load(x, i), target=get_target(name))
    assert found is given
