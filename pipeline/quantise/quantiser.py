"""Quantise layers to int8 by onnxruntime's quantiser: QDQ, int8 × int8, weights with a scale for each channel.

samples ─► ranges of all results, once ─► a model for each choice of layers that stay in float
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ConfigError, ModelError, did_you_mean
from ..frontend.canonical.folding.evaluate import failures_of_runs, first_line
from ..frontend.canonical.folding.fold_constants import sort_nodes
from ..support.temporary_folder import scratch_folder
from .prepare import quiet, write_model

if TYPE_CHECKING:
    import onnx
    from onnxruntime.quantization.calibrate import TensorsData

#: methods of calibration; the percentile counts both ends of a range by themselves
METHODS = ("minmax", "entropy", "percentile")
_PERCENTILE = 99.999
#: operators that only move elements, or choose among them: in numbers if their operand is, and never wrong by themselves
MOVES = frozenset(
    "Reshape Transpose Squeeze Unsqueeze Flatten MaxPool Slice Split Gather GatherElements Pad Concat Expand Tile "
    "DepthToSpace SpaceToDepth Relu Clip".split()
)
#: operators with floats that the quantiser handles as it does additions: operands and result in numbers
_FURTHER = (
    "Sub Div Tanh Elu Selu Celu HardSigmoid HardSwish Softplus Softsign PRelu ThresholdedRelu Gelu Mish Erf Exp Sqrt "
    "ReduceMean ReduceMax GlobalMaxPool Abs Neg Min Max DepthToSpace SpaceToDepth Expand Tile"
).split()

#: moves of inputs are in numbers too: inputs and outputs become ones of int8 then
_OPTIONS = {"ForceQuantizeNoInputCheck": True}


class Quantiser:
    """Prepared float model with the ranges of its results on samples; `quantise` makes integer models of it.

    `method` is one of METHODS.
    """

    def __init__(self, model: onnx.ModelProto, samples: Iterable[Mapping[str, np.ndarray]], method: str = "minmax"):
        """Keep the model; samples are run when ranges are first asked for. Raises ConfigError for an unknown method."""
        if method not in METHODS:
            raise ConfigError(f"quantize: method is '{method}'.", did_you_mean(method, METHODS))
        self.model, self._samples, self._method = model, samples, method

    @cached_property
    def operators(self) -> list[str]:
        """Return the operators that are quantised."""
        from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

        return sorted({*QDQRegistry, *QLinearOpsRegistry, *_FURTHER} - {"EmbedLayerNormalization", "TopK", "ArgMax"})

    @cached_property
    def layers(self) -> list[str]:
        """Return the names of the nodes whose arithmetic would be on numbers, in the order of the graph."""
        kinds = set(self.operators) - MOVES
        return [node.name for node in self.model.graph.node if not node.domain and node.op_type in kinds]

    @cached_property
    def _ranges(self) -> TensorsData:
        from onnxruntime.quantization.calibrate import CalibrationMethod, create_calibrator

        methods = {
            "minmax": (CalibrationMethod.MinMax, {}),
            "entropy": (CalibrationMethod.Entropy, {}),
            # symmetric by default, which leaves results of a ReLU half of the numbers
            "percentile": (CalibrationMethod.Percentile, {"percentile": _PERCENTILE, "symmetric": False}),
        }
        chosen, options = methods[self._method]
        with scratch_folder() as folder, quiet(), _failures_named("calibrate"):
            write_model(self.model, folder / "model.onnx")
            calibrator = create_calibrator(
                folder / "model.onnx", self.operators, str(folder / "augmented.onnx"), chosen, extra_options=options
            )
            calibrator.collect_data(_Reader(self._samples))
            return calibrator.compute_data()

    @cached_property
    def _unbounded(self) -> set[str]:
        """Return the names of the nodes that take or give infinities or NaN, as masks of attention: no scale holds them."""
        found = self._ranges.items()
        infinite = {name for name, data in found if not np.isfinite(data.range_value).all()}
        return {node.name for node in self.model.graph.node if not infinite.isdisjoint((*node.input, *node.output))}

    def quantise(self, floats: Collection[str] = ()) -> onnx.ModelProto:
        """Return the model in int8, except for the layers `floats`. Raises ModelError if the quantiser cannot."""
        from onnxruntime.quantization import QuantType
        from onnxruntime.quantization.qdq_quantizer import QDQQuantizer

        ranges = self._ranges
        with quiet(), _failures_named("quantise"), np.errstate(invalid="ignore"):  # it makes scales for infinity, too
            quantizer = QDQQuantizer(
                deepcopy(self.model),
                True,
                False,
                QuantType.QInt8,
                QuantType.QInt8,
                ranges,
                [],
                sorted({*floats, *self._unbounded}),
                self.operators,
                _OPTIONS,
            )
            quantizer.quantize_model()
            return sort_nodes(quantizer.model.model)


class _Reader:
    """Samples as onnxruntime's calibration asks for them."""

    def __init__(self, samples: Iterable[Mapping[str, np.ndarray]]):
        self._left = iter(samples)

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Return the next sample, None after the last."""
        found = next(self._left, None)
        return None if found is None else dict(found)


@contextmanager
def _failures_named(step: str) -> Iterator[None]:
    """Turn failures of onnxruntime's quantiser into ModelError: it fails in any way on what it does not expect."""
    try:
        yield
    except failures_of_runs(
        ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError
    ) as error:
        raise ModelError(
            f"onnxruntime's quantiser cannot {step} the model: {first_line(error)}.",
            "Try --form int8-weights, or quantise it where it comes from.",
        ) from error
