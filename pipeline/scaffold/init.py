"""`passfit init`: turn a git+DVC repo with models into one that compiles them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..config import ModelParams
from ..errors import ConfigError, ModelError, TargetError
from ..frontend.binding import bind_inputs
from ..frontend.reading import read_model
from ..frontend.source import resolve_source
from ..targets.catalogue import get_target
from .names import model_names
from .render import is_fetched, render_dvc_yaml, render_params_yaml
from .write import write_all

#: what git must not keep: DVC keeps out/, MLflow keeps its own store
IGNORED = ("/out/", "/mlflow.db*", "/mlflow.lock", "/mlruns/", "/mlartifacts/")


def init_repo(
    repo: Path,
    models: Sequence[str],
    targets: Sequence[str],
    shapes: Mapping[str, Sequence[int]] | None = None,
    force: bool = False,
) -> list[Path]:
    """Write dvc.yaml, params.yaml and the lines of .gitignore into the folder `repo`; return the files written.

    `models` are paths (relative to the working directory) or `pypi:` sources; `shapes` are given to every model that
    has such an input. All files are written, or none. Raises ConfigError outside of a git and DVC repo, for a model
    outside of it, and where a file exists already and `force` is not set; ModelError for a model that cannot be read
    or leaves a shape open; TargetError for an unknown target.
    """
    root = _repo_root(repo)
    if not models:
        raise ConfigError("No model was named.", "Say --model PATH.")
    if not targets:
        raise TargetError("No target was named.", "Say --target NAME; `passfit targets` lists them.")
    targets = list(dict.fromkeys(targets))
    for target in targets:
        get_target(target, repo)
    if not force:
        _refuse_existing(repo)
    sources = model_names(source if is_fetched(source) else _inside(source, repo, root) for source in models)
    declared = _declare(repo, sources, dict(shapes or {}))
    return write_all(
        {
            repo / "dvc.yaml": render_dvc_yaml(sources, targets),
            repo / "params.yaml": render_params_yaml(declared, targets),
            repo / ".gitignore": _with_lines(repo / ".gitignore", IGNORED),
        }
    )


def _repo_root(repo: Path) -> Path:
    """The root of the git repo around `repo`, which DVC must know too."""
    if not repo.is_dir():
        raise ConfigError(f"'{repo}' is not a folder.", "Name the folder of a git repo.")
    above = [repo.resolve(), *repo.resolve().parents]
    root = next((folder for folder in above if (folder / ".git").exists()), None)
    if root is None:
        raise ConfigError(f"'{repo}' is not in a git repo.", "Run `git init && dvc init` first.")
    if not any((folder / ".dvc").is_dir() for folder in above if folder.is_relative_to(root)):
        raise ConfigError(f"'{repo}' is not in a DVC repo.", "Run `dvc init` in the root of the git repo first.")
    return root


def _inside(model: str, repo: Path, root: Path) -> str:
    """The path of a model as params.yaml names it: relative to `repo`, with '/'."""
    path = resolve_source(model).resolve()
    if not path.is_relative_to(root):
        raise ConfigError(
            f"The model '{model}' is outside of the repo '{root}'.", "Copy it in, and keep it with `dvc add`."
        )
    up = 0
    folder = repo.resolve()
    while not path.is_relative_to(folder):
        folder, up = folder.parent, up + 1
    return "../" * up + path.relative_to(folder).as_posix()


def _declare(repo: Path, sources: Mapping[str, str], shapes: dict[str, Sequence[int]]) -> dict[str, ModelParams]:
    """The models of params.yaml, each with those of `shapes` that are about its inputs, checked against the file."""
    declared, inputs = {}, set()
    for name, source in sources.items():
        model = read_model(resolve_source(source if is_fetched(source) else str(repo / source)))
        own = {value.name: list(shapes[value.name]) for value in model.graph.input if value.name in shapes}
        inputs |= own.keys()
        try:
            bind_inputs(model, own, {})
        except ModelError as error:
            raise ModelError(f"{source}: {error.what}", error.hint) from error
        declared[name] = ModelParams(source=source, shapes=own)
    for unknown in sorted(shapes.keys() - inputs):
        raise ModelError(f"No model has an input '{unknown}'.", "Look at the names of the inputs again.")
    return declared


def _refuse_existing(repo: Path) -> None:
    existing = [name for name in ("dvc.yaml", "params.yaml") if (repo / name).exists()]
    if existing:
        raise ConfigError(
            f"{' and '.join(existing)} already {'exist' if len(existing) > 1 else 'exists'} in '{repo}'.",
            "Use --force to replace, or run `passfit init` in a folder of its own.",
        )


def _with_lines(path: Path, lines: Sequence[str]) -> str:
    """The text of .gitignore with `lines` added, except those it has."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    missing = [line for line in lines if line not in text.splitlines()]
    if text and missing and not text.endswith("\n"):
        text += "\n"
    return text + "".join(f"{line}\n" for line in missing)
