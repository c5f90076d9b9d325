"""Write the files that run the gate in CI and comment on pull requests (`passfit init --ci`)."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import ConfigError, did_you_mean
from ..support.text_files import read_text
from .declare import repo_root
from .render import render_ci
from .write import MEND, write_all

SERVICES = {"github": ".github/workflows/passfit.yml", "gitlab": ".gitlab/passfit.yml"}
_GITLAB = ".gitlab-ci.yml"
_INCLUDE = "include:\n  - local: .gitlab/passfit.yml\n"


def check_service(service: str) -> None:
    """Check the name of a CI service. Raises ConfigError."""
    if service not in SERVICES:
        raise ConfigError(f"--ci {service}: there is no such service.", did_you_mean(service, SERVICES))


def write_ci(repo: Path, service: str, force: bool = False) -> tuple[list[Path], str]:
    """Write the CI file of a service into the git repo around `repo`; return the files written, and what is left to do.

    A .gitlab-ci.yml that is there is kept. Raises ConfigError for an unknown service, a folder without params.yaml, and a
    file of ours that differs if `force` is not set.
    """
    check_service(service)
    root = repo_root(repo)
    if not (repo / "params.yaml").is_file():
        raise ConfigError(f"'{repo}' has no params.yaml for the gate to judge by.", "Give --model and --target too.")
    place, text = root / SERVICES[service], render_ci(service, Path(os.path.relpath(repo.resolve(), root)).as_posix())
    if place.exists() and read_text(place, MEND) != text and not force:
        raise ConfigError(f"{SERVICES[service]} exists already, and differs.", "Use --force to replace it.")
    files, next_step = {place: text}, "set the variable PASSFIT that the file names"
    if service == "gitlab" and not (root / _GITLAB).exists():
        files[root / _GITLAB] = _INCLUDE
    elif service == "gitlab" and SERVICES[service] not in read_text(root / _GITLAB, MEND):
        next_step += f", and add to {_GITLAB}: `include: [{{local: {SERVICES[service]}}}]`"
    place.parent.mkdir(parents=True, exist_ok=True)
    return [Path(os.path.relpath(path, repo.resolve())) for path in write_all(files)], next_step
