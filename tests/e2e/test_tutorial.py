"""Run docs/tutorial.md as it is written: every command in order, and beside its output what the page shows of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
_BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "end of block"


def shown(line: str) -> re.Pattern[str]:
    """Return the pattern of a line of output: any figures and widths of columns, anything for `…`."""
    words = [re.escape(word) for word in line.split()]
    words = [re.sub(r"\d+(\\?[.,]\d+)*(e\\-\d+)?", r"\\d[\\d.,e-]*", word).replace("…", ".*") for word in words]
    return re.compile(r"\s+".join(words).replace("KiB", "(?:B|KiB)"), re.MULTILINE)


def test_every_command_does_what_the_page_says(tmp_path, warm):
    blocks = _BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    commands = [text for kind, text in blocks if kind == "sh"]
    script = tmp_path / "tutorial.sh"
    script.write_text("".join(f"{text}echo '{_MARK}'\n" for text in commands), encoding="utf-8")
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MLFLOW_", "DVC_", "GIT_", "GITHUB_", "PYTEST_"))
    }
    environment |= {
        f"GIT_{role}_{what}": "t@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    environment |= {
        "PATH": os.pathsep.join(map(str, (warm.python.parent, Path(sys.executable).parent, environment["PATH"]))),
        "DVC_NO_ANALYTICS": "1",
    }
    done = subprocess.run(
        ["bash", "-e", script],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    said = done.stdout.split(f"{_MARK}\n")
    number = -1
    for kind, text in blocks:
        number += kind == "sh"
        for line in text.splitlines() if kind == "text" else ():
            assert shown(line).search(said[number]), (
                f"{line!r} is not in the output of:\n{commands[number]}\n{said[number]}"
            )
