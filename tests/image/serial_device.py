"""Play a device on the desk behind a serial line: a pseudo terminal, and QEMU as the processor.

Both sides send files as frames: eight hexadecimal digits that count bytes, and the bytes.
"""

from __future__ import annotations

import os
import subprocess
import threading
import tty
from collections.abc import Sequence
from pathlib import Path

#: the runner of the device, as a user writes it: sends image and inputs, stores outputs and report
RUNNER = """
import os, sys, tty

line = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
tty.setraw(line)

def write(data):
    while data:
        data = data[os.write(line, data[:512]):]

def read(count):
    data = b""
    while len(data) < count:
        data += os.read(line, count - len(data))
    return data

for name in sys.argv[2:4]:
    content = open(name, "rb").read()
    write(b"%08x" % len(content) + content)
for name in sys.argv[4:6]:
    open(name, "wb").write(read(int(read(8), 16)))
"""


class SerialDevice:
    """Device that runs images it receives over its line, one after the other, by an emulator's command."""

    def __init__(self, folder: Path, emulator: Sequence[str]) -> None:
        self._end, other = os.openpty()
        tty.setraw(other)
        self.line, self.runs = os.ttyname(other), 0
        self._other, self._folder, self._emulator = other, folder, emulator
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            for name in ("image.elf", "inputs.bin"):
                (self._folder / name).write_bytes(self._read(int(self._read(8), 16)))
            subprocess.run([*self._emulator, "image.elf"], cwd=self._folder, check=True, timeout=60)
            self.runs += 1
            for name in ("outputs.bin", "report.bin"):
                content = (self._folder / name).read_bytes()
                self._write(b"%08x" % len(content) + content)

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += os.read(self._end, count - len(data))
        return data

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._end, data[:512]) :]
