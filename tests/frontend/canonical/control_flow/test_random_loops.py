"""Draw loops of any states, sequences and rows, one inside of another, and compare their kernels with ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest

from passfit.frontend.canonical.control_flow import long_loops
from passfit.frontend.canonicalise import import_model
from passfit.program import Loop

from ....models import model_of, run, save
from .test_unroll_loops import FLOAT, body, node

pytestmark = pytest.mark.tvm
SHAPE = [2, 6]
PORT = (FLOAT, SHAPE)


@pytest.fixture(autouse=True)
def _all_loops_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_loops, "LONG", 1)


def _scan(
    draw: Random, states: list[str], sequences: list[str], trips: int, prefix: str, depth: int
) -> tuple[onnx.NodeProto, list[str]]:
    """Draw a Scan of these states and sequences; return it and the names of its results."""
    inner = [f"{prefix}s{n}" for n in range(len(states))] + [f"{prefix}x{n}" for n in range(len(sequences))]
    values, nodes = list(inner), []
    for number in range(draw.randint(1, 5)):
        name = f"{prefix}v{number}"
        kind = draw.choice(["Add", "Mul", "Tanh", "Softmax", "MatMul", "Identity", "Sub"])
        operands = [draw.choice(values)] + (
            [draw.choice(values)] if kind in ("Add", "Mul", "Sub") else [f"{prefix}w"] if kind == "MatMul" else []
        )
        nodes.append(node(kind, " ".join(operands), name, **({"axis": -1} if kind == "Softmax" else {})))
        values.append(name)
    if depth:
        rows = f"{prefix}rows"
        nodes.append(node("Concat", " ".join(f"{each}_3d" for each in values[:3]), rows, axis=0))
        nodes[-1:-1] = [node("Reshape", f"{each} {prefix}shape", f"{each}_3d") for each in values[:3]]
        loop, made = _scan(draw, [draw.choice(values)], [rows], len(values[:3]), f"{prefix}i", depth - 1)
        nodes.append(loop)
        values.append(made[0])
    bounded = [f"{prefix}b{n}" for n in range(len(states))]
    following = [draw.choice(values) for _ in states]
    nodes += [
        node(draw.choice(["Tanh", "Identity", "Softmax"]), value, name) for value, name in zip(following, bounded)
    ]
    rows_out = [f"{prefix}y{n}" for n in range(draw.randint(0, 2))]
    nodes += [node("Identity", draw.choice([*values, *bounded]), name) for name in rows_out]
    weights = {f"{prefix}w": np.random.default_rng(draw.randrange(99)).standard_normal((6, 6)).astype(np.float32) / 6}
    if depth:
        weights[f"{prefix}shape"] = np.asarray([1, *SHAPE], np.int64)
    step = body(nodes, dict.fromkeys(inner, PORT), dict.fromkeys([*bounded, *rows_out], PORT), **weights)
    names = [f"{prefix}r{n}" for n in range(len(states) + len(rows_out))]
    directions = {
        "scan_input_directions": [draw.randint(0, 1) for _ in sequences],
        "scan_output_directions": [draw.randint(0, 1) for _ in rows_out],
    }
    given = " ".join([*states, *sequences])
    return node(
        "Scan",
        given,
        " ".join(names),
        body=step,
        num_scan_inputs=len(sequences),
        **{k: v for k, v in directions.items() if v},
    ), names


@pytest.mark.parametrize("seed", range(12))
def test_kernels_of_any_loop_compute_the_same_however_split(tmp_path: Path, seed: int) -> None:
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.sequence.replay import lower_by_sequence, replay
    from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence
    from passfit.targets import Machine

    from ....kernels.programs import run as run_kernels
    from ....search.random_splits import random_splits

    draw = Random(seed)
    trips = draw.randint(2, 5)
    states, sequences = ([f"{kind}{n}" for n in range(draw.randint(1, 3))] for kind in ("h", "x"))
    scan, names = _scan(draw, states, sequences, trips, "a", depth=seed % 3 == 0)
    ports = dict.fromkeys(states, SHAPE) | {name: [trips, *SHAPE] for name in sequences}
    model = model_of([scan], ports, names, {}, opset=17)
    given = {
        port.name: np.random.default_rng(n).standard_normal(ports[port.name]).astype(np.float32)
        for n, port in enumerate(model.graph.input)
    }
    imported = import_model(save(model, tmp_path))
    module, wanted = to_relax(imported), run(model, given)
    whole = lower_by_sequence(Sequence.parse(TVM_DEFAULT), module, imported, "loop", Machine())
    assert any(isinstance(step, Loop) for step in whole.program.steps)
    for splits in ((), random_splits(draw.choice, whole, 4)):
        passes = (*TVM_DEFAULT, *splits, *(("share", "order") if seed % 2 else ()))
        lowered, _ = replay(Sequence.parse(passes), module, imported, "loop")
        for got, expected in zip(run_kernels(lowered, list(given.values())), wanted, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5, err_msg="; ".join(passes))
