"""Find the results that a person names: a folder, the id of an MLflow run, or a git revision, in this order."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ..errors import ConfigError

if TYPE_CHECKING:
    from ..report.results import Pair, Result


def results_named(name: str) -> dict[Pair, Result]:
    """Return the results by model and target. Raises ConfigError with the next step where there are none."""
    from ..artifacts.read_results import results_in
    from ..artifacts.revision import results_at_revision
    from ..tracking.fetch import fetch_run, is_run

    if Path(name).is_dir():
        return results_in(Path(name))
    if is_run(name):
        with TemporaryDirectory(prefix="passfit-run-") as folder:
            fetch_run(Path(), name, Path(folder))
            return results_in(Path(folder))
    try:
        return results_at_revision(Path(), name)
    except ConfigError as error:
        where = "neither a folder, nor the id of an MLflow run, nor a git revision with results"
        raise ConfigError(f"'{name}' is {where}: {error.what}", error.hint) from None
