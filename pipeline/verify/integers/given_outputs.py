"""Compare a quantised model's library with the model as given: units apart, and agreement of decisions.

    file as given ─► ONNX Runtime, as written ─► rows of its outputs, in the canonical model's metadata ─┐
    canonical model ─► library ─► the same rows ─────────────────────────────────────────────────────────┴► units apart

The file computes its layers in floats between integers, or its vendor's operators round in another way; the library
computes them in integers. So they may differ by a unit now and then: information, never an error.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ModelError
from ...frontend.canonical.bind_shapes import bind_inputs
from ...frontend.canonical.read_onnx import read_model
from ...frontend.canonical.static_metric import is_marked
from ...frontend.contrib_ops.declared_sets import declare_sets
from ...frontend.contrib_ops.expand import expand_contrib_ops
from ...frontend.quantised.float_twin import multiplications
from ...frontend.quantised.quantisation import quantised_by
from ...memory.footprint import GivenAgreement, OutputAgreement
from ..inputs import make_input
from ..reference import Reference
from .exact_integers import is_quantised

if TYPE_CHECKING:
    import onnx

_KEY = "passfit.given"
#: seeded inputs, and most elements kept of an output for each: whole rows along the last axis, spread evenly
_SEED, _KEPT = 0, 4096
#: least and most cases, and the multiplications of all together
_CASES, _MOST_CASES, _WORK = 3, 32, 200_000_000
#: operators that copy elements: a scale holds before and after
_MOVES = ("Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")


@dataclass(frozen=True)
class GivenOutputs:
    """Hold rows of a given model's outputs, by case and name: (rows, last axis).

    `inputs` are those of each case, `units` the value of one unit of an output: 1 for integers, the scale of a
    dequantised float; None for other floats.
    """

    inputs: tuple[dict[str, np.ndarray], ...]
    rows: tuple[dict[str, np.ndarray], ...]
    units: dict[str, float | None]

    def agreement(self, outputs: Sequence[Mapping[str, np.ndarray]]) -> GivenAgreement:
        """Compare the outputs of a library for `inputs`."""
        found = []
        for name, unit in self.units.items():
            given = np.concatenate([case[name] for case in self.rows])
            own = np.concatenate([rows_of(case[name]) for case in outputs])
            found.append(_compared(name, given, own, unit))
        return GivenAgreement(len(self.rows), tuple(found))


def mark_given(canonical: onnx.ModelProto, path: Path, shapes: Mapping | None, fix: Mapping | None) -> None:
    """Evaluate the file `path` on seeded inputs; write rows of its outputs into the metadata of `canonical`.

    Those of a file that an import wrote are taken over. Nothing is written for a model without integers, and one that
    ONNX Runtime rejects.
    """
    from onnx import helper

    kept = {entry.key: entry.value for entry in canonical.metadata_props}
    if _KEY in kept or not is_quantised(canonical):
        return
    model = read_model(path)
    earlier = {entry.key: entry.value for entry in model.metadata_props}
    if is_marked(earlier):  # no file as given, but one that an import wrote
        if _KEY in earlier:
            helper.set_model_props(canonical, kept | {_KEY: earlier[_KEY]})
        return
    declare_sets(model)
    bind_inputs(model, shapes or {}, fix or {})
    inputs = [make_input(canonical, _SEED, number) for number in range(_count(canonical))]
    try:
        reference = Reference(expand_contrib_ops(model))
        outputs = [reference(each) for each in inputs]
    except ModelError:
        return
    said = {name: [_packed(rows_of(each[name])) for each in outputs] for name in outputs[0]}
    helper.set_model_props(canonical, kept | {_KEY: json.dumps(said, sort_keys=True)})


def given_outputs(canonical: onnx.ModelProto) -> GivenOutputs | None:
    """Read the outputs back from the metadata of a canonical model; None without them."""
    said = {entry.key: entry.value for entry in canonical.metadata_props}.get(_KEY)
    if said is None:
        return None
    packed = json.loads(said)
    names = [value.name for value in canonical.graph.output if value.name in packed]
    cases = range(min((len(packed[name]) for name in names), default=0))
    rows = tuple({name: _unpacked(packed[name][case]) for name in names} for case in cases)
    inputs = tuple(make_input(canonical, _SEED, number) for number in cases)
    if not rows:
        return None
    return GivenOutputs(inputs, rows, {name: _unit(canonical, name, rows[0][name].dtype) for name in names})


def _count(model: onnx.ModelProto) -> int:
    """Return the number of cases: fewer for a larger model, which an emulator may have to run."""
    return min(max(_CASES, _WORK // max(1, multiplications(model))), _MOST_CASES)


def rows_of(value: np.ndarray) -> np.ndarray:
    """Return rows along the last axis, spread evenly: as many as `_KEPT` elements hold, at least one."""
    width = value.shape[-1] if value.ndim else 1
    flat = value.reshape(value.size // max(1, width), width)
    count = max(1, min(len(flat), _KEPT // max(1, flat.shape[1])))
    return flat[np.linspace(0, len(flat) - 1, count).astype(np.int64)] if len(flat) else flat


def _compared(name: str, given: np.ndarray, own: np.ndarray, unit: float | None) -> OutputAgreement:
    differing = most = None
    if unit is not None:
        apart = np.rint(np.abs(given.astype(np.float64) - own.astype(np.float64)) / unit)
        differing, most = int((apart > 0).sum()), int(apart.max(initial=0))
    if given.shape[1] < 2:
        return OutputAgreement(name, given.size, differing, most)
    same = int((given.argmax(1) == own.argmax(1)).sum())
    return OutputAgreement(name, given.size, differing, most, len(given), same)


def _unit(model: onnx.ModelProto, output: str, dtype: np.dtype) -> float | None:
    from ...frontend.canonical.rewrites import context_of

    if dtype.kind in "iub":
        return 1.0
    makers = {name: node for node in model.graph.node for name in node.output}
    node = makers.get(output)
    while node is not None and node.op_type in _MOVES:
        node = makers.get(node.input[0])
    if node is None or node.op_type != "DequantizeLinear":
        return None
    made = quantised_by(node, context_of(model))
    return made.quantisation.scale[0] if made is not None and made.quantisation.axis is None else None


def _packed(rows: np.ndarray) -> list:
    plain = rows if rows.dtype.kind in "iub" else rows.astype(np.float32)
    return [plain.dtype.name, list(plain.shape), base64.b64encode(np.ascontiguousarray(plain).tobytes()).decode()]


def _unpacked(packed: list) -> np.ndarray:
    dtype, shape, content = packed
    return np.frombuffer(base64.b64decode(content), dtype).reshape(shape)
