"""Run an image that a library is linked into, under the emulator of its board."""

from __future__ import annotations

import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...image import Image
from .program import Linked

#: nanoseconds of an emulator's clock in a microsecond; an instruction takes one of them
_MICROSECOND = 1000


@dataclass(frozen=True)
class LinkedImage(Linked):
    """Library in the image `emulated`, which `runner` runs; `image` is that of the device itself."""

    image: Image
    emulated: Image

    def command(self, inputs: list[dict[str, np.ndarray]], repeats: int, seconds: float) -> list[str]:
        """Write the inputs to `folder` and return the command to run there; an image is neither timed nor repeated."""
        self.write_inputs(inputs, len(inputs).to_bytes(4, "little"))
        (self.folder / "report.bin").unlink(missing_ok=True)
        return [*(self.runner.command or []), self.emulated.elf.name]

    def report(self, text: str, where: str) -> dict[str, int]:
        """Read the image's report: its stack in bytes, and the instructions of a run. Raises ToolchainError."""
        try:
            stack, ticks = struct.unpack("<QQ", (self.folder / "report.bin").read_bytes())
        except (OSError, struct.error):
            raise self.garbled(f"{where} wrote no report") from None
        mhz = self.emulated.board.mhz
        return {"stack": stack, "instructions": ticks if mhz is None else ticks * _MICROSECOND // mhz}

    def copy_image(self, folder: Path, whole: bool) -> None:
        """Copy the files of the device's board to a folder; of a `whole` image, program, map and main too."""
        for file in self.image.files if whole else self.image.board_files:
            shutil.copy(file, folder)
