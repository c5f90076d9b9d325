"""Name buffers after the ONNX tensors they hold, for people: `plan.json`, the pictures of the arena, `explain`.

node              kernels              buffers
conv (out: c) ──► conv2d + relu ─────► r
relu (out: r) ──┘
softmax (out: s) ► max, exp, divide ─► s#1, s#2, s
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...program import Program

if TYPE_CHECKING:
    import onnx


def name_buffers(program: Program, nodes: Mapping[str, tuple[str, ...]], model: onnx.ModelProto) -> Program:
    """Rename the buffers of a lowered `program`, before any results share one.

    `nodes` gives the ONNX nodes behind a Relax variable, in the model's order, as `provenance` does. A port's buffer
    has the port's name. A result has the name of the last node's output. Of several results of one node, only the last
    has it; the others have `#1`, `#2` … appended. A buffer without a known node keeps the name of its variable.
    """
    ports = {program.tensors[port.tensor].buffer: port.name for port in (*program.outputs, *program.inputs)}
    outputs = {node.name: tuple(filter(None, node.output)) for node in model.graph.node}
    wanted: dict[str, list[int]] = {}
    for buffer, name in _results(program, nodes, outputs):
        wanted.setdefault(name, []).append(buffer)
    found = {buffer: name for buffer, name in ports.items() if buffer is not None}
    taken = set(found.values())
    for name, buffers in wanted.items():
        free = [buffer for buffer in buffers if buffer not in found]
        # the tensor itself is a port, or the result written last
        on_the_way = free if name in taken else free[:-1]
        found |= {buffer: f"{name}#{number}" for number, buffer in enumerate(on_the_way, 1)}
        found |= {buffer: name for buffer in free[len(on_the_way) :]}
    named = (replace(buffer, name=found.get(number, buffer.name)) for number, buffer in enumerate(program.buffers))
    return replace(program, buffers=tuple(named))


def _results(
    program: Program, nodes: Mapping[str, tuple[str, ...]], outputs: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[int, str]]:
    """Yield each written buffer and its tensor's name, in the order of the steps."""
    for step in program.steps:
        written = program.buffers_of(step.writes)
        for place, buffer in enumerate(written):
            behind = nodes.get(program.buffers[buffer].name, ())
            if not behind:
                continue
            tensors = outputs.get(behind[-1], ())
            if len(tensors) == len(written):
                yield buffer, tensors[place]
            else:
                # several kernels share the outputs of one node: no telling which
                yield buffer, tensors[0] if len(tensors) == 1 else behind[-1]
