"""Count the blocks of instructions that an emulated image runs, by a plugin of QEMU's system emulators.

The plugin is built once for this machine and kept with the other results; a run takes a few per cent longer with it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from ...errors import ToolchainError
from ...support.children import run
from ...support.result_store import kept_bytes
from ...support.temporary_folder import scratch_folder
from ...targets import Target, native_target, zig_cc
from ...targets.core_timings import Block

_SOURCE = Path(__file__).with_name("executed_blocks.c")
_BLOCKS, _PLUGIN = "blocks.txt", "executed_blocks.so"


def counting_options(emulator: str, folder: Path) -> list[str]:
    """Return options of a QEMU command that make it write the blocks of its run to `folder`; none where it takes no plugins."""
    version, host = _plugin_version(emulator), native_target()
    if version is None or host is None:
        return []
    try:
        content = kept_bytes("plugins", f"executed_blocks-{version}-{host.zig_target}", lambda: _build(version, host))
    except ToolchainError:
        return []
    (folder / _PLUGIN).write_bytes(content)
    return ["-plugin", f"{folder / _PLUGIN},out={folder / _BLOCKS}"]


def _build(version: int, host: Target) -> bytes:
    """Compile the plugin. Raises ToolchainError."""
    with scratch_folder() as folder:
        (folder / _SOURCE.name).write_bytes(_SOURCE.read_bytes())
        options = ["-shared", "-fPIC", "-O2", "-fvisibility=hidden", f"-DPLUGIN_VERSION={version}"]
        zig_cc(
            [*options, "-Wl,--allow-shlib-undefined", _SOURCE.name, "-o", _PLUGIN], host, folder,
            zig_target=host.zig_target.replace("musl", "gnu"),
        )  # fmt: skip
        return (folder / _PLUGIN).read_bytes()


@cache
def _plugin_version(emulator: str) -> int | None:
    """Return the version of QEMU's interface that a plugin has to name: 2 from 9.0 on; None where there is no such interface."""
    told = [
        run([emulator, option], capture_output=True, text=True, errors="replace").stdout
        for option in ("--version", "-help")
    ]
    found = re.search(r"version (\d+)\.", told[0])
    if found is None or "-plugin" not in told[1]:
        return None
    return 2 if int(found[1]) >= 9 else 1


def read_blocks(folder: Path) -> list[Block]:
    """Read the blocks that the plugin wrote to `folder`; none where it wrote none."""
    file = folder / _BLOCKS
    if not file.is_file():
        return []
    found: list[Block] = []
    head: list[str] = []
    text: list[str] = []

    def end() -> None:
        if head:
            found.append(Block(int(head[0], 16), int(head[1], 16), int(head[2]), int(head[3]), tuple(text)))
            text.clear()

    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("\t"):
                text.append(line.strip())
            else:
                end()
                head = line.split()
    end()
    return found
