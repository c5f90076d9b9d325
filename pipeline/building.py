"""From a lowered program to a library: its arena, its objects, what running it shows, and what it takes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import ModelError
from .folders import scratch_folder
from .imported import ImportedModel
from .interrupts import deadline
from .memory.footprint import Footprint, Measured
from .settings import Progress, VerifySettings
from .targets import Target

#: seconds for one step in this process, on a busy machine: what takes longer is stuck
_STEP_SECONDS = 1800

if TYPE_CHECKING:
    from .codegen.library import Library
    from .graph import Program
    from .kernels.lowering import Lowered
    from .memory import ArenaPlan
    from .verify.cases import Case


_GIB = 1 << 30
#: bytes of arena, workspace and weights at most: code addresses them by signed 32-bit offsets, and needs some itself
STATIC_LIMIT = 2 * _GIB - (64 << 20)


def plan_of(program: Program, target: Target) -> ArenaPlan:
    """Plan the arena of a program for a target, and validate it. Raises PlanError, which would be a bug."""
    from .memory import plan_arena, validate_plan

    plan = plan_arena(program, target.alignment)
    validate_plan(program, plan, target.alignment)
    return plan


def refuse_large_library(arena: int, workspace: int, weights: int, target: Target) -> None:
    """Raise ModelError where a program cannot address the static data of a library; sizes in bytes."""
    total = arena + workspace + weights
    if total > STATIC_LIMIT:
        parts = {"arena": arena, "workspace": workspace, "weights": weights}
        sizes = ", ".join(f"{word} {size / _GIB:.2f} GiB" for word, size in parts.items() if size > total // 100)
        raise ModelError(
            f"The library would hold {total / _GIB:.2f} GiB ({sizes}); programs address {STATIC_LIMIT / _GIB:.2f} GiB, "
            f"and {target.name} has {target.ram / _GIB:.2f} GiB of ram.",
            "Give smaller shapes (--shape), or cut the model into parts.",
        )


def build_library(
    name: str, lowered: Lowered, plan: ArenaPlan, workspace: int, target: Target, folder: Path
) -> Library:
    """The library of a lowered program, in `folder`. Raises ModelError, ToolchainError, OutputError."""
    from .codegen import c_identifier, symbol, write_library
    from .kernels.build import build_objects

    refuse_large_library(plan.arena, workspace, lowered.program.weight_bytes, target)
    prefix = c_identifier(name)
    with scratch_folder() as scratch:
        kernels = {symbol(prefix, kernel): function for kernel, function in lowered.kernels.items()}
        objects = build_objects(kernels, target, scratch)
        return write_library(name, lowered.program, plan, workspace, lowered.weights, objects, target, folder)


def step_limit(step: str, model: str) -> AbstractContextManager[None]:
    """Give up a step of `model` that takes so long that it must be stuck: the process ends with exit code 2."""
    return deadline(
        _STEP_SECONDS, f"{step} took longer than {_STEP_SECONDS} s for '{model}', and was given up. Try a smaller input shape."
    )


def build_and_run(
    imported: ImportedModel,
    lowered: Lowered,
    plan: ArenaPlan,
    workspace: int,
    target: Target,
    folder: Path,
    settings: VerifySettings,
    progress: Progress,
    work_aside: Callable[[], object] = lambda: None,
) -> tuple[Measured, int]:
    """Write the library into `folder`; returns what running it showed, and the bytes of its code.

    `work_aside` waits for other work, which would disturb a library that is timed.
    """
    from concurrent.futures import ThreadPoolExecutor

    from .verify import choose_cases, verify_library, with_plain_sums

    # before the cases are begun, which large inputs keep busy for minutes
    refuse_large_library(plan.arena, workspace, lowered.program.weight_bytes, target)
    progress("compiling", 0, 0)
    with ThreadPoolExecutor(1) as aside:  # the C compiler and LLVM leave Python free
        cases = aside.submit(choose_cases, imported.onnx, settings.seed, settings.cases, settings.tolerance)

        def expected() -> list[Case]:
            with step_limit("ONNX Runtime", imported.name):
                return cases.result()

        with step_limit("Compiling the kernels", imported.name):
            library = build_library(imported.name, lowered, plan, workspace, target, folder)
        expected()
        work_aside()
        progress("running", 0, 0)
        second_look = partial(with_plain_sums, imported.onnx)
        measured = verify_library(library, lowered.program, expected, target, settings.tolerance, second_look)
    return measured, library.code_bytes


def footprint_of(program: Program, plan: ArenaPlan, workspace: int, code: int, target: Target) -> Footprint:
    """What the library of a program takes, its `workspace` and `code` being known; in bytes."""
    from .memory import account

    in_place = target.weights == "in-place"
    return account(program, plan, workspace=workspace, code=code, weights_in_place=in_place)
