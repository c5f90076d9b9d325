"""Measure the memory that passfit itself takes to import and compile large models; write results/tool_memory.md.

    .venv/bin/python benchmarks/tool_memory.py [--mib 128] [--only layers]

Every process of a command is looked at each 30 ms: its pages, those that processes share by parts (Pss of smaps_rollup).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
from head import head, publish
from onnx import helper, numpy_helper

_SECONDS, _PADS = 0.03, [1, 1, 1, 1]
_IMPORT = "import sys; from pathlib import Path; from passfit.api import import_model_file; import_model_file(sys.argv[1], Path('o/m.onnx'))"
_COMPILE = ("compile", "m.onnx", "--target", "x86-64", "--strategy", "greedy", "--out", "o")


def layers(mib: int) -> onnx.ModelProto:
    """Return four dense layers of equal size."""
    width = int((mib << 16) ** 0.5)
    return _chain(4, [1, width], lambda chain: chain.layer("MatMul", chain.weight(width, width, width)))


def convolutions(mib: int) -> onnx.ModelProto:
    """Return 64 convolutions of equal size, on planes of 4 x 4."""
    channels = round((mib * (1 << 20) / 64 / 4 / 9) ** 0.5)
    weights = (9 * channels, channels, channels, 3, 3)
    return _chain(64, [1, channels, 4, 4], lambda chain: chain.layer("Conv", chain.weight(*weights), pads=_PADS))


def separable(mib: int) -> onnx.ModelProto:
    """Return 32 depthwise convolutions, each before one of points."""
    channels = round((mib * (1 << 20) / 32 / 4) ** 0.5)

    def add(chain: _Chain) -> None:
        chain.layer("Conv", chain.weight(9, channels, 1, 3, 3), pads=_PADS, group=channels)
        chain.layer("Conv", chain.weight(channels, channels, channels, 1, 1))

    return _chain(32, [1, channels, 4, 4], add)


def recurrent(mib: int) -> onnx.ModelProto:
    """Return four LSTMs of equal size, over six steps."""
    width = round((mib * (1 << 20) / 4 / 4 / 8) ** 0.5)

    def add(chain: _Chain) -> None:
        gates = (chain.weight(width, 1, 4 * width, width) for _ in range(2))
        chain.node("LSTM", *gates, hidden_size=width)
        chain.node("Squeeze", chain.constant(np.array([1])))

    return _chain(4, [6, 1, width], add)


def quantised(mib: int) -> onnx.ModelProto:
    """Return 32 convolutions of 8-bit integers, between nodes that quantise and dequantise."""
    channels = round((mib * (1 << 20) / 32 / 9) ** 0.5)
    small = np.float32(0.02 / (9 * channels) ** 0.5)

    def add(chain: _Chain) -> None:
        scale, fine, zero = (chain.constant(each) for each in (np.float32(0.05), small, np.int8(0)))
        chain.node("QuantizeLinear", scale, zero)
        chain.node("DequantizeLinear", scale, zero)
        weights = chain.constant(chain.drawn.integers(-127, 128, (channels, channels, 3, 3), np.int8))
        chain.layer("Conv", chain.value("DequantizeLinear", weights, fine, zero), pads=_PADS)

    return _chain(32, [1, channels, 4, 4], add)


class _Chain:
    """Nodes of which each reads the one before; `last` is the value of the latest."""

    def __init__(self) -> None:
        self.drawn, self.last = np.random.default_rng(0), "v0"
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, value: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), f"w{len(self.constants)}"))
        return self.constants[-1].name

    def weight(self, summed: int, *shape: int) -> str:
        """Draw weights of sums of so many products, which keep the scale of the data through a Relu."""
        return self.constant(self.drawn.standard_normal(shape, np.float32) * np.float32((2 / summed) ** 0.5))

    def value(self, operator: str, *operands: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(operator, operands, [f"v{len(self.nodes) + 1}"], **attributes))
        return self.nodes[-1].output[0]

    def node(self, operator: str, *operands: str, **attributes: object) -> None:
        self.last = self.value(operator, self.last, *operands, **attributes)

    def layer(self, operator: str, *operands: str, **attributes: object) -> None:
        self.node(operator, *operands, **attributes)
        self.node("Relu")


def _chain(count: int, data: list[int], add: Callable[[_Chain], None]) -> onnx.ModelProto:
    chain = _Chain()
    for _ in range(count):
        add(chain)
    first, last = (helper.make_tensor_value_info(name, 1, data) for name in ("v0", chain.last))
    graph = helper.make_graph(chain.nodes, "chain", [first], [last], chain.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


MODELS: dict[str, tuple[Callable[[int], onnx.ModelProto], bool]] = {
    "layers": (layers, False), "layers, side file": (layers, True), "convolutions": (convolutions, False),
    "depthwise and pointwise": (separable, False), "LSTM": (recurrent, False), "8-bit convolutions": (quantised, False),
}  # fmt: skip


def peak(command: list[str], folder: Path) -> int:
    """Run a command in a folder; return the most bytes that its processes have together."""
    environment = os.environ | {"PASSFIT_STORE": str(folder / "store"), "PASSFIT_CACHE": str(folder / "cache")}
    running, most = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL), 0
    while running.poll() is None:
        most = max(most, sum(map(_bytes, _tree(running.pid))))
        time.sleep(_SECONDS)
    if running.returncode:
        raise SystemExit(f"exit code {running.returncode}: {' '.join(command)}")
    return most


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:  # it ended
            continue
        for child in children:
            yield from _tree(int(child))


def _bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", type=int, default=128)
    parser.add_argument("--only")
    arguments = parser.parse_args()
    opening, rows = head().lines(".venv/bin/python benchmarks/tool_memory.py"), []
    for name, (build, beside) in MODELS.items():
        if arguments.only not in (None, name):
            continue
        found = []
        for command in (["-c", _IMPORT, "m.onnx"], *([] if beside else [["-m", "passfit.cli", *_COMPILE]])):
            with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
                onnx.save(
                    build(arguments.mib), Path(scratch) / "m.onnx", save_as_external_data=beside, location="m.data"
                )
                found.append(peak([sys.executable, *command], Path(scratch)) >> 20)
        limits = 2 * arguments.mib + 350, 4 * arguments.mib + 1024
        cells = " | ".join(f"{each:,} | {limit:,}" for each, limit in zip(found, limits)) + " | – | –" * beside
        rows.append(f"| {name} | {arguments.mib} | {cells} |")
        print(rows[-1], flush=True)
    text = [
        "# Memory of passfit itself", "", *opening, "",
        "MiB at the peak, of all processes of a command together, shared pages by parts. Asked for: an import of twice the",
        "weights and 350 MiB, a compilation of four times the weights and 1 GiB.", "",
        "| model | weights | import | asked | compile | asked |", "| --- | ---: | ---: | ---: | ---: | ---: |", *rows, "",
    ]  # fmt: skip
    publish("tool_memory", "\n".join(text), arguments.only is None)


if __name__ == "__main__":
    main()
