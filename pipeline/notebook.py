"""Compile, predict and run models from Python: targets by name, sizes as `256KiB`, arrays in and out.

    library = passfit.compile("model.onnx", "rpi4", "build", ram="256KiB")
    library.report.best.ram, library.fits
    library.run(image=pixels)["scores"]

`passfit.api` has every setting; these functions hand the usual ones over to it.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .backend.built import array_ports, cut_outputs
from .errors import ModelError, ToolchainError, did_you_mean
from .evaluate.open_result import open_result
from .frontend.source.import_options import ImportKeywords
from .memory import read_report
from .memory.footprint import Budget, FootprintReport
from .search.settings import SearchSettings
from .support.sizes import parse_size
from .support.temporary_folder import scratch_folder
from .targets import Target, get_target, load_catalogue
from .verify.linked.program import Linked
from .verify.runner import link, numpy_dtype

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .fit.fit_model import FitReport

#: repo whose devices of its own count
_HERE = Path()


class RunnableLibrary:
    """Library of a result folder, which runs here: natively, under the emulator of its target, or on its board.

    `inputs` and `outputs` are in the order of the header.
    """

    def __init__(self, folder: str | Path):
        """Open a folder that `passfit compile` wrote. Raises ConfigError, TargetError."""
        self.folder = Path(folder)
        self._opened = opened = open_result(self.folder)
        self.report: FootprintReport = read_report(self.folder / "footprint.json")
        self.target: Target = get_target(self.report.target, _HERE).with_threads(opened.library.threads)
        self.inputs, self.outputs = array_ports(
            opened.program, {port["name"]: port for port in opened.manifest["io"].get("outputs", ())}
        )

    @property
    def fits(self) -> bool:
        """Return whether the library keeps its budget, or the capacity of its device."""
        return self.report.fits

    def run(self, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Return the outputs by name, for inputs by name; see `run_all` for names that Python does not take."""
        return self.run_all([inputs])[0]

    def run_all(self, cases: Sequence[Mapping[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
        """Return the outputs of each case, all in one process; rows that the data did not fill are cut off.

        Raises ModelError for inputs of another form, ToolchainError if the target does not run here, NumericError.
        """
        given = [self._check(case) for case in cases]
        if self._linked.runner.command is None:
            raise ToolchainError(
                f"The library does not run here: {self._linked.runner.how}.", "Compile it for a target that does."
            )
        return [cut_outputs(each, self.outputs) for each in self._linked.run(given)[1]] if given else []

    @cached_property
    def _linked(self) -> Linked:
        """Link the program that runs the library, in a folder that goes with this object."""
        leaving = ExitStack()
        weakref.finalize(self, leaving.close)
        folder = leaving.enter_context(scratch_folder())
        return link(self._opened.library, self._opened.program, self.target, folder)

    def _check(self, case: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the values of a case in the dtypes of the library. Raises ModelError."""
        names = [port.name for port in self.inputs]
        for name in case:
            if name not in names:
                raise ModelError(f"The library has no input '{name}'.", did_you_mean(name, names))
        found = {}
        for port in self.inputs:
            if port.name not in case:
                raise ModelError(f"The input '{port.name}' is missing.", f"Give {', '.join(names)}.")
            value, dtype = np.asarray(case[port.name]), numpy_dtype(port.dtype)
            if value.shape != port.shape or not (
                np.can_cast(value.dtype, dtype, "same_kind") or value.dtype.kind in "iu"
            ):
                raise ModelError(
                    f"The input '{port.name}' is {value.dtype}{list(value.shape)}; the library takes "
                    f"{port.dtype}{list(port.shape)}.", "Convert it, or reshape it.",
                )  # fmt: skip
            found[port.name] = cast = value.astype(dtype, order="C")
            if value.dtype.kind in "iu" and not np.array_equal(cast, value):
                raise ModelError(
                    f"The input '{port.name}' has integers that {port.dtype} does not hold.", "Scale or clip them."
                )
        return found


def compile(
    model: str | Path,
    target: str | Target,
    out: str | Path,
    *,
    ram: str | int | None = None,
    flash: str | int | None = None,
    seconds: float | None = None,
    evaluations: int | None = None,
    name: str | None = None,
    **options: Unpack[ImportKeywords],
) -> RunnableLibrary:
    """Compile a model for a target into the folder `out`, as `passfit compile` does; return the library.

    `ram` and `flash` are its budget, in bytes or as `256KiB`; `seconds` and `evaluations` limit the search. Raises PassfitError.
    """
    from . import api

    search = SearchSettings(seconds=seconds, evaluations=evaluations)
    api.compile_model(model, _device(target), _budget(ram, flash), out=Path(out), name=name, search=search, **options)
    return load(out)


def load(folder: str | Path) -> RunnableLibrary:
    """Open the library of a result folder, of this or an earlier `compile`. Raises ConfigError, TargetError."""
    return RunnableLibrary(folder)


def fit_targets(
    model: str | Path,
    *targets: str | Target,
    ram: str | int | None = None,
    flash: str | int | None = None,
    name: str | None = None,
    **options: Unpack[ImportKeywords],
) -> FitReport:
    """Predict in seconds which targets a model fits, by default of all; see `FitReport`. Raises PassfitError."""
    from . import api

    devices = [_device(each) for each in targets] or list(load_catalogue(_HERE).readable().values())
    budgets = dict.fromkeys((each.name for each in devices), _budget(ram, flash))
    search = SearchSettings(seconds=1.0)
    return api.fit(model, devices, budgets, name=name, search=search, exact=bool(targets), **options)


def _device(target: str | Target) -> Target:
    return target if isinstance(target, Target) else get_target(target, _HERE)


def _budget(*limits: str | int | None) -> Budget:
    return Budget(*(each if each is None else parse_size(each) for each in limits))
