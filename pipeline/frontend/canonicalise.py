"""Bring every model into one form: static shapes, constants folded, ONNX's own operators, sorted, checked.

Constants are folded by onnxscript (folding/fold_constants.py). On the 33 models of benchmarks/models.toml, 6047 nodes, measured
with folding.py of 39fdbba (onnxruntime 1.31.1, onnxscript 0.7.2, onnxslim 0.1.98, onnxsim 0.8.1; error: largest
difference from the unfolded model ÷ largest value; all gave the same bytes twice, none made nodes of foreign domains):

    library               works   nodes left    largest growth   bit-exact   largest error
    onnxruntime basic     32      2497 of 5358  3.55             20          3.0e-3           crashes on the 33rd
    onnxslim              33      2529 of 6047  3.55             22          3.0e-3
    onnxsim               28      2183 of 3257  3.54             21          3.6e-3           refuses five
    onnxscript, defaults  33      2854 of 6047  1.11             32          4.1e-6
    onnxscript, as here   33      2819 of 6047  1.08             32          3.2e-7

The others also fuse (BatchNorm into Conv, Mul into weights): fewer nodes, but other sums, up to 30 times the tolerance
of verification, and a fusion that only a pass of the compiler's own can weigh and undo. onnxscript only folds, keeps
the nodes' names, lets the caller choose the nodes to fold (a model with int8 weights stays 3.3 times smaller), and is
Python.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..errors import ModelError, PassfitError
from .canonical.clean_names import (
    detach_outputs,
    name_nodes,
    name_unnamed,
    port_names,
    restore_ports,
    type_direct_outputs,
)
from .canonical.control_flow.constant_sequences import replace_sequences
from .canonical.control_flow.if_branches import select_branches
from .canonical.control_flow.trip_count import complete_loops
from .canonical.control_flow.unroll_loops import has_loops, unroll_loops
from .canonical.empty_tensors import replace_empty_tensors
from .canonical.folding.fold_constants import fold, refold, sort_nodes
from .canonical.graph_context import context_of
from .canonical.lengths.bound_lengths import bound_lengths
from .canonical.lengths.extent import deciding_numbers
from .canonical.node_form import first_refused, form_of
from .canonical.operators.pooled_ends import state_pooled_ends
from .canonical.operators.resize import state_resized_sizes
from .canonical.opset import OLDEST, declare_sets, expand_functions, lower_opset, raise_for_sequences, raise_opset
from .canonical.ports.apply import bind_ports, length_forms, port_forms, write_forms
from .canonical.read_onnx import metadata_of, node_title, operator_set, read_model
from .canonical.recurrent import canonical_recurrent
from .canonical.rewrites import rewrite
from .canonical.shapes import check_nodes, infer_shapes, inference_failures, refuse_open_shapes, value_types
from .canonical.static_metric import is_marked
from .contrib_ops.expand import expand_contrib_ops
from .quantised.keep_integers import keep_integers
from .quantised.narrow_numbers import widen_numbers
from .refuse.absurd_sizes import refuse_large_tensors, refuse_long_ranges
from .refuse.importer_limits import refuse_wrong_forms
from .refuse.lacking_operands import refuse_lacking_operands
from .refuse.operators import refuse_foreign_domains, refuse_unsupported
from .refuse.wrong_attributes import refuse_wrong_attributes
from .refuse.wrong_quantisation import refuse_wrong_quantisation
from .source.import_options import ImportOptions

if TYPE_CHECKING:
    import onnx

#: characters at most of what ONNX says
_REASON = 300


def import_model(path: Path, options: ImportOptions = ImportOptions()) -> onnx.ModelProto:
    """Import the model in the file `path` in canonical form; equal arguments give equal bytes.

    Inputs and outputs keep names, order and dtypes. Raises ModelError for a model that cannot be compiled, with problem, node and
    next step. A file that is not valid ONNX is the cause of any other error.
    """
    return import_read(read_model(path, options), path, options)


def import_read(model: onnx.ModelProto, path: Path, options: ImportOptions) -> onnx.ModelProto:
    """Import a model read from `path`, as `import_model` does; it may be changed, and be the result."""
    try:
        return _import_read(model, options)
    except PassfitError:
        raise
    except Exception as error:
        if reason := _why_invalid(read_model(path, options)):
            raise ModelError(f"The model '{path}' is not valid ONNX: {reason}", "Export the model again.") from error
        raise


def _why_invalid(model: onnx.ModelProto) -> str:
    """Return why ONNX's own checker and strict inference refuse a model, in one line; empty if they do not."""
    import onnx.checker

    del model.graph.output[:]  # the checker wants their shapes, which ONNX Runtime does without
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, TypeError, *inference_failures()) as error:
        return " ".join(str(error).split()).rstrip(".")[:_REASON] + "."
    return ""


def _import_read(model: onnx.ModelProto, options: ImportOptions) -> onnx.ModelProto:
    declare_sets(model)
    refuse_wrong_attributes(model)
    refuse_lacking_operands(model)
    name_unnamed(model)
    assumed = bind_ports(model, options)
    type_direct_outputs(model)
    model = expand_contrib_ops(expand_functions(sort_nodes(model)))
    refuse_foreign_domains(model)
    model = canonicalize(model, options.bounds)
    for said in assumed:  # a refusal is one line
        logging.getLogger("passfit").warning("the %s.", said)
    return model


def canonicalize(model: onnx.ModelProto, bounds: Mapping[str, int] = MappingProxyType({})) -> onnx.ModelProto:
    """Bring a model of ONNX's own operators with static inputs into canonical form, with the forms of its ports.

    `bounds` are those of results whose length the data decide.
    """
    import onnx.checker

    inputs, outputs = port_names(model)
    forms = port_forms(model)
    model = _canonical_nodes(
        raise_for_sequences(model), partial(bound_lengths, bounds=bounds, forms=forms, ports=(inputs, outputs))
    )
    lower_opset(model)
    found = length_forms(forms)
    lengths = (found[name]["output"] for name in outputs if name in found)
    restore_ports(model, inputs, [*outputs, *(name for name in lengths if name not in outputs)])
    if any(forms.values()):
        write_forms(model, forms)
    try:
        check_nodes(model)
    except (onnx.checker.ValidationError, RuntimeError) as error:
        raise ModelError(f"The model is not valid ONNX{_invalid(model)}.", "Export the model again.") from error
    return infer_shapes(model)  # instead of the checker's own inference, which would carry all weights


def _invalid(model: onnx.ModelProto) -> str:
    """Name the first node that is not of its operator set, if there is one."""
    import onnx.checker

    node = first_refused(model, onnx.checker.check_model, (onnx.checker.ValidationError, RuntimeError))
    return (
        f": the {node_title(node)} does not take {form_of(node, value_types(model.graph))}" if node is not None else ""
    )


def _canonical_body(model: onnx.ModelProto) -> onnx.ModelProto:
    """Bring the body of a loop into canonical form, in the operator set of the model around it."""
    ports = port_names(model)
    model = _canonical_nodes(model)
    restore_ports(model, *ports)
    return infer_shapes(model)


def _canonical_nodes(
    model: onnx.ModelProto, bound: Callable[[onnx.ModelProto], onnx.ModelProto] | None = None
) -> onnx.ModelProto:
    """Fold constants, unroll loops, rewrite operators; refuse those that cannot be compiled.

    `bound` makes lengths static that the data decide, outside of loops.
    """
    refuse_wrong_quantisation(model)  # inference would say less
    refuse_large_tensors(model)  # as declared: inference multiplies sizes
    refuse_long_ranges(model)
    complete_loops(model)
    model = _sized(infer_shapes(model))
    refuse_large_tensors(model)
    model = fold(model)
    if raised := operator_set(model.opset_import) < OLDEST:
        model = fold(infer_shapes(raise_opset(model)))
    model = infer_shapes(_without_subgraphs(model, postpone=bound is not None))
    if bound is not None:
        bounded = bound(model)
        if bounded is not model or any(node.op_type == "Loop" for node in model.graph.node):
            model = infer_shapes(_without_subgraphs(fold(infer_shapes(bounded))))
    model = _sized(model)
    numbers = {} if bound is None else deciding_numbers(context_of(model))
    refuse_large_tensors(model)  # of lengths now bounded
    for change in (widen_numbers, replace_sequences, keep_integers):
        model = refold(change(model), model)
    model = refold(rewrite(replace_empty_tensors(model)), None if raised else model)
    model = canonical_recurrent(refold(replace_empty_tensors(model), model))
    detach_outputs(model)
    refuse_unsupported(model)
    model = infer_shapes(model)
    refuse_large_tensors(model)
    refuse_open_shapes(model, numbers)
    refuse_wrong_forms(model)
    name_nodes(model)
    return model


def _sized(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give poolings and resized pictures the sizes that ONNX Runtime gives them: each may change those of others."""
    while state_pooled_ends(model) or state_resized_sizes(model):
        model = infer_shapes(model)
    return model


def _without_subgraphs(model: onnx.ModelProto, postpone: bool = False) -> onnx.ModelProto:
    """Unroll loops and select branches, level by level: loops first, as the shapes of their results are open.

    `postpone` leaves loops whose number of iterations may be a length. Loops that an earlier import kept stay.
    """
    again = is_marked(metadata_of(model))
    kept = {node.output[0] for node in model.graph.node if again and node.op_type == "Scan"}
    while True:
        while has_loops(model, kept):
            unrolled = unroll_loops(model, _canonical_body, kept, postpone)
            model = fold(infer_shapes(unrolled))  # others may count a kept one's rows
        if any(node.op_type == "If" for node in model.graph.node):
            model = fold(select_branches(model))
        if not has_loops(model, kept):
            return model
