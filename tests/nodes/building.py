"""ONNX's node cases on their way: import, lower by a sequence of passes, build into one C library, run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx

from passfit.codegen import symbol, write_library
from passfit.errors import ModelError
from passfit.frontend.canonical.ports.apply import port_forms
from passfit.frontend.canonicalise import import_model
from passfit.memory import validate_plan
from passfit.passes.sequence.sequence import Sequence as PassSequence
from passfit.targets import Target, get_target
from passfit.verify.runner import link

from ..frontend.onnx_nodes import NodeCase
from ..models import save
from .calling import call
from .merging import merge, plan_parts, port_name

if TYPE_CHECKING:
    from tvm.ir import IRModule

    from passfit.kernels.lower.lower import Lowered

HOST = get_target("x86-64")


@dataclass(frozen=True)
class Outcome:
    """What became of a case: the outputs in the model's order, or why it was refused, or how it went wrong."""

    outputs: tuple[np.ndarray, ...] = ()
    refusal: str = ""
    failure: str = ""


def compile_and_run(
    cases: Iterable[NodeCase], passes: Sequence[str], folder: Path, target: Target = HOST
) -> dict[str, Outcome]:
    """The outcome of each case by its name; a foreign target's emulator runs it."""
    from passfit.passes.sequence.replay import replay

    sequence = PassSequence.parse(passes)
    outcomes: dict[str, Outcome] = {}
    lowered: dict[str, tuple[NodeCase, Lowered]] = {}
    workspace = 0
    for case in cases:
        try:
            model, module = _imported(case.model.SerializeToString(), folder)
            part, needed = replay(sequence, module, model, case.name, target.machine)
            lowered[case.name], workspace = (case, part), max(workspace, needed)
        except ModelError as refusal:
            outcomes[case.name] = Outcome(refusal=str(refusal))
        except Exception as error:  # one bug must not hide the others
            outcomes[case.name] = Outcome(failure=f"{type(error).__name__}: {error}")
    ran = run_lowered(list(lowered.values()), workspace, folder, target)
    return outcomes | {
        name: _cut(each, _known[lowered[name][0].model.SerializeToString()][0]) for name, each in ran.items()
    }


def _cut(outcome: Outcome, model: onnx.ModelProto) -> Outcome:
    """Return an outcome with the outputs of the file, as long as the data decided."""
    forms = port_forms(model)["outputs"]
    found = dict(zip([value.name for value in model.graph.output], outcome.outputs, strict=True))
    for name, form in forms.items():
        if "length" in form:
            count = int(found.pop(form["length"]["output"]).item())
            found[name] = found[name].take(range(count), form["length"]["axis"])
    return replace(outcome, outputs=tuple(found.values()))


_known: dict[bytes, tuple[onnx.ModelProto, IRModule]] = {}


def _imported(given: bytes, folder: Path) -> tuple[onnx.ModelProto, IRModule]:
    """Import a model, once for all sequences and targets."""
    from passfit.frontend.relax.to_relax import to_relax

    if given not in _known:
        model = import_model(save(onnx.ModelProto.FromString(given), folder))
        _known[given] = model, to_relax(model)
    return _known[given]


def run_lowered(
    lowered: list[tuple[NodeCase, Lowered]], workspace: int, folder: Path, target: Target
) -> dict[str, Outcome]:
    from passfit.codegen.objects import build_object

    parts = [part for _, part in lowered]
    merged = merge(parts)
    program = merged.program
    plan = plan_parts(parts, program, target.alignment)
    validate_plan(program, plan, target.alignment)
    kernels = folder / "kernels.o"
    build_object({symbol(program.name, kernel): each for kernel, each in merged.kernels.items()}, target, kernels)
    library = write_library(program.name, program, plan, workspace, merged.weights, [kernels], target, folder)
    inputs = {
        port_name(number, name): value
        for number, (case, _) in enumerate(lowered)
        for name, value in case.inputs.items()
    }
    if target is HOST:
        results = call(library, program, inputs)
    else:
        (folder / "linked").mkdir()
        _, (results,) = link(library, program, target, folder / "linked").run([inputs])
    return {
        case.name: Outcome(tuple(results[port_name(number, port.name)] for port in part.program.outputs))
        for number, (case, part) in enumerate(lowered)
    }
