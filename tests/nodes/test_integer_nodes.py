"""Convolutions and products of integers equal the exact arithmetic, element by element."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from passfit.targets import Target, get_target, how_to_run

from ..frontend.onnx_nodes import NodeCase
from ..models import model_of, run
from .building import HOST, compile_and_run
from .integer_oracle import evaluate

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]

#: AArch64, ARMv7, RISC-V with and without vectors
EMULATED = ("rpi4", "rpi5", "beaglebone", "visionfive2", "bpi-f3")
#: name: x's shape, w's shape, attributes
CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "1-d": ((2, 6, 23), (5, 6, 3), {"pads": [1, 1], "strides": [2]}),
    "2-d": ((1, 8, 12, 12), (16, 8, 3, 3), {"pads": [1, 1, 1, 1]}),
    "3-d": ((1, 4, 5, 6, 7), (3, 4, 2, 3, 3), {"pads": [0, 1, 1, 1, 1, 1]}),
    "1x1": ((2, 16, 5, 7), (24, 16, 1, 1), {}),
    "grouped": ((1, 8, 9, 9), (12, 2, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
    "depthwise": ((1, 16, 11, 10), (16, 1, 3, 3), {"group": 16, "pads": [1, 1, 1, 1], "strides": [2, 2]}),
    "depth-multiplier": ((1, 4, 7, 7), (8, 1, 3, 3), {"group": 4}),
    "dilated": ((1, 3, 13, 14), (5, 3, 3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    "uneven-pads": ((1, 3, 9, 8), (4, 3, 3, 4), {"pads": [0, 1, 2, 3], "strides": [2, 1]}),
    "same-upper": ((1, 3, 10, 11), (4, 3, 3, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    "same-lower": ((1, 3, 10, 11), (4, 3, 4, 2), {"auto_pad": "SAME_LOWER", "strides": [1, 2]}),
    "strided-pairs": ((2, 6, 11, 13), (32, 6, 3, 3), {"strides": [2, 2], "dilations": [1, 2], "pads": [1, 2, 0, 1]}),
    "long-pairs": ((1, 4, 100), (8, 4, 5), {"pads": [2, 2]}),
    "deep-pairs": ((1, 96, 6, 19), (16, 96, 3, 3), {"pads": [1, 1, 1, 1]}),
    "whole": ((1, 5, 4, 4), (7, 5, 4, 4), {}),
}
#: name: a's shape, b's shape
PRODUCTS = {
    "matrices": ((9, 33), (33, 12)),
    "pairs": ((2, 13, 128), (128, 48)),
    "one-row": ((1, 64), (64, 40)),
    "batches": ((2, 3, 5, 8), (3, 8, 7)),
    "outer-of-one": ((4, 1, 5, 6), (1, 3, 6, 2)),
    "vector-matrix": ((17,), (17, 6)),
    "matrix-vector": ((6, 17), (17,)),
    "vectors": ((19,), (19,)),
}
SIGNS = {"s8s8": ("int8", "int8"), "u8u8": ("uint8", "uint8"), "u8s8": ("uint8", "int8"), "s8u8": ("int8", "uint8")}


def _numbers(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, shape, dtype, endpoint=True)


def _scales(random: np.random.Generator, *shape: int, about: float = 0.02) -> np.ndarray:
    return (random.uniform(0.5, 1.5, shape) * about).astype(np.float32)


def _case(
    name: str, op: str, operands: dict[str, np.ndarray], free: tuple[str, ...], dtype: str, **attributes: Any
) -> NodeCase:
    """Make a case of a node whose inputs `free` are the model's, others constant; empty operands are left out."""
    given = {key: value for key, value in operands.items() if value is not None}
    node = helper.make_node(op, [key if key in given else "" for key in operands], ["y"], **attributes)
    inputs = {key: given[key] for key in free}
    constants = {key: value for key, value in given.items() if key not in free}
    kinds = {key: helper.np_dtype_to_tensor_dtype(value.dtype) for key, value in inputs.items()}
    kinds["y"] = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = model_of([node], {key: value.shape for key, value in inputs.items()}, ["y"], constants, dtypes=kinds)
    return NodeCase(name, op, model, inputs, tuple(evaluate(model, inputs)), 0, 0)


def _convolution(
    name: str, signs: str, *, per_channel: bool = True, bias: bool = True, free: tuple[str, ...] = ("x",)
) -> NodeCase:
    shape, weights, attributes = CONVOLUTIONS[name]
    random = np.random.default_rng(len(name))
    of_x, of_w = SIGNS[signs]
    filters = weights[0]
    terms = int(np.prod(weights[1:]))
    ws = _scales(random, *([filters] if per_channel else []))
    wz = _numbers(random, (filters,) if per_channel else (), of_w) if signs != "s8s8" else np.zeros(ws.shape, of_w)
    operands = {
        "x": _numbers(random, shape, of_x), "xs": _scales(random), "xz": _numbers(random, (), of_x),
        "w": _numbers(random, weights, of_w), "ws": ws, "wz": wz,
        "ys": _scales(random, about=0.02 * np.sqrt(terms)), "yz": _numbers(random, (), of_x),
        "bias": random.integers(-5000, 5000, filters, np.int32) if bias else None,
    }  # fmt: skip
    return _case(
        f"conv-{name}-{signs}-{per_channel}-{bias}-{len(free)}", "QLinearConv", operands, free, of_x, **attributes
    )


def _product(name: str, signs: str, by: str = "tensor", free: tuple[str, ...] = ("a",)) -> NodeCase:
    one, other = PRODUCTS[name]
    random = np.random.default_rng(len(name))
    of_a, of_b = SIGNS[signs]
    rows = {"tensor": (), "column": (), "row": one[-2:-1], "rows": (*one[:-1], 1)}[by]
    columns = {"tensor": (), "column": other[-1:], "row": (), "rows": (*other[:-2], 1, other[-1])}[by]
    operands = {
        "a": _numbers(random, one, of_a), "as": _scales(random, *rows), "az": _numbers(random, rows, of_a),
        "b": _numbers(random, other, of_b), "bs": _scales(random, *columns), "bz": _numbers(random, columns, of_b),
        "ys": _scales(random, about=0.05 * np.sqrt(one[-1])), "yz": _numbers(random, (), of_a),
    }  # fmt: skip
    return _case(f"product-{name}-{signs}-{by}-{len(free)}", "QLinearMatMul", operands, free, of_a)


def _sums(name: str, signs: str, zeros: bool, by: str = "tensor") -> NodeCase:
    random = np.random.default_rng(len(name))
    of_x, of_w = SIGNS[signs]
    if name in CONVOLUTIONS:
        shape, weights, attributes = CONVOLUTIONS[name]
        op, rows, columns = "ConvInteger", (), (weights[0],) if by == "column" else ()
    else:
        (shape, weights), attributes, op = PRODUCTS[name], {}, "MatMulInteger"
        rows, columns = (shape[-2:-1] if by == "row" else ()), (weights[-1:] if by == "column" else ())
    operands = {
        "x": _numbers(random, shape, of_x), "w": _numbers(random, weights, of_w),
        "xz": _numbers(random, rows, of_x) if zeros else None, "wz": _numbers(random, columns, of_w) if zeros else None,
    }  # fmt: skip
    return _case(f"{op}-{name}-{signs}-{zeros}-{by}", op, operands, ("x",), "int32", **attributes)


def _cases() -> list[NodeCase]:
    every = ("x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "bias")
    signs = list(SIGNS)
    cases = [_convolution(name, signs[n % 4]) for n, name in enumerate(CONVOLUTIONS)]
    cases += [
        _convolution(name, signs[(n + 1) % 4], per_channel=False, bias=False) for n, name in enumerate(CONVOLUTIONS)
    ]
    cases += [_convolution("grouped", each, free=every) for each in SIGNS]
    cases += [_product(name, signs[n % 4]) for n, name in enumerate(PRODUCTS)]
    cases += [_product(name, "u8s8", "column") for name in ("matrices", "one-row", "batches", "vector-matrix")]
    cases += [
        _product("matrices", "u8u8", "row"),
        _product("batches", "s8s8", "rows"),
        _product("matrix-vector", "u8u8", "row"),
    ]
    cases += [
        _product(name, "s8u8", "rows", ("a", "as", "az", "b", "bs", "bz", "ys")) for name in ("batches", "matrices")
    ]
    cases += [
        _sums(name, signs[n % 4], n % 2 == 0)
        for n, name in enumerate(("2-d", "depthwise", "1-d", "matrices", "batches"))
    ]
    return [
        *cases,
        _sums("2-d", "u8s8", True, "column"),
        _sums("matrices", "u8u8", True, "column"),
        _sums("matrices", "u8u8", True, "row"),
    ]


def test_integer_nodes_compute_the_exact_numbers(tmp_path: Path) -> None:
    check_exact(_cases(), HOST, tmp_path)


@pytest.mark.parametrize("name", EMULATED)
def test_every_target_computes_the_same_numbers(name: str, tmp_path: Path) -> None:
    target = get_target(name)
    if not how_to_run(target).command:
        pytest.skip(how_to_run(target).how)
    wanted = ("2-d", "depthwise", "grouped")
    check_exact(
        [_convolution(each, "u8s8") for each in wanted] + [_product("matrices", "s8s8", "column")], target, tmp_path
    )


def check_exact(cases: list[NodeCase], target: Target, folder: Path) -> None:
    outcomes = compile_and_run(cases, ("legalize", "fold-constant", "fuse-operators", "share"), folder, target)
    assert {
        case.name: str(outcomes[case.name])[:200] for case in cases if not is_exact(case, outcomes[case.name].outputs)
    } == {}


def is_exact(case: NodeCase, results: tuple[np.ndarray, ...]) -> bool:
    """Tell whether results are the case's, element by element."""
    pairs = list(zip(results, case.outputs))
    same = [got.dtype == expected.dtype and np.array_equal(got, expected) for got, expected in pairs]
    return len(results) == len(case.outputs) and all(same)


def test_the_oracle_is_onnx_runtime_where_that_does_not_saturate() -> None:
    cases = [_convolution(name, "u8u8") for name in ("1-d", "2-d", "grouped", "depthwise")]
    cases += [
        _convolution("same-upper", "s8s8", per_channel=False),
        _product("batches", "u8u8"),
        _product("matrices", "s8s8", "column"),
    ]
    for case in cases:
        np.testing.assert_array_equal(run(case.model, case.inputs)[0], case.outputs[0], case.name)
