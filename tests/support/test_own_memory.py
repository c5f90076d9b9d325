"""Large blocks that are freed are given back to the system, whatever was freed before them."""

from __future__ import annotations

import subprocess
import sys

_HELD = """
import numpy as np
from pathlib import Path
from passfit.support.own_memory import give_back_blocks

def held():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))

give_back_blocks(1 << 30)
before = held()
np.ones(1 << 19)  # freed at once: glibc takes blocks of this size from its heap from now on
blocks = [np.ones(1 << 19) for _ in range(16)]
last = blocks.pop()
del blocks
print(held() - before)
"""


def test_large_blocks_are_given_back() -> None:
    found = subprocess.run([sys.executable, "-c", _HELD], check=True, capture_output=True, text=True)
    assert int(found.stdout) < 2 * (4 << 20)
