"""Prepare a float model for the quantiser: static shapes, a recent operator set, batch normalisation folded into layers.

ONNX Runtime's basic level folds; it makes nodes of ONNX's own operators only. A model that it refuses is taken as raised.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ModelError
from ..frontend.canonical.clean_names import name_unnamed
from ..frontend.canonical.folding.evaluate import failures_of_runs
from ..frontend.canonical.opset import declare_sets, expand_functions, raise_opset
from ..frontend.canonical.shapes import infer_what_is_open
from ..support.temporary_folder import scratch_folder

if TYPE_CHECKING:
    import onnx

#: largest model in bytes: a protocol buffer holds less than 2 GiB
_LARGEST = (1 << 31) - (1 << 24)
#: the operator set of weights with a scale for each channel
CHANNELS = 13
#: key of the metadata by which onnxruntime's quantiser knows that shapes are inferred, and its value
_PREPARED = "onnx.quant.pre_process", "onnxruntime.quant"


def prepare(given: onnx.ModelProto, least: int = CHANNELS) -> onnx.ModelProto:
    """Prepare a model whose inputs are static, in the operator set `least` at least. Raises ModelError.

    Nodes have names of their own, and results shapes.
    """
    from onnx import helper

    if given.ByteSize() > _LARGEST:
        raise ModelError(
            f"The model has {given.ByteSize() >> 20} MiB.", "Quantise it where it comes from: onnxruntime takes 2 GiB."
        )
    model = deepcopy(given)
    declare_sets(model)
    model = raise_opset(infer_what_is_open(expand_functions(model)), least)
    model = infer_what_is_open(_folded(model))
    name_unnamed(model)
    _name_apart(model)
    helper.set_model_props(model, dict([_PREPARED]))
    return model


def _folded(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with constants and batch normalisation folded, by ONNX Runtime's basic level."""
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    with scratch_folder() as folder:
        options.optimized_model_filepath = str(folder / "folded.onnx")
        try:
            onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
            found = onnx.load(folder / "folded.onnx")
        except failures_of_runs():
            return model
    used = {node.domain for node in found.graph.node}
    others = [each for each in found.opset_import if each.domain and each.domain in used]
    own = [each for each in found.opset_import if not each.domain]
    del found.opset_import[:]
    found.opset_import.extend([*own, *others])
    return found


def _name_apart(model: onnx.ModelProto) -> None:
    """Give, in place, nodes of one name numbers: layers are told apart by their names."""
    known: set[str] = set()
    for index, node in enumerate(model.graph.node):
        while node.name in known:
            node.name = f"{node.name}_{index}"
        known.add(node.name)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the remarks of onnxruntime's quantiser on layers left alone."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)  # its sessions have no options of their own
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(disabled)


def write_model(model: onnx.ModelProto, file: Path) -> None:
    """Write a model; equal models give equal bytes."""
    file.write_bytes(model.SerializeToString(deterministic=True))
