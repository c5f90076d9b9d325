"""Build the shared library of a model for this machine, and call it from Python."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ModelError, NumericError, ToolchainError
from ..frontend.canonical.ports.values import widened
from ..verify.runner import numpy_dtype

if TYPE_CHECKING:
    import onnx

    from ..codegen.checks.guard_kernels import Reasons
    from ..kernels.lower.lower import Lowered
    from ..program import Program
    from ..targets import Target

#: TVM's own way down: nothing is searched for
SHORT = ("legalize", "fold-constant", "fuse-operators")
#: prefix of the library's functions
NAME = "model"


@dataclass(frozen=True)
class ArrayPort:
    """Input or output: its name, shape, and dtype in words of the program."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def empty(self) -> np.ndarray:
        """Return an array of its shape and dtype."""
        return np.empty(self.shape, numpy_dtype(self.dtype))


def array_ports(program: Program) -> tuple[tuple[ArrayPort, ...], tuple[ArrayPort, ...]]:
    """Return the inputs and the outputs of a program, in order."""
    inputs, outputs = (
        tuple(
            ArrayPort(port.name, found.shape, found.dtype) for port in ports for found in [program.tensors[port.tensor]]
        )
        for ports in (program.inputs, program.outputs)
    )
    return inputs, outputs


@dataclass(frozen=True)
class Built:
    """Shared library at `path`, with its ports in order."""

    path: Path
    inputs: tuple[ArrayPort, ...]
    outputs: tuple[ArrayPort, ...]


def build(
    model: onnx.ModelProto,
    shapes: Mapping[str, Sequence[int]],
    fix: Mapping[str, np.ndarray],
    folder: Path,
    passes: Sequence[str] = SHORT,
) -> Built:
    """Import and compile a model into a new folder below `folder`; `shapes` and `fix` as in `import_model`.

    Raises ModelError, SequenceError, ToolchainError.
    """
    from ..frontend.relax.to_relax import to_relax
    from ..passes.sequence.replay import replay
    from ..passes.sequence.sequence import Sequence as PassSequence

    canonical = imported(model, shapes, fix, folder)
    target = host()
    lowered, workspace = replay(PassSequence.parse(passes), to_relax(canonical), canonical, NAME, target.machine)
    return link_lowered(lowered, workspace, folder)


def link_lowered(
    lowered: Lowered, workspace: int, folder: Path, objects: Sequence[Path] = (), reasons: Reasons | None = None
) -> Built:
    """Plan and link a lowered program; `workspace` is in bytes.

    `objects` hold its kernels if they are compiled already, which may fail for `reasons`.
    """
    from ..codegen.build_library import check_arguments, refuse_large_library
    from ..codegen.quick_shared import link_objects, link_quickly
    from ..memory.validation.checked_plan import checked_plan

    target, program = host(), lowered.program
    plan = checked_plan(program, target)
    check_arguments(lowered)
    refuse_large_library(plan.arena, workspace, program.weight_bytes, target)
    place = Path(tempfile.mkdtemp(dir=folder))
    if objects:
        path = link_objects(lowered, plan, workspace, objects, target, place, reasons)
    else:
        path = link_quickly(lowered, plan, workspace, target, place)
    return Built(path, *array_ports(program))


def imported(
    model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]], fix: Mapping[str, np.ndarray], folder: Path
) -> onnx.ModelProto:
    """Import a model held in memory: the importer reads files. Raises ModelError."""
    import onnx

    from ..frontend.canonicalise import import_model
    from ..frontend.source.import_options import ImportOptions

    with tempfile.TemporaryDirectory(dir=folder) as place:
        file = Path(place) / "model.onnx"
        onnx.save(model, file)
        return import_model(file, ImportOptions(shapes, fix))


@lru_cache(1)
def host() -> Target:
    """Return the target of this machine. Raises ToolchainError if the catalogue has none."""
    from ..targets.native import native_target

    found = native_target()
    if found is None:
        raise ToolchainError("No target of the catalogue runs natively on this machine.", "See `passfit targets`.")
    return found


class LoadedLibrary:
    """Library loaded into this process."""

    def __init__(self, built: Built):
        self.built = built
        loaded = ctypes.CDLL(str(built.path))
        self._run, self._error = getattr(loaded, f"{NAME}_run"), getattr(loaded, f"{NAME}_error")
        self._error.restype = ctypes.c_char_p
        self._input, self._output = getattr(loaded, f"{NAME}_input"), getattr(loaded, f"{NAME}_output")
        self._input.restype = self._output.restype = ctypes.c_void_p

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs by name; numbers of few bits are taken in wider dtypes. Raises ModelError for inputs of another form, NumericError if the run fails."""
        for number, port in enumerate(self.built.inputs):
            value = widened(np.asarray(inputs[port.name], order="C"))
            if (value.shape, value.dtype) != (port.shape, numpy_dtype(port.dtype)):
                raise ModelError(
                    f"The input '{port.name}' is {value.dtype}{list(value.shape)}; the library takes {port.dtype}{list(port.shape)}.",
                    "Prepare the model for this form.",
                )
            ctypes.memmove(self._input(number), value.ctypes.data, value.nbytes)
        if self._run():
            raise NumericError(f"The library failed: {(self._error() or b'').decode()}.")
        results = {}
        for number, port in enumerate(self.built.outputs):
            results[port.name] = result = port.empty
            ctypes.memmove(result.ctypes.data, self._output(number), result.nbytes)
        return results
