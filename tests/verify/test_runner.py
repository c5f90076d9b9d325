"""Test reports and outputs of a program: complete, or refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from passfit.codegen.library import Library
from passfit.errors import NumericError, ToolchainError
from passfit.program import Buffer, Port, Program, Step, Tensor
from passfit.targets import Runner
from passfit.verify.runner import Linked

REPORT = json.dumps({"before_kib": 1, "after_kib": 2, "runs": 3, "min_ns": 4, "median_ns": 5, "total_ns": 6})


def program() -> Program:
    """Make a program from x to y, each of three floats."""
    tensors = tuple(Tensor((3,), "float32", buffer=number) for number in range(2))
    buffers, steps = (Buffer("x", 12), Buffer("y", 12)), (Step("copy", (0,), (1,)),)
    return Program("m", steps, tensors, buffers, (), (Port("x", 0),), (Port("y", 1),))


def run(folder: Path, script: str, emulated: bool = True):
    """Run a shell script in place of the program, or of its emulator."""
    (folder / "runner").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "runner").chmod(0o755)
    runner = Runner(["/usr/bin/env"], "qemu-none") if emulated else Runner([], "native")
    library = Library("m", folder / "libm.a", folder / "m.h", 0, 0)
    return Linked(library, program(), runner, folder).run([{"x": np.zeros(3, np.float32)}])


def test_a_whole_report_is_read(tmp_path):
    report, outputs = run(tmp_path, f"printf 'aaaabbbbcccc' > outputs.bin; echo '{REPORT}'")
    assert report["runs"] == 3 and outputs[0]["y"].tobytes() == b"aaaabbbbcccc"


GARBAGE = {
    "nothing": "printf aaaabbbbcccc > outputs.bin",
    "half a report": f"printf aaaabbbbcccc > outputs.bin; echo '{REPORT[:20]}'",
    "a list": "printf aaaabbbbcccc > outputs.bin; echo '[[[['",
    "another object": 'printf aaaabbbbcccc > outputs.bin; echo \'{"runs": "many"}\'',
    "bytes": "printf aaaabbbbcccc > outputs.bin; printf '\\377\\376\\000'",
    "deep": "printf aaaabbbbcccc > outputs.bin; head -c 200000 /dev/zero | tr '\\000' '['",
    "no outputs": f"echo '{REPORT}'",
    "short outputs": f"printf aaaa > outputs.bin; echo '{REPORT}'",
    "long outputs": f"printf aaaabbbbccccdddd > outputs.bin; echo '{REPORT}'",
}


@pytest.mark.parametrize("script", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.fault(
    "an emulator",
    "it answers nonsense, or too few results",
    "exit code 2 with its name; without one, the library is refused",
)
def test_garbage_is_the_emulators_fault_where_there_is_one(tmp_path, script):
    with pytest.raises(ToolchainError, match="qemu-none"):
        run(tmp_path, script)
    with pytest.raises(NumericError, match="report this model"):
        run(tmp_path, script, emulated=False)


@pytest.mark.fault("an emulator", "it cannot map memory", "exit code 2 with its message")
def test_an_emulators_own_exit_code_is_not_the_librarys(tmp_path):
    with pytest.raises(ToolchainError, match="cannot map memory"):
        run(tmp_path, "echo cannot map memory >&2; exit 1")
    with pytest.raises(NumericError, match="the workspace is too small"):
        run(tmp_path, "echo the workspace is too small >&2; exit 3")


def test_a_signal_without_a_name_is_reported(tmp_path):
    with pytest.raises(NumericError, match="signal 4"):
        run(tmp_path, "kill -40 $$", emulated=False)
