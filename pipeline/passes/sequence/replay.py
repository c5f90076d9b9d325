"""Replay a sequence on an imported graph; attribute each kernel to its ONNX nodes."""

from __future__ import annotations

from dataclasses import replace

import onnx
from tvm.ir import IRModule

from ...errors import SequenceError
from ...frontend.imported_model import port_names
from ...frontend.relax.provenance import provenance
from ...kernels.lower.divide_kernels import divide_kernels
from ...kernels.lower.lower import Lowered, lower
from ...kernels.lower.specialise import specialise_kernels
from ...kernels.schedule.tuned import Tuning
from ...targets import Machine
from ..base import ModulePass
from ..graph.fusion_pass import FusionPass
from ..program.layout import Layout
from .apply import apply_program_passes
from .failures import failure_of
from .name_buffers import name_buffers
from .sequence import Sequence


def replay(
    sequence: Sequence,
    module: IRModule,
    model: onnx.ModelProto,
    name: str,
    machine: Machine = Machine(),
    tuning: Tuning = Tuning(),
    layout: Layout | None = None,
) -> tuple[Lowered, int]:
    """Replay a sequence on `module`, imported from `model`; schedule its kernels by `tuning`, its results by `layout`.

    Returns the program and its workspace outside the arena, in bytes. Raises SequenceError for a pass, or a layout, that does not
    take the graph, ConfigError for a tuning of other kernels.
    """
    return schedule_sequence(lower_by_sequence(sequence, module, model, name, machine, tuning), sequence, layout)


def schedule_sequence(lowered: Lowered, sequence: Sequence, layout: Layout | None = None) -> tuple[Lowered, int]:
    """Apply the program passes of `sequence`, and `layout` among them; make kernels to compile."""
    before, after = sequence.around_layout()
    lowered, workspace = apply_program_passes(lowered, (*before, *(() if layout is None else (layout,)), *after))
    return specialise_kernels(lowered), workspace


def lower_by_sequence(
    sequence: Sequence,
    module: IRModule,
    model: onnx.ModelProto,
    name: str,
    machine: Machine = Machine(),
    tuning: Tuning = Tuning(),
) -> Lowered:
    """Lower the result of a sequence's module passes, in the order given.

    Nothing is shared, split or scheduled yet. Raises SequenceError for a pass that fails on this model.
    """
    # provenance reads variable names, which survive until the first fusion
    grouped, before, fused = module, module, False
    for each in sequence.passes:
        if not isinstance(each, ModulePass):
            continue
        try:
            if isinstance(each, FusionPass):
                before, grouped, fused = module, each.group(module), True
                module = each.fused(module, grouped)
                continue
            module = each.apply(module)
            if not fused:
                before = grouped = module
        except Exception as error:
            if failure_of(error) is None:
                raise
            raise SequenceError(
                f"The pass '{each.spec}' fails on this model ({type(error).__name__}).",
                "Leave it out, or let `passfit optimize` choose the sequence.",
            ) from error
    nodes = provenance(model, before, grouped)
    inputs, outputs = port_names(model)
    lowered = lower(module, name, inputs, outputs, nodes, machine, tuning)
    return divide_kernels(replace(lowered, program=name_buffers(lowered.program, nodes, model)))
