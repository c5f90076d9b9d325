"""Share lines between forked processes, in an anonymous file.

The file ends with the last process that holds it.
"""

from __future__ import annotations

import fcntl
import os


class SharedLog:
    """Append and read shared lines: every process sees each line once, its own included.

    Appends are atomic, whoever else appends.
    """

    def __init__(self) -> None:
        self.fileno = os.memfd_create("passfit")
        fcntl.fcntl(self.fileno, fcntl.F_SETFL, os.O_APPEND)
        self._read = 0

    def append(self, line: str) -> None:
        os.write(self.fileno, f"{line}\n".encode())

    def new(self) -> list[str]:
        """Return the lines appended since the last call. A line cut off by a dying process joins the next."""
        data = os.pread(self.fileno, os.fstat(self.fileno).st_size - self._read, self._read)
        *lines, rest = data.split(b"\n")
        self._read += len(data) - len(rest)
        return [line.decode() for line in lines]

    def close(self) -> None:
        os.close(self.fileno)
