"""Build NonMaxSuppression as a Scan: each trip selects the best box left of every class, and drops those that overlap it.

The order, ties and comparisons are those of ONNX Runtime (core/providers/cpu/object_detection/non_max_suppression.cc): of
equal scores the first box comes first, a score must exceed the threshold, boxes without area overlap none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..control_flow.build_scan import STOPS, Value, build_scan
from ..node_builder import NodeBuilder
from .choose import Chosen, choose_places, coordinates, count_chosen

#: sides of a box and its area, in the order of a table
_SIDES = 5


@dataclass(frozen=True)
class Detections:
    """Boxes [batches, boxes, 4] and scores [batches, classes, boxes] by name, and the thresholds, empty without.

    `most` is the number of boxes of a class at most, `most_value` the value of that, if the data decide it, `length` that of the boxes.
    """

    boxes: str
    scores: str
    batches: int
    classes: int
    count: int
    centered: bool
    overlap: str
    score: str
    most: int
    most_value: str = ""
    length: str = ""


def suppress(build: NodeBuilder, given: Detections, bound: int) -> Chosen:
    """Build the selected rows of batch, class and box, int64 [`bound`, 3]."""
    trips = min(given.most, given.count, bound)
    best, live = _select(build, given, trips)
    shape = (given.batches, given.classes, trips)
    best, live = (
        build.node("Reshape", build.node("Transpose", each, perm=[1, 2, 0]), build.integers(-1))
        for each in (best, live)
    )
    count = given.batches * given.classes * trips
    if given.batches * given.classes == 1:  # those of one class are in front already
        length = count_chosen(build, live, count)[1]
        boxes = build.node("Where", live, best, build.constant(np.asarray(0, np.int32)))
        zero = build.constant(np.zeros(trips, np.int64))
        rows = [zero, zero, build.cast(boxes, np.int64)]
    else:
        places, length = choose_places(build, live, count, bound)
        row = build.constant(np.arange(bound, dtype=np.int64))
        boxes = build.cast(build.node("Gather", best, places, axis=0), np.int64)
        boxes = build.node("Where", build.node("Less", row, length), boxes, build.constant(np.asarray(0, np.int64)))
        rows = [*coordinates(build, places, shape)[:2], boxes]
    columns = [build.node("Unsqueeze", each, build.integers(1)) for each in rows]
    return Chosen(build.node("Concat", *columns, axis=1), 0, length, (min(bound, count), 3))


def _select(build: NodeBuilder, given: Detections, trips: int) -> tuple[str, str]:
    """Build the Scan; return the best box of each trip, int32 [trips, batches, classes], and whether there was one."""
    from onnx import TensorProto

    shape = (given.batches, given.classes, given.count)
    lowest = build.constant(np.asarray(np.finfo(np.float32).min))
    if given.score:
        scores, alive = given.scores, build.node("Greater", given.scores, given.score)
    else:
        scores = build.node("Max", given.scores, lowest)  # below it are boxes that are gone
        alive = build.constant(np.ones(shape, bool))
    places = build.constant(np.arange(given.count, dtype=np.int32))
    if given.length:
        length = build.cast(given.length, np.int32)
        alive = build.node("And", alive, build.node("Less", places, length))
    table = _table(build, given)
    held = {
        "scores": Value(scores, shape, TensorProto.FLOAT),
        "table": Value(table, (_SIDES, given.batches, given.count), TensorProto.FLOAT),
        "overlap": Value(given.overlap, (), TensorProto.FLOAT),
    }
    if given.most_value:
        held["most"] = Value(given.most_value, (), TensorProto.INT64)

    def trip(body: NodeBuilder, values: dict[str, str]) -> tuple[dict[str, str], list[Value]]:
        left, none = values["alive"], body.constant(np.asarray(-np.inf, np.float32))
        best = body.node("ArgMax", body.node("Where", left, values["scores"], none), axis=2, keepdims=1)
        live = body.node("GatherElements", left, best, axis=2)
        if given.most_value:
            live = body.node("And", live, body.node("Less", values["trip"], values["most"]))
        overlapping = _overlapping(body, values["table"], best, given, values["overlap"])
        index = body.constant(np.arange(given.count, dtype=np.int64))
        gone = body.node("Or", overlapping, body.node("Equal", index, best))
        after = body.node("And", left, body.node("Not", gone))
        flat = body.integers(given.batches, given.classes)
        chosen = body.node("Reshape", body.cast(best, np.int32), flat)
        return {"alive": after}, [
            Value(body.node("Reshape", live, flat), shape[:2], TensorProto.BOOL),
            Value(chosen, shape[:2], TensorProto.INT32),
        ]

    numbers = build.constant(np.arange(trips, dtype=np.int64))
    sequence = {"trip": Value(numbers, (trips,), TensorProto.INT64)}
    states = {"alive": Value(alive, shape, TensorProto.BOOL)}
    _, (live, best) = build_scan(build, states, held, sequence, trip, note=STOPS)
    return best, live


def _table(build: NodeBuilder, given: Detections) -> str:
    """Build left, right, top, bottom and area of each box [sides, batches, boxes]."""
    columns = build.node("Transpose", given.boxes, perm=[2, 0, 1])

    def column(number: int) -> str:
        return build.node("Slice", columns, build.integers(number), build.integers(number + 1), build.integers(0))

    sides = []
    if given.centered:
        two = build.constant(np.asarray(2, np.float32))
        for middle, size in ((0, 2), (1, 3)):
            half = build.node("Div", column(size), two)
            sides += [build.node("Sub", column(middle), half), build.node("Add", column(middle), half)]
    else:
        for one, other in ((1, 3), (0, 2)):
            sides += [build.node(kind, column(one), column(other)) for kind in ("Min", "Max")]
    left, right, top, bottom = sides
    area = build.node("Mul", build.node("Sub", right, left), build.node("Sub", bottom, top))
    return build.node("Concat", *sides, area, axis=0)


def _overlapping(body: NodeBuilder, table: str, best: str, given: Detections, overlap: str) -> str:
    """Build whether each box overlaps the best of its class by more than `overlap` [batches, classes, boxes]."""
    zero = body.constant(np.asarray(0, np.float32))
    if given.batches > 1:
        starts = np.arange(given.batches, dtype=np.int64).reshape(-1, 1, 1) * given.count
        best = body.node("Add", best, body.constant(starts))
    flat = body.node("Reshape", table, body.integers(_SIDES, -1))
    ours = body.node("Gather", flat, body.node("Reshape", best, body.integers(given.batches, given.classes)), axis=1)

    def both(number: int) -> tuple[str, str]:
        bounds = body.integers(number), body.integers(number + 1), body.integers(0)
        one, other = body.node("Slice", ours, *bounds), body.node("Slice", table, *bounds)
        return (
            body.node("Reshape", one, body.integers(given.batches, given.classes, 1)),
            body.node("Reshape", other, body.integers(given.batches, 1, given.count)),
        )

    sizes = []
    for low, high in ((0, 1), (2, 3)):
        end, start = body.node("Min", *both(high)), body.node("Max", *both(low))
        sizes.append(body.node("Sub", end, start))
    shared, areas = body.node("Mul", *sizes), both(4)
    union = body.node("Sub", body.node("Add", *areas), shared)
    share = body.node("Greater", body.node("Div", shared, union), overlap)
    for each in (*sizes, shared, *areas, union):
        share = body.node("And", share, body.node("Greater", each, zero))
    return share
