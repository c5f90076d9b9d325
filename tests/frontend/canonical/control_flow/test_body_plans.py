"""Plan the bodies of kept loops, and compare their libraries with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from passfit.frontend.imported_model import load
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence
from passfit.program import Loop, Program
from passfit.program.workspaces import largest_workspace
from passfit.targets import get_target

from ....models import model_of, save
from .built_bodies import check_library
from .test_unroll_loops import FLOAT, body, node

pytestmark = pytest.mark.tvm
TRIPS, STATE, WIDE = 40, 16, 1024
PORTS = {"h": (FLOAT, [1, STATE]), "xi": (FLOAT, [1, STATE])}


def _weights(*shapes: tuple[int, int]) -> list[np.ndarray]:
    random = np.random.default_rng(11)
    return [(random.standard_normal(shape) / 4).astype(np.float32) for shape in shapes]


def _scan(nodes: list[onnx.NodeProto], trips: int = TRIPS, **constants: np.ndarray) -> onnx.ModelProto:
    step = body([*nodes, node("Identity", "h2", "row")], PORTS, {"h2": PORTS["h"], "row": PORTS["h"]}, **constants)
    return model_of(
        [node("Scan", "h0 x", "h y", body=step, num_scan_inputs=1)],
        {"h0": [1, STATE], "x": [trips, 1, STATE]},
        ["h", "y"],
        {},
        opset=17,
    )


def branches() -> onnx.ModelProto:
    """Wide branches that all begin before one ends."""
    names = range(3)
    nodes = [node("MatMul", f"xi w{n}", f"a{n}") for n in names]
    nodes += [node("Softmax", f"a{n}", f"b{n}", axis=-1) for n in names]
    nodes += [node("MatMul", f"b{n} v{n}", f"c{n}") for n in names]
    nodes += [node("Sum", "c0 c1 c2 h", "s"), node("Tanh", "s", "h2")]
    found = _weights(*[(STATE, WIDE)] * 3, *[(WIDE, STATE)] * 3)
    return _scan(nodes, **{f"{'wv'[n // 3]}{n % 3}": each for n, each in enumerate(found)})


def integers() -> onnx.ModelProto:
    """Branches whose wide values are quantised: floats and bytes wait at once."""
    names, nodes = range(3), []
    for n in names:
        nodes += [node("MatMul", f"xi w{n}", f"a{n}")]
    for n in names:
        nodes += [node("Softmax", f"a{n}", f"b{n}", axis=-1), node("QuantizeLinear", f"b{n} scale zero", f"q{n}")]
    for n in names:
        nodes += [node("DequantizeLinear", f"q{n} scale zero", f"d{n}"), node("MatMul", f"d{n} v{n}", f"c{n}")]
    nodes += [node("Sum", "c0 c1 c2 h", "s"), node("Tanh", "s", "h2")]
    found = _weights(*[(STATE, WIDE)] * 3, *[(WIDE, STATE)] * 3)
    named = {f"{'wv'[n // 3]}{n % 3}": each for n, each in enumerate(found)}
    return _scan(nodes, scale=np.asarray(1e-4, np.float32), zero=np.int8(0), **named)


def nested() -> onnx.ModelProto:
    """Branches in the body of a loop inside of a body, beside a wide value of the one around it."""
    w, v, u, z = _weights((STATE, WIDE), (WIDE, STATE), (STATE, WIDE), (WIDE, STATE))
    sources = {"a": "g", "b": "ri", "c": "both"}
    inner = [node("Add", "g ri", "both"), *(node("MatMul", f"{source} w", name) for name, source in sources.items())]
    inner += [node("Softmax", name, f"{name}s", axis=-1) for name in sources]
    inner += [node("MatMul", f"{name}s v", f"{name}v") for name in sources]
    inner += [node("Sub", "av bv", "d"), node("Sub", "d cv", "g2"), node("Identity", "g2", "irow")]
    ports = {"g": PORTS["h"], "ri": PORTS["h"]}
    step = body(inner, ports, {"g2": PORTS["h"], "irow": PORTS["h"]}, w=w, v=v)
    nodes = [node("MatMul", "xi u", "wide"), node("Reshape", "wide slices", "parts")]
    nodes += [
        node("Scan", "h parts", "hn rows", body=step, num_scan_inputs=1),
        node("Softmax", "wide", "soft", axis=-1),
    ]
    nodes += [node("MatMul", "soft z", "sz"), node("Add", "hn sz", "s"), node("Tanh", "s", "h2")]
    return _scan(nodes, 6, u=u, z=z, slices=np.asarray([WIDE // STATE, 1, STATE], np.int64))


def _trips(program: Program) -> Iterator[int]:
    for step in program.steps:
        if isinstance(step, Loop):
            yield step.trips
            yield from _trips(step.body)


@pytest.mark.parametrize(
    "model, wide, target",
    [(branches, 2, "x86-64"), (branches, 2, "rpi4"), (branches, 2, "bpi-f3"), (integers, 2, "x86-64"), (integers, 2, "rpi4"), (nested, 4, "x86-64"), (nested, 4, "bpi-f3")],
)  # fmt: skip
def test_a_body_computes_the_same_with_few_values_at_once(
    tmp_path: Path, model: Callable[[], onnx.ModelProto], wide: int, target: str
) -> None:
    """As TVM allocates them, there are `wide` + 1 values of WIDE floats."""
    device, given = get_target(target), model()
    imported = load(save(given, tmp_path), "body")
    lowered, beside = replay(
        Sequence.parse((*TVM_DEFAULT, "share", "order")), imported.graph, imported.onnx, "body", device.machine
    )
    assert largest_workspace(lowered.program) < (wide + 0.5) * 4 * WIDE
    assert list(_trips(lowered.program)) == ([6, WIDE // STATE] if model is nested else [TRIPS])
    check_library(given, lowered, beside, device, tmp_path)
