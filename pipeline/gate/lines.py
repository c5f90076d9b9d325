"""Find the lines of params.yaml that failures are about, for annotations."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ..support.yaml_file import key_line, read_yaml_text
from .verdict import ACCURACIES, Verdict

_PARAMS = "params.yaml"


def add_lines(repo: Path, verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Return the verdicts, failures with the line of params.yaml that declares the limit, the target or the model."""
    text = read_yaml_text(repo / _PARAMS)
    return tuple(
        verdict if verdict.ok else replace(verdict, line=key_line(text, _places(verdict))) for verdict in verdicts
    )


def file_in_git(repo: Path) -> str:
    """Return the path of params.yaml from the root of the git repo around it, as annotations name files."""
    place = repo.resolve()
    root = next((each for each in (place, *place.parents) if (each / ".git").exists()), place)
    return Path(os.path.relpath(place / _PARAMS, root)).as_posix()


def _places(verdict: Verdict) -> list[tuple[str, ...]]:
    """List the paths of keys that a verdict may be about, the nearest first."""
    model, target = ("models", verdict.model), ("targets", verdict.target)
    if verdict.limit_kind == "budget":
        budgets, budget = (*target, "budgets", verdict.model), (*target, "budget")
        key = ACCURACIES.get(verdict.quantity, verdict.quantity)
        limits = [(*place, *region, key) for place in (budgets, budget) for region in ((), ("regions",))]
        return [*limits, target, model]
    if verdict.quantity in ACCURACIES and verdict.limit_kind != "growth":
        return [(*model, "data"), model, target]
    if verdict.limit_kind == "growth":
        return [(*target, "accepted-growth", verdict.model), model, target]
    return [target, model] if verdict.limit_kind in ("capacity", "measured") else [model, target]
