"""Time the regions of a network beside the kernels they are made of, in one library, step by step.

    unsplit   conv 41 µs, relu 3 µs, pool 9 µs, conv 20 µs …
    split     conv 44 µs, region of relu and pool 14 µs, …          1.07 ×, 1.17 ×

Networks are larger than those of the fuzzer, so that a kernel takes some microseconds. Loops that are kept are timed beside
their copies one after the other.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from passfit.errors import SequenceError

from .judge import difference
from .networks import Network
from .reference import expected

if TYPE_CHECKING:
    from passfit.kernels.lower.lower import Lowered

#: runs of a library, of which the shortest time of each step counts; steps of a recurrent layer
RUNS, STEPS = 200, 12
#: runs without a pause, and its seconds
_AT_ONCE, _PAUSE = 20, 0.05
#: steps of a region, rows at a time: each as likely as it is listed
_STEPS, _ROWS = (1, 1, 2, 3, 4), (1, 1, 2, 4)
_PASSES = ("legalize", "fold-constant", "fuse-operators")


@dataclass(frozen=True)
class Timed:
    """Time of a region, or a loop, beside that of its kernels whole, both in ns; `cycles` is the predicted ratio.

    `calls` are the runs of the region's kernels; `parts` tells whether it sums in parts (`part`), or takes windows so (`tap`).
    """

    title: str
    rows: int
    whole: int
    split: int
    cycles: float
    calls: int
    parts: str = ""

    @property
    def ratio(self) -> float:
        return self.split / self.whole


class WideNetwork(Network):
    """Network of larger planes, with recurrent layers over their pixels."""

    SIDES, CHANNELS, FILTERS, LARGEST, ATTENDED = (20, 24, 32, 33), (3, 8, 16), (8, 16, 24, 32), 40, 600


def wide_network(seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Draw a network of floats and its inputs."""
    random = np.random.default_rng([3, seed])
    net = WideNetwork(random, with_bytes=False)
    net.grow(int(random.integers(5, 12)))
    return net.model(17), {"x": random.standard_normal(net.start).astype(np.float32)}


def recurrent_layer(seed: int) -> tuple[list[onnx.ModelProto], dict[str, np.ndarray]]:
    """Draw a recurrent layer of a few steps: as layers of one step, one after the other, and as one layer; and the inputs of both."""
    random = np.random.default_rng([4, seed])
    op, batch = str(random.choice(["LSTM", "GRU", "RNN"])), int(random.choice([1, 1, 4]))
    units, inputs = int(random.choice([16, 32, 64])), int(random.choice([8, 32, 64]))
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op] * units
    shapes = {"w": (1, gates, inputs), "r": (1, gates, units), "b": (1, 2 * gates)}
    weights = [
        numpy_helper.from_array((random.standard_normal(shape) / 8).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    names, states = [tensor.name for tensor in weights], ["h", "c"] if op == "LSTM" else ["h"]
    nodes = [
        helper.make_node(
            op,
            [f"x{t}", *names, "", *(f"{each}{t}" for each in states if t)],
            ["", *(f"{each}{t + 1}" for each in states)],
            hidden_size=units,
        )
        for t in range(STEPS)
    ]
    nodes[-1].output[:] = ["", "h"]
    loop = helper.make_node(op, ["x", *names], ["", "h"], name=f"{op}_of_{units}_units", hidden_size=units)
    x = random.standard_normal((STEPS, batch, inputs)).astype(np.float32)
    values = {f"x{t}": x[t : t + 1] for t in range(STEPS)} | {"x": x}
    models = []
    for own in (nodes, [loop]):
        given = [helper.make_tensor_value_info(node.input[0], 1, values[node.input[0]].shape) for node in own]
        graph = helper.make_graph(
            own, "layer", given, [helper.make_tensor_value_info("h", 1, (1, batch, units))], weights
        )
        models.append(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    return models, values


def regions_timed(seed: int, folder: Path) -> list[Timed]:
    """Time the regions of a network; raises AssertionError if a network computes something else when split."""
    model, inputs = wide_network(seed)
    lowered = _lowered(model, folder)
    regions = list(_regions(lowered, np.random.default_rng([5, seed])))
    split = lowered
    for _, _, _, each in reversed(regions):
        split = each.apply(split)
    parts = [_scheduled(lowered), _scheduled(split)]
    times, programs = _times(parts, model, inputs, folder), [part.program for part, _ in parts]
    found, joined = [], 0
    for first, last, rows, _ in regions:
        own = programs[1].steps[first - joined]
        whole, cycles = (
            sum(times[0][first : last + 1]),
            sum(_cycles(parts[0][0], number) for number in range(first, last + 1)),
        )
        title = " + ".join(step.kernel for step in programs[0].steps[first : last + 1])
        calls = [(step.kernel, runs) for _, step, runs in programs[1].calls_of(own)]
        forms = " ".join(form for form in ("part", "tap") if any(form in re.split("[_]", name) for name, _ in calls))
        predicted = _cycles(parts[1][0], first - joined) / cycles
        found.append(
            Timed(title, rows, whole, times[1][first - joined], predicted, sum(runs for _, runs in calls), forms)
        )
        joined += last - first
    return found


def loop_timed(seed: int, folder: Path) -> list[Timed]:
    """Time a recurrent layer as a loop beside its steps one after the other; as `regions_timed`."""
    models, inputs = recurrent_layer(seed)
    parts = [_scheduled(_lowered(model, folder)) for model in models]
    whole, split = map(sum, _times(parts, models[1], inputs, folder))
    cycles = [sum(_cycles(part, number) for number in range(len(part.program.steps))) for part, _ in parts]
    calls = sum(runs for _, _, runs in parts[1][0].program.calls())
    return [Timed(models[1].graph.node[0].name, 1, whole, split, cycles[1] / cycles[0], calls)]


def _lowered(model: onnx.ModelProto, folder: Path) -> Lowered:
    from passfit.backend.built import host, imported
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.sequence.replay import lower_by_sequence
    from passfit.passes.sequence.sequence import Sequence as PassSequence

    canonical = imported(model, {}, {}, folder)
    return lower_by_sequence(PassSequence.parse(_PASSES), to_relax(canonical), canonical, "model", host().machine)


def _regions(lowered: Lowered, random: np.random.Generator) -> Iterator[tuple[int, int, int, Any]]:
    """Draw regions apart from each other: first and last step, rows at a time, and the pass."""
    from passfit.kernels.rewrite.splittable import splits_of
    from passfit.passes.program.split import SplitRows

    splits, steps, first = splits_of(lowered), lowered.program.steps, 0
    while first < len(steps):
        rows, count = int(random.choice(_ROWS)), int(random.choice(_STEPS))
        rank = len(lowered.program.tensors[steps[first].writes[0]].shape)
        axes = sorted(
            (each.axis for each in splits[steps[first].kernel].rows),
            key=lambda axis: (axis == rank - 1, axis <= 1, axis),
        )
        tried = [
            (last, axis, group)
            for last in range(min(first + count, len(steps)) - 1, first - 1, -1)
            for axis in axes[:1]
            for group in {rows: 0, 1: 0}
        ]
        for last, axis, group in tried:
            spec = SplitRows(f"{first}-{last}", axis, group)
            try:
                spec.region(lowered.program, splits)
            except SequenceError:
                continue
            yield first, last, group, spec
            first = last
            break
        first += 1


def _scheduled(lowered: Lowered) -> tuple[Lowered, int]:
    from passfit.kernels.lower.specialise import specialise_kernels
    from passfit.passes.sequence.apply import apply_program_passes

    scheduled, workspace = apply_program_passes(lowered, ())
    return specialise_kernels(scheduled), workspace


def _cycles(lowered: Lowered, number: int) -> float:
    from passfit.backend.built import host
    from passfit.tir.counts.operation_counts import predicted_cycles

    calls = lowered.program.calls_of(lowered.program.steps[number])
    return sum(predicted_cycles(lowered.kernels[step.kernel], host()) * runs for _, step, runs in calls)


def _times(
    parts: Sequence[tuple[Lowered, int]], model: onnx.ModelProto, inputs: dict[str, np.ndarray], folder: Path
) -> list[list[int]]:
    """Run two programs as one library; return the shortest time of each step of each, in ns.

    Both compute the outputs of `model`; `inputs` are by name, those of both.
    """
    from passfit.backend.built import NAME, host
    from passfit.codegen import symbol
    from passfit.codegen.functions.merge_kernels import merge_identical_kernels
    from passfit.codegen.objects import build_objects
    from passfit.codegen.quick_shared import link_objects
    from passfit.memory.validation.checked_plan import checked_plan

    from ..nodes.merging import merge

    merged = merge_identical_kernels(merge([lowered for lowered, _ in parts]))
    merged = replace(merged, program=replace(merged.program, name=NAME))
    objects = build_objects({symbol(NAME, name): kernel for name, kernel in merged.kernels.items()}, host(), folder)
    plan = checked_plan(merged.program, host())
    library = ctypes.CDLL(
        str(link_objects(merged, plan, max(each for _, each in parts), objects, host(), folder, timed=True))
    )
    run, place, spent, made = (getattr(library, f"{NAME}_{word}") for word in ("run", "input", "spent", "output"))
    place.restype = made.restype = ctypes.c_void_p
    spent.restype = ctypes.POINTER(ctypes.c_int64)
    least = np.full(len(merged.program.steps), np.iinfo(np.int64).max)
    for turn in range(RUNS):
        if turn % _AT_ONCE == 0:
            time.sleep(_PAUSE)  # other work on the machine is seldom there all the time
        for number, port in enumerate(merged.program.inputs):
            value = np.ascontiguousarray(inputs[port.name.split("_", 1)[1]])
            ctypes.memmove(place(number), value.ctypes.data, value.nbytes)
        assert run() == 0
        if not turn:
            _check(merged, made, expected(model, {port.name: inputs[port.name] for port in model.graph.input}))
        least = np.minimum(least, np.ctypeslib.as_array(spent(), least.shape))
    count = len(parts[0][0].program.steps)
    return [[int(each) for each in least[:count]], [int(each) for each in least[count:]]]


def _check(merged: Lowered, made: Any, wanted: Sequence[np.ndarray]) -> None:
    """Compare the outputs of both programs with those expected."""
    tensors = [merged.program.tensors[port.tensor] for port in merged.program.outputs]
    found = []
    for number, tensor in enumerate(tensors):
        value = np.empty(tensor.shape, tensor.dtype)
        ctypes.memmove(value.ctypes.data, made(number), value.nbytes)
        found.append(value)
    for part in (found[: len(wanted)], found[len(wanted) :]):
        assert not (reason := difference(part, wanted)), reason
