"""Lines that this process and those forked from it append and read, in a file without a name: it ends with the last."""

from __future__ import annotations

import fcntl
import os


class SharedLog:
    """Every process sees all lines once, its own too. A line is appended in one piece, whoever else appends."""

    def __init__(self) -> None:
        self.fileno = os.memfd_create("passfit")
        fcntl.fcntl(self.fileno, fcntl.F_SETFL, os.O_APPEND)
        self._read = 0

    def append(self, line: str) -> None:
        os.write(self.fileno, f"{line}\n".encode())

    def new(self) -> list[str]:
        """The lines appended since the last call. One that a process died at is part of the next."""
        data = os.pread(self.fileno, os.fstat(self.fileno).st_size - self._read, self._read)
        *lines, rest = data.split(b"\n")
        self._read += len(data) - len(rest)
        return [line.decode() for line in lines]

    def close(self) -> None:
        os.close(self.fileno)
