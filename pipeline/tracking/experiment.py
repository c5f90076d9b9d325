"""Recognise results of a DVC experiment, which are tried and not released."""

from __future__ import annotations

import os
from pathlib import Path

from ..artifacts.git import git_line

#: set by `dvc exp run` for the stages it runs, in the workspace and in copies of it
NAME = "DVC_EXP_NAME"
#: folder of the copies that queued experiments run in, below the root of a repo
COPIES = (".dvc", "tmp", "exps")
#: git keeps one reference for each experiment here; below EXEC, DVC's own
_REFERENCES, _EXEC = "refs/exps", "refs/exps/exec/"


def experiment_of(repo: Path) -> str | None:
    """Return the name of the experiment whose results are in `repo`; None for any other results.

    Three signs: DVC's environment, a copy of the repo made by DVC, and a dvc.lock that is an experiment's and not that
    of the last commit. Committed, an experiment is one no more.
    """
    if name := os.environ.get(NAME):
        return name
    parts = repo.resolve().parts
    for i in range(len(parts) - len(COPIES)):
        if parts[i : i + len(COPIES)] == COPIES:
            return parts[i + len(COPIES)]
    return _experiment_in_git(repo)


def _experiment_in_git(repo: Path) -> str | None:
    """Find the experiment whose dvc.lock is that of the workspace, unless that is committed."""
    if not (repo / "dvc.lock").is_file():
        return None
    lock = git_line(repo, "hash-object", "dvc.lock")
    if not lock or lock == git_line(repo, "rev-parse", "--verify", "--quiet", "HEAD:./dvc.lock"):
        return None
    for reference in git_line(repo, "for-each-ref", "--format=%(refname)", _REFERENCES).split():
        kept = (
            ""
            if reference.startswith(_EXEC)
            else git_line(repo, "rev-parse", "--verify", "--quiet", f"{reference}:./dvc.lock")
        )
        if kept == lock:
            return reference.rpartition("/")[2]
    return None
