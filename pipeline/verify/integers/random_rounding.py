"""Round each quantised number of a file up or down at random: how far right libraries may lie from it.

    x ─► QuantizeLinear ─► y      becomes      x ─► QuantizeLinear ─► + {−1, 0, 1} ─► y

The file computes its layers in floats between integers, the library in integers: a number may come out one unit apart at
every layer, and later layers carry it on. Noise of that size bounds the distance (as in Monte Carlo arithmetic, Parker,
UCLA CSD-970002, 1997); a wrong layer is off by the size of the signal.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import numpy as np

from ...frontend.canonical.node_builder import Names, NodeBuilder, build_replacements, splice
from ...frontend.traits import QUANTISES
from ..reference import Reference

if TYPE_CHECKING:
    import onnx

#: operators whose first result is rounded to integers; all of vendors' QLinear* too
_ROUNDS = QUANTISES | {"QGemm"}
#: operators that round their float operand inside
_ROUNDS_INSIDE = frozenset({"DynamicQuantizeLSTM", "DynamicQuantizeMatMul"})
#: as a fraction of the largest operand: a unit of 8 bits with a sign
_UNIT = 1 / 127


class RandomRounding:
    """Model whose roundings move by a seeded unit, in ONNX Runtime.

    The noise comes as inputs in the shapes of a run without it, as no operator draws it in every operator set. In
    subgraphs, no number is moved.
    """

    def __init__(self, model: onnx.ModelProto):
        """Load the model as it is, and with noise. Raises NoReference."""
        from onnx import inliner

        model = inliner.inline_local_functions(model) if model.functions else model
        rounded = [_moved_value(node) for node in model.graph.node]
        self._plain = Reference(model, also=[name for name in rounded if name])
        self._noise: dict[str, str] = {}
        self._moved = Reference(self._add_noise(model))

    def __call__(self, inputs: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
        """Compute the outputs by name. Raises NoReference if a model cannot run on `inputs`."""
        plain, noise = self._plain(inputs), {}
        for number, (moved, name) in enumerate(self._noise.items()):
            random, value = np.random.default_rng([seed, number]), plain[moved]
            if value.dtype.kind == "f":
                size = _UNIT * np.abs(value).max(initial=0)
                noise[name] = random.uniform(-size, size, value.shape).astype(value.dtype)
            else:
                noise[name] = random.choice(np.float32([-1, 0, 0, 1]), value.shape)
        return self._moved(inputs | noise)

    def _add_noise(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """Copy `model` with an input for the noise of each value moved, by ONNX's names of both in `_noise`."""
        from onnx import helper

        result = deepcopy(model)
        names = Names(result.graph)

        def move(node: onnx.NodeProto, build: NodeBuilder) -> None:
            value = _moved_value(node)
            dtype = self._plain.dtypes.get(value)
            if dtype is None:
                return
            noise = self._noise[value] = names.new(f"{build.stem}/noise")
            kind = dtype if dtype.kind == "f" else np.dtype("float32")
            number = helper.np_dtype_to_tensor_dtype(kind)
            result.graph.input.append(helper.make_tensor_value_info(noise, number, None))
            if dtype.kind == "f":
                operand = build.node("Add", value, noise)
                build.copy(node).input[0] = operand
                return
            limits = np.iinfo(dtype)
            build.copy(node).output[0] = plain = names.new(f"{build.stem}/rounded")
            moved = build.node("Add", build.cast(plain, number), noise)
            moved = build.node("Max", moved, build.constant(np.float32(limits.min)))
            moved = build.node("Min", moved, build.constant(np.float32(limits.max)))
            build.cast(moved, dtype, value)

        splice(result.graph, build_replacements(model.graph, names, move, "/rounding"))
        return result


def _moved_value(node: onnx.NodeProto) -> str:
    """Return the value of a node that noise moves: its rounded result, or the operand it rounds inside; else ""."""
    if node.op_type in _ROUNDS_INSIDE:
        return node.input[0]
    rounds = node.op_type in _ROUNDS or node.op_type.startswith("QLinear")
    return node.output[0] if rounds else ""
