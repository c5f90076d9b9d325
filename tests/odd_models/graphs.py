"""Odd models of which each is built from nodes: dtypes, sizes, structures, attributes, chains, names, values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Value = onnx.ValueInfoProto
value = helper.make_tensor_value_info
node = helper.make_node


@dataclass(frozen=True)
class Odd:
    """`write(folder)` makes the model's files in a folder and returns the MODEL argument; `options` follow it."""

    name: str
    write: Callable[[Path], str]
    options: tuple[str, ...] = field(default=())


def model(
    nodes: Sequence[onnx.NodeProto], inputs: Sequence[Value], outputs: Sequence[Value],
    weights: Sequence[TensorProto] = (), opset: int = 17, ir_version: int = 8,
) -> onnx.ModelProto:  # fmt: skip
    graph = helper.make_graph(list(nodes), "odd", list(inputs), list(outputs), list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def saved(made: onnx.ModelProto, file: str = "odd.onnx") -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        (folder / file).write_bytes(made.SerializeToString(deterministic=True))
        return file

    return write


def weight(name: str, array: object, dtype: type = np.float32) -> TensorProto:
    return numpy_helper.from_array(np.asarray(array, dtype), name)


def declared(name: str, dims: Sequence[int], dtype: int = FLOAT, data: bytes = b"") -> TensorProto:
    """Make a tensor whose header says more than its data hold."""
    return TensorProto(name=name, dims=dims, data_type=dtype, raw_data=data)


def x(*shape: object, dtype: int = FLOAT) -> Value:
    return value("x", dtype, shape)


def y(dtype: int = FLOAT, shape: object = None) -> Value:
    return value("y", dtype, shape)


def small_cnn() -> onnx.ModelProto:
    """Build a network of eleven nodes with few weights, so that most bytes are structure."""
    random = np.random.RandomState(0)
    shapes = {"w1": (2, 1, 3, 3), "w2": (2, 2, 1, 1), "w3": (2, 3)}
    return model(
        [node("Conv", ["x", "w1"], ["a"], name="first", pads=[1, 1, 1, 1]), node("Relu", ["a"], ["b"]),
         node("Conv", ["b", "w2"], ["c"], name="second"), node("Add", ["c", "b"], ["d"]),
         node("MaxPool", ["d"], ["e"], kernel_shape=[2, 2], strides=[2, 2]), node("Sigmoid", ["e"], ["f"]),
         node("Concat", ["e", "f"], ["g"], axis=1), node("Slice", ["g", "from", "to"], ["h"]),
         node("GlobalAveragePool", ["h"], ["i"]), node("Reshape", ["i", "shape"], ["j"]), node("MatMul", ["j", "w3"], ["y"])],
        [x(1, 1, 8, 8)], [y(shape=(1, 3))],
        [weight(name, random.randn(*shape)) for name, shape in shapes.items()]
        + [weight("from", [0, 1], np.int64), weight("to", [9, 3], np.int64), weight("shape", [1, -1], np.int64)],
    )  # fmt: skip


def small_recurrent() -> onnx.ModelProto:
    random = np.random.RandomState(1)
    return model(
        [node("LSTM", ["x", "W", "R"], ["a"], hidden_size=2), node("Squeeze", ["a", "axes"], ["b"]), node("Tanh", ["b"], ["y"])],
        [x(3, 1, 2)], [y(shape=(3, 1, 2))],
        [weight("W", random.randn(1, 8, 2)), weight("R", random.randn(1, 8, 2)), weight("axes", [1], np.int64)],
    )  # fmt: skip


def dtypes() -> Iterator[Odd]:
    for name, number in sorted(TensorProto.DataType.items()):
        made = model([node("Add", ["x", "x"], ["y"])], [x(2, 3, dtype=number)], [y(number)], opset=21, ir_version=11)
        yield Odd(f"dtype {name}", saved(made))
    yield Odd("dtype 99", saved(model([node("Relu", ["x"], ["y"])], [x(2, dtype=99)], [y()])))
    mixed = model([node("Add", ["x", "w"], ["y"])], [x(2)], [y()], [weight("w", [1, 2], np.int32)])
    yield Odd("two dtypes in an addition", saved(mixed))
    yield Odd(
        "a result of another dtype than said", saved(model([node("Relu", ["x"], ["y"])], [x(2)], [y(INT64, (2,))]))
    )
    for word, kind in (
        ("sequence", helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [2]))),
        ("optional", helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, [2]))),
        ("map", helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, [2]))),
        ("sparse", helper.make_sparse_tensor_type_proto(FLOAT, [2])),
        ("nothing", onnx.TypeProto()),
    ):
        given = model(
            [node("Identity", ["x"], ["y"])], [helper.make_value_info("x", kind)], [helper.make_value_info("y", kind)]
        )
        yield Odd(f"an input that is a {word}", saved(given))


def sizes() -> Iterator[Odd]:
    big = 2**62
    for shape in ((0,), (0, 4), (-1, 4), (4, -1), (2**31, 2), (2**40,), (big, 4), (big, 4, 4), (2**63 - 1,), (2**62,) * 18, (2**32, 2**32),
                  (2**32, 2**32, 0), (2**20, 2**10), (), (1,) * 8, (1,) * 40):  # fmt: skip
        said = (
            "x".join(map(str, shape if len(shape) < 9 else (len(shape), "ones" if shape[0] == 1 else "huge")))
            or "scalar"
        )
        yield Odd(f"an input of {said}", saved(model([node("Relu", ["x"], ["y"])], [x(*shape)], [y()])))
    for name, dims, data in (
        ("no data", (4,), b""), ("data of another size", (4,), b"\0" * 12), ("a negative size", (-4,), b"\0" * 16),
        ("2^62 rows", (big, 4), b""), ("a product of sizes over 2^64", (2**33, 2**33), b"\0" * 16), ("no elements", (0,), b""),
    ):  # fmt: skip
        made = model([node("Add", ["x", "w"], ["y"])], [x(1)], [y()], [declared("w", dims, data=data)])
        yield Odd(f"weights of {name}", saved(made))
    for op, sized in (
        ("Tile", [big, 2]), ("Expand", [2**40, 2]), ("ConstantOfShape", [big, 8]), ("ConstantOfShape", [-3]), ("Reshape", [-1, -1]),
        ("Reshape", [7, 7]), ("Reshape", [0, 0, 0]), ("Tile", [-1, 1]), ("Tile", [0, 1]), ("Expand", [5, 7]),
        ("ConstantOfShape", [1 << 29]), ("Tile", [1 << 23, 1]),
    ):  # fmt: skip
        reads = ["s"] if op == "ConstantOfShape" else ["x", "s"]
        nodes = (
            [node(op, reads, ["a"]), node("Add", ["a", "x"], ["y"])] if len(reads) == 1 else [node(op, reads, ["y"])]
        )
        yield Odd(f"{op} by {sized}", saved(model(nodes, [x(2, 2)], [y()], [weight("s", sized, np.int64)])))
    for said, numbers in (("an endless", (0, 10, 0)), ("a long", (0, 2**40, 1)), ("a backward", (5, 0, 1))):
        made = [
            node("Range", ["a", "b", "c"], ["r"]),
            node("Cast", ["r"], ["f"], to=FLOAT),
            node("Add", ["f", "x"], ["y"]),
        ]
        consts = [weight(name, each, np.int64) for name, each in zip("abc", numbers)]
        yield Odd(f"{said} range", saved(model(made, [x(1)], [y()], consts)))


def attributes() -> Iterator[Odd]:
    image = x(1, 2, 8, 8)
    kernel = [weight("w", np.ones((2, 2, 3, 3)))]
    for said, wrong in {
        "strides of 0": {"strides": [0, 0]}, "strides of -1": {"strides": [-1, 1]}, "group of 0": {"group": 0}, "group of 3": {"group": 3},
        "group of -1": {"group": -1}, "dilations of 2^40": {"dilations": [2**40, 1]}, "dilations of 0": {"dilations": [0, 1]},
        "pads of -9": {"pads": [-9, 0, 0, 0]}, "pads of 2^40": {"pads": [2**40] * 4}, "three pads": {"pads": [1, 1, 1]},
        "a kernel of floats": {"kernel_shape": [3.0, 3.0]}, "a kernel of text": {"kernel_shape": "3x3"}, "another kernel": {"kernel_shape": [5, 5]},
        "auto_pad of nonsense": {"auto_pad": "MAYBE"}, "an unknown attribute": {"mood": 1},
    }.items():  # fmt: skip
        yield Odd(f"Conv with {said}", saved(model([node("Conv", ["x", "w"], ["y"], **wrong)], [image], [y()], kernel)))
    for op, said, wrong in (
        ("Transpose", "a wrong perm", {"perm": [0, 1, 2, 9]}), ("Transpose", "a perm twice", {"perm": [0, 0, 1, 1]}),
        ("Softmax", "axis 99", {"axis": 99}), ("Softmax", "a text for an axis", {"axis": "last"}), ("Flatten", "axis -9", {"axis": -9}),
        ("Cast", "dtype 99", {"to": 99}), ("Cast", "no dtype", {}), ("MaxPool", "no kernel", {}), ("MaxPool", "kernel 0", {"kernel_shape": [0, 0]}),
        ("MaxPool", "a kernel over the image", {"kernel_shape": [99, 99]}), ("LeakyRelu", "alpha nan", {"alpha": float("nan")}),
        ("Einsum", "nonsense", {"equation": "a->->b"}), ("LRN", "size 0", {"size": 0}), ("DepthToSpace", "blocks of 3", {"blocksize": 3}),
        ("DepthToSpace", "blocks of 0", {"blocksize": 0}), ("ReduceMax", "axis 99", {"axes": [99]}),
    ):  # fmt: skip
        yield Odd(f"{op} with {said}", saved(model([node(op, ["x"], ["y"], **wrong)], [image], [y()])))
    for op, said, numbers, others in (
        ("Slice", "step 0", [[0], [4], [1], [0]], {}), ("Slice", "axis 9", [[0], [4], [9], [1]], {}), ("Gather", "index 99", [[99]], {}),
        ("Split", "parts that are too many", [[5, 5]], {"axis": 1}), ("Squeeze", "axis of size 8", [[2]], {}), ("Pad", "-20", [[-20] * 8], {}),
        ("Unsqueeze", "axis 99", [[99]], {}), ("Unsqueeze", "an axis twice", [[0, 0]], {}),
    ):  # fmt: skip
        given = [weight(f"n{place}", each, np.int64) for place, each in enumerate(numbers)]
        made = node(op, ["x", *(each.name for each in given)], ["y"], **others)
        yield Odd(f"{op} with {said}", saved(model([made], [image], [y()], given)))
    for scales in ([1, 1, 0, 0], [1, 1, 1e9, 1e9], [1, 1, -1, 1], [1, 1, float("nan"), 1], [1]):
        made = node("Resize", ["x", "", "s"], ["y"], mode="nearest")
        yield Odd(f"Resize by {scales}", saved(model([made], [image], [y()], [weight("s", scales)])))
    yield Odd(
        "MatMul of wrong sizes",
        saved(model([node("MatMul", ["x", "w"], ["y"])], [image], [y()], [weight("w", np.ones((3, 3)))])),
    )


def chains() -> Iterator[Odd]:
    def chain(count: int, step: Callable[[int, str, str], list[onnx.NodeProto]]) -> onnx.ModelProto:
        names = ["x", *(f"t{i}" for i in range(count - 1)), "y"]
        return model([each for i in range(count) for each in step(i, names[i], names[i + 1])], [x(1, 16)], [y()])

    yield Odd(
        "300 unary nodes", saved(chain(300, lambda i, a, b: [node(("Relu", "Sigmoid", "Tanh")[i % 3], [a], [b])]))
    )
    yield Odd("t + t 30 times", saved(chain(30, lambda i, a, b: [node("Add", [a, a], [b])])))
    swish = chain(16, lambda i, a, b: [node("Sigmoid", [a], [f"s{i}"]), node("Mul", [a, f"s{i}"], [b])])
    yield Odd("x sigmoid(x) 16 times", saved(swish))
    two = chain(
        24,
        lambda i, a, b: [
            node("Tanh", [a], [f"p{i}"]),
            node("Abs", [a], [f"q{i}"]),
            node("Sub", [f"p{i}", f"q{i}"], [b]),
        ],
    )
    yield Odd("a ladder of 24 diamonds", saved(two))
    yield Odd(
        "1000 element-wise nodes", saved(chain(1000, lambda i, a, b: [node("Relu" if i % 2 else "Neg", [a], [b])]))
    )
    many = [f"x{i}" for i in range(200)]
    yield Odd(
        "200 inputs",
        saved(model([node("Concat", many, ["y"], axis=0)], [value(each, FLOAT, [2]) for each in many], [y()])),
    )
    outs = [f"y{i}" for i in range(100)]
    yield Odd(
        "100 outputs",
        saved(
            model(
                [node("Add", ["x", "x"], [each]) for each in outs], [x(4)], [value(each, FLOAT, None) for each in outs]
            )
        ),
    )


NAMES = {
    "Chinese": "输入", "an emoji": "🦙", "a C keyword": "return", "a C function": "main", "a path": "../../etc/passwd", "NUL": "a\0b",
    "nothing": "", "10000 letters": "n" * 10000, "a format": "%s%n%d{}{0}", "quotes": "\"'`\\", "lines": "a\nb\r\tc", "a C comment": "*/ x /*",
    "a trigraph": "??/", "a template": "{{ 7*7 }}{% if %}", "markup": "[red]x[/red][/]", "a shell": "$(touch owned);`id`", "spaces": "  ", "digits": "12",
    "a surrogate's neighbour": "\uffff\u202e",
}  # fmt: skip


def names() -> Iterator[Odd]:
    for said, name in NAMES.items():
        made = model(
            [node("Relu", [name], [f"{name}o"], name=name)], [value(name, FLOAT, [2])], [value(f"{name}o", FLOAT, [2])]
        )
        yield Odd(f"names that are {said}", saved(made))
        file = "".join(letter for letter in name if letter not in "\0/")[:200]
        if file.strip("."):
            yield Odd(
                f"a file whose name is {said}",
                saved(model([node("Relu", ["x"], ["y"])], [x(2)], [y()]), f"{file}.onnx"),
            )
    alike = ["a.b", "a_b", "a/b", "a:b"]
    sums = [node("Relu", [each], [f"{each}!"], name="n") for each in alike]
    yield Odd("names that differ in signs only", saved(model(
        [*sums, node("Sum", [f"{each}!" for each in alike], ["y"])], [value(each, FLOAT, [2]) for each in alike], [y()])))  # fmt: skip
    yield Odd(
        "a name with an equals sign",
        saved(model([node("Relu", ["a=b"], ["y"])], [value("a=b", FLOAT, ["n"])], [y()])),
        ("--shape", "a=b=3"),
    )


def values() -> Iterator[Odd]:
    for said, number in (("nan", np.nan), ("inf", np.inf), ("-inf", -np.inf), ("1e38", 1e38), ("1e-45", 1e-45)):
        made = model(
            [node("Gemm", ["x", "w"], ["a"]), node("Relu", ["a"], ["y"])],
            [x(2, 3)],
            [y()],
            [weight("w", np.full((3, 4), number))],
        )
        yield Odd(f"weights of {said}", saved(made))
    for op in ("Sqrt", "Log", "Reciprocal", "Acosh"):
        yield Odd(f"{op} of any number", saved(model([node(op, ["x"], ["y"])], [x(4)], [y()])))
    zero = model([node("Div", ["x", "z"], ["y"])], [x(4, dtype=INT64)], [y(INT64)], [weight("z", [0], np.int64)])
    yield Odd("a division of integers by 0", saved(zero))
