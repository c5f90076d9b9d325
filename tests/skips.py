"""The reasons for which a test may be skipped: something is not on this machine. Any other skip is a failure."""

from __future__ import annotations

import re

REASONS = (
    r"shared/rebench is not there",
    r"shared/cases is not there",
    r"shared/mlperf_tiny is not there",
    r"the extra `\w+` is not installed",
    r"the host cannot run x86-64-v3",
    r"no target of the catalogue runs natively on this machine",
    r"(.*\()?not-run: .*",  # the emulator of a foreign target is not installed; .ci/run installs them
    r"qemu is not installed",
    r"PASSFIT_OTHER_PYTHON names no other Python",
    r"no file system can be mounted here",  # not without root
    r"(arm-none-eabi-|riscv64-unknown-elf-)?gcc is not installed",  # .ci/run installs those of boards
    r"no C compiler is installed",  # of this machine, for build systems that look for one; the tests' own comes with PyPI
    r"chromium is not installed",  # .ci/run installs it
    r"no Python with .* is here: make exporters",  # frameworks of hundreds of MB, for docs/exporting.md; the weekly run has them
    r"the cases are those of onnx [0-9.]+",
    r"onnxruntime before 1.32 leaves beta out of a Gemm of empty matrices",
)


def is_expected(reason: str) -> bool:
    """Tell whether a test may be skipped for `reason`, as pytest reports it."""
    return any(re.fullmatch(each, reason.removeprefix("Skipped: "), re.DOTALL) for each in REASONS)
