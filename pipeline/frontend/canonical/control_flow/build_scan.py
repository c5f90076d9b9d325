"""Build a Scan along leading axes, whose closed body a function writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..node_builder import NodeBuilder

#: documentation of a body that is kept as a loop, however few its iterations
KEPT = "passfit: no copies"
#: documentation of a body that stops changing states: where the slices of its first result are 0, all later ones are, and
#: those of other results are not read
STOPS = "passfit: stops at 0"


class Value(NamedTuple):
    """Value by name, with its shape, None if it is unknown, and the number of its dtype in ONNX.

    Of one that a Scan slices, or makes of slices, `backwards` tells whether it begins with the last.
    """

    name: str
    shape: tuple[int, ...] | None
    element: int
    backwards: bool = False


#: write a body: from its builder and inputs by key, the next states by key, and the slices of results
WriteBody = Callable[[NodeBuilder, dict[str, str]], tuple[dict[str, str], Sequence[Value]]]


def build_scan(
    build: NodeBuilder,
    states: Mapping[str, Value],
    held: Mapping[str, Value],
    sequences: Mapping[str, Value],
    write: WriteBody,
    *,
    note: str = "",
) -> tuple[dict[str, str], list[str]]:
    """Build the Scan; return its last states by key, and its results.

    `held` are values that no iteration changes, such as weights. `note` is KEPT or STOPS.
    """
    from onnx import helper

    body = NodeBuilder(f"{build.stem}/scan_{len(build.nodes)}", build.names)
    slices = {key: each._replace(shape=each.shape and each.shape[1:]) for key, each in sequences.items()}
    inputs = {
        key: each._replace(name=build.names.new(f"{body.stem}/{key}"))
        for key, each in (*states.items(), *held.items(), *slices.items())
    }
    after, made = write(body, {key: each.name for key, each in inputs.items()})
    outputs = [*(each._replace(name=after[key]) for key, each in states.items()), *(inputs[key] for key in held), *made]
    ports = (
        [helper.make_tensor_value_info(each.name, each.element, each.shape) for each in group]
        for group in (inputs.values(), outputs)
    )
    directions = {"input": [*sequences.values()], "output": made}
    found = build.many(
        "Scan", [each.name for group in (states, held, sequences) for each in group.values()], len(outputs),
        body=helper.make_graph(body.nodes, body.stem, *ports, body.initializers, note or None), num_scan_inputs=len(sequences),
        **{f"scan_{side}_directions": [int(each.backwards) for each in group] for side, group in directions.items() if group},
    )  # fmt: skip
    return dict(zip(states, found)), found[len(states) + len(held) :]
