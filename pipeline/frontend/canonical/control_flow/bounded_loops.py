"""Run a Loop whose condition the data decide as often as its limit says; from its last iteration on nothing changes.

    Loop(M, going, h){going', h', y}  ──►  h' where it runs, else h; y by iteration, and a flag: Compress(y, flags)

Iterations behind the last compute on the first one's states, so that no index leaves its range, and their results are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING

from ..node_builder import NodeBuilder, replace_nodes
from .build_scan import STOPS

if TYPE_CHECKING:
    import onnx


def running_body(
    body: onnx.GraphProto, starts: Sequence[str], types: Sequence[onnx.TypeProto], build: NodeBuilder
) -> onnx.GraphProto:
    """Return the body with another state in front, whether it runs, and that flag in front of its results.

    `starts` are the first states, outside of it, of these `types`.
    """
    from onnx import TensorProto, helper

    made = deepcopy(body)
    number, going, *carried = made.input
    condition, *results = made.output
    inner = NodeBuilder(f"{build.stem}/running", build.names)
    new = build.names.new
    runs = new(f"{build.stem}/runs")

    def select(kind: onnx.TypeProto, one: str, other: str, result: str = "") -> str:
        if kind.tensor_type.elem_type != TensorProto.BOOL:
            return inner.node("Where", runs, one, other, result=result)
        either = inner.node("And", runs, one), inner.node("And", inner.node("Not", runs), other)
        return inner.node("Or", *either, result=result)

    given, scalar = [], helper.make_tensor_type_proto(TensorProto.INT64, [])
    zero = inner.node("Sub", number.name, number.name)
    before = {number.name: new(f"{number.name}/any"), **{each.name: new(f"{each.name}/kept") for each in carried}}
    inner.nodes[-1].input[:] = [before[number.name]] * 2
    select(scalar, before[number.name], zero, number.name)
    for value, start, kind in zip(carried, starts, types, strict=True):
        select(kind, before[value.name], start, value.name)
        given.append(helper.make_value_info(before[value.name], kind))
    inner.nodes.extend(made.node)
    after = inner.node("And", runs, inner.node("Reshape", condition.name, inner.integers()))
    states = [
        helper.make_value_info(select(kind, result.name, before[value.name]), kind)
        for value, result, kind in zip(carried, results, types)
    ]
    truth = helper.make_tensor_type_proto(TensorProto.BOOL, [])
    flag = inner.node("Identity", runs)
    replace_nodes(made, inner.nodes)
    made.initializer.extend([*inner.initializers, helper.make_tensor(going.name, TensorProto.BOOL, [], [True])])
    number.name = before[number.name]
    inputs = [
        number,
        helper.make_value_info(new(f"{going.name}/always"), truth),
        helper.make_value_info(runs, truth),
        *given,
    ]
    outputs = [
        helper.make_value_info(inputs[1].name, truth), helper.make_value_info(after, truth), *states,
        helper.make_value_info(flag, truth), *results[len(carried) :],
    ]  # fmt: skip
    for group, values in ((made.input, inputs), (made.output, outputs)):
        kept = [deepcopy(each) for each in values]
        del group[:]
        group.extend(kept)
    made.doc_string = STOPS
    return made
