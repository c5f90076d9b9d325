"""Turn a git and DVC repo with models into one that compiles them (`passfit init`)."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ConfigError, TargetError
from ..frontend.source.import_options import ImportOptions
from ..support.text_files import read_text
from ..targets.catalogue import get_target
from .declare import data_in, declare, repo_root, source_in
from .dvc_file import side_paths
from .merge import merge_dvc_yaml, merge_params_yaml
from .names import model_names
from .render import is_fetched, render_dvc_yaml, render_params_yaml
from .write import MEND, write_all

#: paths git ignores: DVC keeps out/ and draws plots, MLflow keeps its own store
IGNORED = ("/out/", "/dvc_plots/", "/mlflow.db*", "/mlflow.lock", "/mlruns/", "/mlartifacts/")

_MERGE = {"dvc.yaml": merge_dvc_yaml, "params.yaml": merge_params_yaml}


def init_repo(
    repo: Path,
    models: Sequence[str],
    targets: Sequence[str],
    shapes: Mapping[str, Sequence[int]] | None = None,
    force: bool = False,
    merge: bool = False,
    show: Callable[[str], None] = lambda diff: None,
    data: str | None = None,
    quantize: str | None = None,
    calibration: str | None = None,
    **options: Any,
) -> list[Path]:
    """Write dvc.yaml, params.yaml and lines of .gitignore into `repo`; return the files written.

    `models` are paths (relative to the working directory) or `pypi:` sources; `shapes`, and the forms of `inputs`, are given to every model that
    has such an input, and `outputs` are kept alone in every model that has one of them; `data` are samples of all,
    by which all are quantised in the form `quantize`, with ranges by `calibration` if it is given. All files are written, or none.
    A file that exists is kept with ours appended if `merge` is set, and replaced if `force` is; `show` gets the diff of every
    file that is, or would be, changed. Raises ConfigError outside of a git and DVC repo, for a model outside of it, for a file
    that exists already if neither is set, and for one that cannot be merged with; ModelError for a model that cannot be read
    or leaves a shape open; TargetError for an unknown target.
    """
    root = repo_root(repo)
    if not models:
        raise ConfigError("No model was named.", "Give --model PATH.")
    if not targets:
        raise TargetError("No target was named.", "Give --target NAME; `passfit targets` lists them.")
    targets = list(dict.fromkeys(targets))
    for target in targets:
        get_target(target, repo)
    sources = model_names(source_in(repo, root, model) for model in models)
    samples = data_in(repo, root, data, calibration)
    declared = declare(repo, sources, ImportOptions(shapes or {}, **options), samples, quantize)
    beside = {name: side_paths(repo, source) for name, source in sources.items() if not is_fetched(source)}
    files = {
        "dvc.yaml": render_dvc_yaml(declared, targets, beside, repo),
        "params.yaml": render_params_yaml(declared, targets),
    }
    existing = [name for name in files if (repo / name).exists()]
    refused: ConfigError | None = None
    if not force:
        try:
            files |= {name: _MERGE[name](repo / name, files[name]) for name in existing}
        except ConfigError as error:
            if merge:
                raise
            refused = error
    undecided = _undecided(repo, existing, refused) if existing and not (force or merge) else None
    if undecided is not None:
        show(f"{undecided} Nothing is written yet. {'--force' if refused else '--merge'} would write:")
    for name in existing:
        show(_diff(repo / name, files[name]))
    if undecided is not None:
        raise undecided
    files[".gitignore"] = _with_lines(repo / ".gitignore", IGNORED)
    return write_all({repo / name: text for name, text in files.items()})


def _undecided(repo: Path, existing: Sequence[str], refused: ConfigError | None) -> ConfigError:
    """Return the error that names the ways to go on beside files that exist; `refused` says why they cannot be merged with."""
    there = f"{' and '.join(existing)} already {'exist' if len(existing) > 1 else 'exists'} in '{repo}'."
    if refused:
        return ConfigError(
            f"{there} {refused.what}", "Use --folder passfit to keep what is there, or --force to replace it."
        )
    return ConfigError(
        there, "Use --merge to write this, --folder passfit to keep yours as they are, or --force to replace them."
    )


def _diff(path: Path, text: str) -> str:
    """Return the diff of a file and a new `text`."""
    old = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(difflib.unified_diff(old, text.splitlines(), path.name, f"{path.name} of passfit", lineterm=""))


def _with_lines(path: Path, lines: Sequence[str]) -> str:
    """Return the text of .gitignore with `lines` added, except present ones."""
    text = read_text(path, MEND) if path.exists() else ""
    missing = [line for line in lines if line not in text.splitlines()]
    if text and missing and not text.endswith("\n"):
        text += "\n"
    return text + "".join(f"{line}\n" for line in missing)
