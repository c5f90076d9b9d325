"""Build programs with real kernels by hand, to test the library without lowering a model."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from passfit.codegen import c_identifier, symbol
from passfit.memory import Bank
from passfit.program import Buffer, Port, Program, Step, Tensor, Weight
from passfit.targets import Target


@dataclass(frozen=True)
class Plan:
    """Part of an arena plan read by codegen."""

    offsets: tuple[int, ...]
    arena: int
    banks: tuple[Bank, ...] = ()


@dataclass(frozen=True)
class Model:
    """Program with all arguments of write_library and verify_library."""

    program: Program
    plan: Plan
    workspace: int
    weights: list[np.ndarray]
    kernels: dict
    onnx: onnx.ModelProto


def build_object(kernels: dict, name: str, target: Target, path: Path) -> Path:
    """Compile PrimFuncs into one object, under the symbols codegen expects."""
    from passfit.codegen import objects

    prefix = c_identifier(name)
    objects.build_object({symbol(prefix, kernel): function for kernel, function in kernels.items()}, target, path)
    return path


def matmul_exp(rows: int = 4, inner: int = 6, columns: int = 5) -> Model:
    """Make x → matmul with a weight → exp(−|y|).

    The matmul's result is transposed twice, so it keeps a workspace. The second output is the input itself, the third the
    weight, the fourth a flat view of the first.
    """
    from tvm import te, tirx

    x = te.placeholder((rows, inner), name="x")
    w = te.placeholder((inner, columns), name="w")
    k = te.reduce_axis((0, inner), name="k")
    product = te.compute((rows, columns), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="product")
    mirrored = te.compute(
        (rows, columns), lambda i, j: product[rows - 1 - i, j] * tirx.const(0.5, "float32"), name="mirrored"
    )
    y = te.placeholder((rows, columns), name="y")
    bell = te.compute((rows, columns), lambda i, j: tirx.exp(-tirx.abs(y[i, j])), name="bell")
    kernels = {"matmul": te.create_prim_func([x, w, mirrored]), "bell": te.create_prim_func([y, bell])}

    weight = np.random.default_rng(1).standard_normal((inner, columns)).astype(np.float32)
    sizes = (rows * inner * 4, rows * columns * 4, rows * columns * 4)
    program = Program(
        name="matmul-exp",
        steps=(Step("matmul", (0, 1), (2,)), Step("bell", (2,), (3,))),
        tensors=(
            Tensor((rows, inner), "float32", buffer=0),
            Tensor((inner, columns), "float32", weight=0),
            Tensor((rows, columns), "float32", buffer=1),
            Tensor((rows, columns), "float32", buffer=2),
            Tensor((rows * columns,), "float32", buffer=2),
        ),
        buffers=tuple(Buffer(n, s) for n, s in zip(("x */ ??/", "product", "y\nnext"), sizes, strict=True)),
        weights=(Weight("w", weight.nbytes, hashlib.sha256(weight.tobytes()).hexdigest()),),
        inputs=(Port("x */ ??/", 0),),
        outputs=(Port("y\nnext", 3), Port("same", 0), Port("weight", 1), Port("flat", 4)),
    )
    plan = _side_by_side(sizes)
    return Model(program, plan, _round(rows * columns * 4), [weight], kernels, _matmul_exp_onnx(program, weight))


def over_two_memories() -> Model:
    """Make `matmul_exp` with its input in one memory of the board AN386, and the rest in another."""
    model = matmul_exp()
    return replace(model, plan=replace(model.plan, banks=(Bank("ssram23", 128), Bank("psram", model.plan.arena - 128))))


def empty_program() -> Model:
    """Make a program without steps: a scalar input is the output, beside a weight."""
    weight = np.arange(3, dtype=np.int64)
    program = Program(
        name="empty",
        steps=(),
        tensors=(Tensor((), "bool", buffer=0), Tensor((3,), "int64", weight=0)),
        buffers=(Buffer("flag", 1),),
        weights=(Weight("w", weight.nbytes, "0"),),
        inputs=(Port("flag", 0),),
        outputs=(Port("same", 0), Port("constant", 1)),
    )
    graph = helper.make_graph(
        [helper.make_node("Identity", ["flag"], ["same"]), helper.make_node("Identity", ["w"], ["constant"])],
        "empty",
        [helper.make_tensor_value_info("flag", TensorProto.BOOL, [])],
        [
            helper.make_tensor_value_info("same", TensorProto.BOOL, []),
            helper.make_tensor_value_info("constant", TensorProto.INT64, [3]),
        ],
        [numpy_helper.from_array(weight, "w")],
    )
    return Model(program, Plan((0,), 64), 0, [weight], {}, _model(graph))


def comparison() -> Model:
    """Make two inputs of different dtypes → bool: x[i] > i-th of the int64 input."""
    from tvm import te

    x, limit = te.placeholder((7,), name="x"), te.placeholder((7,), dtype="int64", name="limit")
    above = te.compute((7,), lambda i: x[i] > limit[i].astype("float32"), name="above")
    program = Program(
        name="comparison",
        steps=(Step("above", (0, 1), (2,)),),
        tensors=(Tensor((7,), "float32", buffer=0), Tensor((7,), "int64", buffer=1), Tensor((7,), "bool", buffer=2)),
        buffers=(Buffer("x", 28), Buffer("limit", 56), Buffer("above", 7)),
        weights=(),
        inputs=(Port("x", 0), Port("limit", 1)),
        outputs=(Port("above", 2),),
    )
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["limit"], ["limit32"], to=TensorProto.FLOAT),
            helper.make_node("Greater", ["x", "limit32"], ["above"]),
        ],
        "comparison",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [7]),
            helper.make_tensor_value_info("limit", TensorProto.INT64, [7]),
        ],
        [helper.make_tensor_value_info("above", TensorProto.BOOL, [7])],
    )
    kernels = {"above": te.create_prim_func([x, limit, above])}
    return Model(program, _side_by_side((28, 56, 7)), 0, [], kernels, _model(graph))


def whole_numbers() -> Model:
    """Make a kernel of int64 and float32: quotient, remainder and conversions, which 32-bit cpus lack."""
    from tvm import te, tirx

    shape = (9,)
    n, x = te.placeholder(shape, dtype="int64", name="n"), te.placeholder(shape, name="x")
    three = tirx.const(3, "int64")
    mixed = te.compute(
        shape,
        lambda i: (
            tirx.truncdiv(n[i] * tirx.const(1000003, "int64"), three)
            + (x[i] * tirx.const(1000, "float32")).astype("int64")
        ),
        name="mixed",
    )
    program = Program(
        name="whole-numbers",
        steps=(Step("mixed", (0, 1), (2,)), Step("widen", (2,), (3,))),
        tensors=tuple(Tensor(shape, d, buffer=i) for i, d in enumerate(("int64", "float32", "int64", "float32"))),
        buffers=tuple(Buffer(n_, s) for n_, s in (("n", 72), ("x", 36), ("mixed", 72), ("wide", 36))),
        weights=(),
        inputs=(Port("n", 0), Port("x", 1)),
        outputs=(Port("mixed", 2), Port("wide", 3)),
    )
    m = te.placeholder(shape, dtype="int64", name="m")
    wide = te.compute(shape, lambda i: m[i].astype("float32"), name="wide")
    constants = {
        "million": np.array(1000003, np.int64),
        "three": np.array(3, np.int64),
        "k": np.array(1000, np.float32),
    }
    nodes = [
        helper.make_node("Mul", ["n", "million"], ["big"]),
        helper.make_node("Div", ["big", "three"], ["third"]),
        helper.make_node("Mul", ["x", "k"], ["xk"]),
        helper.make_node("Cast", ["xk"], ["whole"], to=TensorProto.INT64),
        helper.make_node("Add", ["third", "whole"], ["mixed"]),
        helper.make_node("Cast", ["mixed"], ["wide"], to=TensorProto.FLOAT),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "whole-numbers",
        [value("n", TensorProto.INT64, shape), value("x", TensorProto.FLOAT, shape)],
        [value("mixed", TensorProto.INT64, shape), value("wide", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(constant, name) for name, constant in constants.items()],
    )
    kernels = {"mixed": te.create_prim_func([n, x, mixed]), "widen": te.create_prim_func([m, wide])}
    return Model(program, _side_by_side((72, 36, 72, 36)), 0, [], kernels, _model(graph))


def _round(size: int) -> int:
    return -(-size // 64) * 64


def _side_by_side(sizes: tuple[int, ...]) -> Plan:
    offsets, end = [], 0
    for size in sizes:
        offsets.append(end)
        end += _round(size)
    return Plan(tuple(offsets), end)


def _matmul_exp_onnx(program: Program, weight: np.ndarray) -> onnx.ModelProto:
    x, y = program.inputs[0].name, program.outputs[0].name
    rows = program.tensors[0].shape[0]
    constants = {
        "w": weight,
        "half": np.array(0.5, np.float32),
        "order": np.arange(rows)[::-1].astype(np.int64),
        "all": np.array([-1], np.int64),
    }
    nodes = [
        helper.make_node("MatMul", [x, "w"], ["product"]),
        helper.make_node("Mul", ["product", "half"], ["halved"]),
        helper.make_node("Gather", ["halved", "order"], ["mirrored"], axis=0),
        helper.make_node("Abs", ["mirrored"], ["size"]),
        helper.make_node("Neg", ["size"], ["below"]),
        helper.make_node("Exp", ["below"], [y]),
        helper.make_node("Identity", [x], ["same"]),
        helper.make_node("Identity", ["w"], ["weight"]),
        helper.make_node("Reshape", [y, "all"], ["flat"]),
    ]
    outputs = [
        helper.make_tensor_value_info(port.name, TensorProto.FLOAT, program.tensors[port.tensor].shape)
        for port in program.outputs
    ]
    inputs = [helper.make_tensor_value_info(x, TensorProto.FLOAT, program.tensors[0].shape)]
    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    return _model(helper.make_graph(nodes, "matmul-exp", inputs, outputs, initializers))


def _model(graph: onnx.GraphProto) -> onnx.ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
