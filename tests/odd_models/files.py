"""Odd models that no builder makes: bytes flipped and cut, files of other formats, broken structures, side files."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from .graphs import FLOAT, INT64, Odd, declared, model, node, saved, small_cnn, small_recurrent, value, weight, x, y

_RELU = [node("Relu", ["x"], ["y"])]


def written(content: bytes, file: str = "odd.onnx") -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        (folder / file).write_bytes(content)
        return file

    return write


def damaged() -> Iterator[Odd]:
    """Single bits and whole bytes flipped at seeded places, and cuts."""
    for name, made, flips, cuts in (("cnn", small_cnn(), 28, 8), ("lstm", small_recurrent(), 12, 4)):
        whole = made.SerializeToString(deterministic=True)
        random = np.random.RandomState(2)
        for number in range(flips):
            place, mask = random.randint(len(whole)), 0xFF if number % 2 else 1 << random.randint(8)
            flipped = bytearray(whole)
            flipped[place] ^= mask
            yield Odd(f"{name}, byte {place} ^ {mask:#04x}", written(bytes(flipped)))
        for number in range(1, cuts + 1):
            kept = len(whole) * number // (cuts + 1)
            yield Odd(f"{name}, cut to {kept} bytes", written(whole[:kept]))
        yield Odd(f"{name}, twice in one file", written(whole + whole))


def formats() -> Iterator[Odd]:
    """Files that hold something else, or are not files."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("model.onnx", small_cnn().SerializeToString())
    for said, content in {
        "a PNG": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\b\2\0\0\0\x90wS\xde", "a zip": archive.getvalue(), "nothing": b"",
        "JSON": b'{"ir_version": 8}\n', "an ELF program": b"\x7fELF\2\1\1" + b"\0" * 60, "TFLite": b"\x1c\0\0\0TFL3" + b"\0" * 60,
        "zeros": b"\0" * 999, "ones": b"\xff" * 999, "text of ONNX": str(small_cnn()).encode(), "a pickle": b"\x80\x04}\x94.",
        "lengths without end": b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "groups in groups": b"\x3b" * 5000,
        "an empty graph": onnx.ModelProto(ir_version=8, graph=onnx.GraphProto()).SerializeToString(),
    }.items():  # fmt: skip
        yield Odd(f"a file of {said}", written(content))

    def folder(where: Path) -> str:
        (where / "folder.onnx").mkdir()
        return "folder.onnx"

    def fifo(where: Path) -> str:
        os.mkfifo(where / "fifo.onnx")
        return "fifo.onnx"

    def loop(where: Path) -> str:
        (where / "loop.onnx").symlink_to("loop.onnx")
        return "loop.onnx"

    places = {"a folder": folder, "a FIFO": fifo, "a link to itself": loop, "no file": lambda _: "none.onnx", "/dev/zero": lambda _: "/dev/zero",
              "a name of 5000 letters": lambda _: "n" * 5000, "a name with NUL": lambda _: "pypi:a==1!\\b", "an empty name": lambda _: ""}  # fmt: skip
    for said, write in places.items():
        yield Odd(said, write)


def structures() -> Iterator[Odd]:
    relu = node("Relu", ["x"], ["y"])
    two = weight("w", [1, 2])
    for said, made in {
        "no nodes, an output that is an input": model([], [x(2)], [x(2)]),
        "no nodes, an output that is a weight": model([], [], [value("w", FLOAT, [2])], [two]),
        "no outputs": model([relu], [x(2)], []), "no inputs": model([node("Relu", ["w"], ["y"])], [], [y()], [two]),
        "an input that is also an output": model([relu], [x(2)], [x(2), y()]),
        "an output given twice": model([relu], [x(2)], [y(), y()]), "an input given twice": model([relu], [x(2), x(2)], [y()]),
        "an input given twice with two shapes": model([relu], [x(2), x(3)], [y()]),
        "two nodes make one value": model([relu, node("Neg", ["x"], ["y"])], [x(2)], [y()]),
        "a node makes an input": model([node("Relu", ["w"], ["x"]), relu], [x(2)], [y()], [two]),
        "a cycle": model([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Neg", ["b"], ["y"])], [x(2)], [y()]),
        "a node that reads itself": model([node("Add", ["x", "y"], ["y"])], [x(2)], [y()]),
        "unsorted nodes": model([node("Neg", ["a"], ["y"]), node("Relu", ["x"], ["a"])], [x(2)], [y()]),
        "a value nobody makes": model([node("Add", ["x", "ghost"], ["y"])], [x(2)], [y()]),
        "an output nobody makes": model([relu], [x(2)], [value("ghost", FLOAT, [2])]),
        "no operator": model([node("", ["x"], ["y"])], [x(2)], [y()]), "an unknown operator": model([node("Rellu", ["x"], ["y"])], [x(2)], [y()]),
        "an unknown domain": model([node("Relu", ["x"], ["y"], domain="my")], [x(2)], [y()]),
        "a missing input": model([node("Add", ["x", ""], ["y"])], [x(2)], [y()]), "no inputs of a node": model([node("Add", [], ["y"])], [x(2)], [y()]),
        "too many inputs of a node": model([node("Relu", ["x", "x", "x"], ["y"])], [x(2)], [y()]),
        "too many results": model([node("Relu", ["x"], ["y", "z", "q"])], [x(2)], [y()]),
        "a node without results": model([relu, node("Relu", ["x"], [])], [x(2)], [y()]),
        "an unused input": model([relu], [x(2), value("u", FLOAT, [3])], [y()]), "unused weights": model([relu], [x(2)], [y()], [two]),
        "weights given twice": model([node("Add", ["x", "w"], ["y"])], [x(2)], [y()], [two, weight("w", [3, 4])]),
        "a weight that is an input": model([node("Add", ["x", "w"], ["y"])], [x(2), value("w", FLOAT, [2])], [y()], [two]),
        "a weight without a name": model([relu], [x(2)], [y()], [weight("", [1])]),
        "text as weights": model([relu], [x(2)], [y()], [helper.make_tensor("w", TensorProto.STRING, [1], [b"a"])]),
        "an input without a rank": model([relu], [value("x", FLOAT, None)], [y()]), "an open size": model([relu], [x("n", 2)], [y()]),
        "identities only": model([node("Identity", ["x"], ["y"])], [x(2)], [y()]),
        "a reshape only": model([node("Flatten", ["x"], ["y"])], [x(2, 3, 4)], [y()]),
        "a shape only": model([node("Shape", ["x"], ["y"])], [x(2, 3)], [y(INT64)]),
        **{f"opset {number}": model(_RELU, [x(2)], [y()], opset=number) for number in (0, 1, 5, 999, -1)},
        **{f"IR version {number}": model(_RELU, [x(2)], [y()], ir_version=number) for number in (0, 1, 999, -1)},
    }.items():  # fmt: skip
        yield Odd(said, saved(made))
    sparse = model([node("Add", ["x", "w"], ["y"])], [x(4)], [y()])
    sparse.graph.sparse_initializer.append(
        helper.make_sparse_tensor(weight("w", [1, 2]), weight("", [0, 3], np.int64), [4])
    )
    yield Odd("sparse weights", saved(sparse))
    noset = model(_RELU, [x(2)], [y()])
    del noset.opset_import[:]
    yield Odd("no opset", saved(noset))
    calls = [node("Again", ["a"], ["b"], domain="f")]
    for said, body in (
        ("a function that calls itself", calls),
        ("a function without nodes", []),
        ("a function", [node("Neg", ["a"], ["b"])]),
    ):
        made = model([node("Again", ["x"], ["y"], domain="f")], [x(2)], [y()])
        made.opset_import.append(helper.make_opsetid("f", 1))
        made.functions.append(
            helper.make_function(
                "f", "Again", ["a"], ["b"], body, [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
            )
        )
        yield Odd(said, saved(made))


def branches() -> Iterator[Odd]:
    """Build `If` and `Loop` with bodies that fit, or do not."""

    def body(nodes: list, outputs: list, inputs: Sequence = ()) -> onnx.GraphProto:
        return helper.make_graph(nodes, "body", inputs, outputs)

    cond, out = value("c", TensorProto.BOOL, []), value("b", FLOAT, [2])
    good, other = body([node("Relu", ["x"], ["b"])], [out]), body([node("Neg", ["x"], ["b"])], [out])
    wide = body([node("Concat", ["x", "x"], ["b"], axis=0)], [value("b", FLOAT, [4])])
    for said, then, otherwise in (
        ("an If", good, other), ("an If without nodes in a branch", good, body([], [out])), ("an If of two shapes", good, wide),
        ("an If that reads a ghost", good, body([node("Neg", ["ghost"], ["b"])], [out])), ("an If without outputs", body([], []), body([], [])),
    ):  # fmt: skip
        made = node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)
        yield Odd(said, saved(model([made], [cond, x(2)], [y()])))
        yield Odd(f"{said}, by a constant", saved(model([made], [x(2)], [y()], [weight("c", True, np.bool_)])))
    yield Odd("an If without branches", saved(model([node("If", ["c"], ["y"])], [cond, x(2)], [y()])))
    nested = good
    for depth in range(25):
        nested = body([node("If", ["c"], ["b"], name=f"n{depth}", then_branch=nested, else_branch=other)], [out])
    yield Odd(
        "25 Ifs in each other",
        saved(model([node("If", ["c"], ["y"], then_branch=nested, else_branch=other)], [cond, x(2)], [y()])),
    )
    steps = [value("i", INT64, []), value("k", TensorProto.BOOL, []), value("s", FLOAT, [2])]
    turn = body(
        [node("Identity", ["k"], ["ko"]), node("Relu", ["s"], ["so"])],
        [value("ko", TensorProto.BOOL, []), value("so", FLOAT, [2])],
        steps,
    )
    for said, count in (("a Loop of 3", 3), ("a Loop of 0", 0), ("a Loop of 2^62", 2**62)):
        made = model([node("Loop", ["m", "", "x"], ["y"], body=turn)], [x(2)], [y()], [weight("m", count, np.int64)])
        yield Odd(said, saved(made))


def side_files() -> Iterator[Odd]:
    """Keep tensors in a file that is missing, outside, too short, or no file."""
    for said, location, offset, length in (
        ("missing", "none.bin", 0, 16), ("outside", "../outside.bin", 0, 16), ("absolute", "/etc/passwd", 0, 16), ("too short", "short.bin", 0, 16),
        ("begun past its end", "side.bin", 999, 16), ("begun before its start", "side.bin", -8, 16), ("of 2^62 bytes", "side.bin", 0, 2**62), ("begun at 10^20", "side.bin", 10**20, 16),
        ("a folder", ".", 0, 16), ("in order", "side.bin", 0, 16), ("without a name", "", 0, 16), ("a link outside", "link.bin", 0, 16),
    ):  # fmt: skip
        tensor = declared("w", (4,))
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in (("location", location), ("offset", str(offset)), ("length", str(length))):
            tensor.external_data.add(key=key, value=text)
        made = model([node("Add", ["x", "w"], ["y"])], [x(4)], [y()], [tensor])

        def write(folder: Path, made: onnx.ModelProto = made) -> str:
            (folder / "side.bin").write_bytes(np.ones(4, np.float32).tobytes())
            (folder / "short.bin").write_bytes(b"\0" * 3)
            (folder / "link.bin").symlink_to("/etc/passwd")
            return saved(made)(folder)

        yield Odd(f"a side file {said}", write)
