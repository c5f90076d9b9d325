"""Link the library as a shared object, for host programs that load it (ctypes)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..targets import Target, host_libc, zig_link
from .check_loads import EXPORTS


def link_shared(
    identifier: str, members: Sequence[str], threads: int, folder: Path, target: Target, timed: bool = False
) -> str:
    """Link `members`, the archive's object files in `folder`, into lib<identifier>.so; return that name.

    It exports only what the header declares, and the function of a `timed` one: the process may hold TVM itself, or
    other models. Raises ToolchainError for an undefined symbol; by default, linkers leave those to the loading program.
    """
    instances = [f"instance_{name}" for name in EXPORTS]
    checked = [f"{name}_needs_the_archive_of_this_header_*" for name in ("run", "instance_run")]
    lengths = ["output_length*", "instance_output_length*"]  # of open outputs alone: patterns may match nothing
    names = [*EXPORTS, *instances, *checked, *lengths, "static_instance", "passfit", *(["spent"] if timed else [])]
    exports = "; ".join(f"{identifier}_{name}" for name in names)
    (folder / "exports.map").write_text(f"{{ global: {exports}; local: *; }};\n", encoding="ascii")
    library = f"lib{identifier}.so"
    options = ["-shared", "-Wl,-s", "-Wl,--gc-sections", "-Wl,-z,defs", "-Wl,--version-script=exports.map"]
    libraries = ["-lm", *(["-lpthread"] if threads > 1 else [])]
    zig_link([*options, *members, *libraries, "-o", library], target, folder, zig_target=host_libc(target))
    return library
