"""Run docs/tutorial.md as it is written: every command in order, and beside its output what the page shows of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
_BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "end of block"
#: begins a repo of its own, which needs the emulator of a microcontroller
_SAMPLES = re.compile(r"^## Your samples.*?(?=^## )", re.MULTILINE | re.DOTALL)


def shown(line: str) -> re.Pattern[str]:
    """Return the pattern of a line of output: any figures and widths of columns, anything for `…`."""
    words = [re.escape(word) for word in line.split()]
    words = [re.sub(r"\d+(\\?[.,]\d+)*(e\\-\d+)?", r"\\d[\\d.,e-]*", word).replace("…", ".*") for word in words]
    return re.compile(r"\s+".join(words).replace("KiB", "(?:B|KiB)"), re.MULTILINE)


def test_every_command_of_the_first_repo_does_what_the_page_says(tmp_path, warm):
    _run(_BLOCK.findall(_SAMPLES.sub("", PAGE.read_text(encoding="utf-8"))), tmp_path, warm)


@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="not-run: no qemu-system-arm")
def test_five_commands_make_an_int8_library_of_a_float_model_and_a_folder_of_pictures(tmp_path, warm):
    (section,) = _SAMPLES.findall(PAGE.read_text(encoding="utf-8"))
    blocks = _BLOCK.findall(section)
    ways = [text.splitlines() for kind, text in blocks if kind == "sh" and "passfit init" in text]
    assert [len(commands) for commands in ways] == [5]
    (tmp_path / "before").mkdir()
    _run(blocks, tmp_path / "before", warm)
    made = tmp_path / "pictures"
    found = json.loads((made / "accuracies/digits-int8/mps2-an386.json").read_text())
    accuracy = found["reference"]["value"]
    assert accuracy > 0.92 and found["library"]["agreement"] >= 0.99
    assert f"{accuracy:.4g}" in (made / "out/report/index.html").read_text(encoding="utf-8")
    assert (made / "out/quantize/digits-int8/curve.svg").is_file()


def _run(blocks: list[tuple[str, str]], folder: Path, warm) -> None:
    """Run the commands in one shell; what the page shows of their output must be there."""
    commands = [text for kind, text in blocks if kind == "sh"]
    script = folder / "tutorial.sh"
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
        cwd=folder,
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
