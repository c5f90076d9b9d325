"""The Dockerfile, read line by line: what it copies is there and not ignored, what it installs is what passfit asks for.

`make docker` builds the image, where a Docker engine is at hand; the weekly run does.
"""

from __future__ import annotations

import fnmatch
import re
import shlex
import subprocess
import sys
from pathlib import Path

import tomli

ROOT = Path(__file__).parents[2]
TEXT = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
LINES = [line.split(" ", 1) for line in TEXT.replace("\\\n", "").split("\n") if line.strip()]
COPIED = [word for name, rest in LINES if name == "COPY" for word in rest.split()[:-1]]
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()


def test_it_copies_what_a_wheel_needs_and_nothing_else():
    assert sorted(COPIED) == ["LICENSE", "README.md", "pipeline", "pyproject.toml", "stages"]
    assert all((ROOT / each).exists() for each in COPIED)


def test_the_context_is_what_it_copies():
    assert IGNORED[0] == "*" and sorted(each[1:] for each in IGNORED if each.startswith("!")) == sorted(COPIED)
    assert any(fnmatch.fnmatch("pipeline/__pycache__", each) for each in IGNORED[1:])


def test_its_dependencies_are_those_of_the_project(tmp_path: Path):
    """Run the command as Docker does, but for the parser's name on older Pythons."""
    (command,) = (rest for name, rest in LINES if name == "RUN" and "requirements.txt" in rest)
    written = command.partition("&&")[0].replace("python -c", f"{sys.executable} -c").replace("tomllib", "tomli")
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    subprocess.run(["sh", "-e", "-c", written], cwd=tmp_path, check=True)
    wanted = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert (tmp_path / "requirements.txt").read_text(encoding="utf-8").splitlines() == wanted


def test_it_has_the_emulators_that_tests_run():
    install = next(rest for name, rest in LINES if name == "RUN" and "apt-get install" in rest)
    asked = {word for word in shlex.split(install) if word.startswith("qemu")}
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert asked == set(re.findall(r"\bqemu-(?:user-static|system-\w+)(?=\s)", script.partition("apt-get install")[2]))


def test_nothing_comes_from_outside_of_the_registries():
    assert not re.search(r"https?:|\b(curl|wget|git clone|ADD)\b", TEXT)
    assert [name for name, _ in LINES][-2:] == ["ENTRYPOINT", "CMD"]
