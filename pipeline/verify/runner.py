"""Link a library into a program, or into an image, that runs it on recorded inputs."""

from __future__ import annotations

from pathlib import Path

from ..codegen.library import Library
from ..codegen.template import render
from ..image import link_image
from ..image.image_sizes import why_too_large
from ..program import Program
from ..targets import Runner, Target, emulated_board, how_to_run
from .link_program import link_program
from .linked.desk import DeskImage
from .linked.image import LinkedImage as LinkedImage
from .linked.program import Linked as Linked
from .linked.program import numpy_dtype as numpy_dtype


def link(library: Library, program: Program, target: Target, folder: Path) -> Linked:
    """Link runner.c and the archive into `folder`/runner, or into an image without an operating system. Raises ToolchainError.

    It is linked even if it cannot run: that proves the library complete.
    """
    if target.bare:
        return _link_images(library, program, target, folder)
    for file in (library.archive, library.header):
        (folder / file.name).write_bytes(file.read_bytes())
    sizes = {
        "input_bytes": [program.tensors[port.tensor].nbytes for port in program.inputs],
        "output_bytes": [program.tensors[port.tensor].nbytes for port in program.outputs],
    }
    text = render("runner.c.j2", Path(__file__).parent, m=library.name, M=library.name.upper(), **sizes)
    (folder / "runner.c").write_text(text, encoding="utf-8")
    link_program(
        ["runner.c", library.archive.name, *(["-lpthread"] if library.threads > 1 else [])], "runner", target, folder
    )
    return Linked(library, program, how_to_run(target), folder)


def _link_images(library: Library, program: Program, target: Target, folder: Path) -> LinkedImage:
    """Link a library into the image of a device, and of the board that runs it here. Raises ToolchainError."""
    board = emulated_board(target)
    image = link_image(library, program, target, folder)
    emulated = image
    if board != target:
        place = folder / "emulated"
        place.mkdir()
        emulated = link_image(library, program, board, place)
    runner, large = how_to_run(board), why_too_large(emulated.sizes, board)
    if large:
        runner = Runner(None, f"not-run: {large}")
    kind = DeskImage if target.runner else LinkedImage
    return kind(library, program, runner, emulated.elf.parent, image, emulated)
