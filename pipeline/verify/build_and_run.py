"""Build the library of a lowered program, run it, and measure it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..codegen.build_library import build_library, refuse_large_library
from ..codegen.library import Library, state_stack
from ..errors import PassfitError
from ..frontend.imported_model import ImportedModel
from ..memory.footprint import Measured
from ..support.background import compute_apart
from ..support.interrupts import step_limit
from ..support.progress import Progress
from ..support.strictness import spare
from ..targets import Target
from .settings import VerifySettings

if TYPE_CHECKING:
    from ..kernels.lower.lower import Lowered
    from ..memory import ArenaPlan
    from .compare import Case


def build_and_run(
    imported: ImportedModel,
    lowered: Lowered,
    plan: ArenaPlan,
    workspace: int,
    target: Target,
    folder: Path,
    settings: VerifySettings,
    progress: Progress,
    wait_for_others: Callable[[], object] = lambda: None,
    background_cases: Callable[[], list[Case] | None] = lambda: None,
) -> tuple[Measured, Library]:
    """Write the library into `folder`, run it; return the measurements and the library.

    `workspace` is in bytes. `wait_for_others` waits for other work, which would disturb the timing, `background_cases` for the
    cases of these settings, or None for none. Raises ModelError, NumericError, ToolchainError, OutputError.
    """
    from concurrent.futures import ThreadPoolExecutor

    from ..frontend.quantised.port_scales import port_facts
    from .cases import add_plain_sums, unverified_cases
    from .integers.exact_integers import is_quantised
    from .integers.given_outputs import GivenOutputs, given_outputs
    from .run import verify_library
    from .stored_cases import cases_of

    # before choosing cases, which takes minutes for large inputs
    refuse_large_library(plan.arena, workspace, lowered.program.weight_bytes, target)
    progress("compiling", 0, 0)
    with ThreadPoolExecutor(1) as thread:  # the C compiler and LLVM release Python's lock

        def choose() -> list[Case]:
            return background_cases() or spare(
                "ONNX Runtime's outputs", partial(compute_apart, stored),
                lambda why: unverified_cases(imported.drawn_for, settings.seed, settings.cases, why), but=PassfitError,
            )  # fmt: skip

        def as_given() -> GivenOutputs | None:
            return spare(
                "the model as given", partial(compute_apart, of_file), partial(GivenOutputs, (), (), {}, {}),
                but=PassfitError,
            )  # fmt: skip

        stored = partial(cases_of, imported, settings)

        def of_file() -> GivenOutputs | None:
            given = imported.given if is_quantised(imported.onnx) else None  # else not compared: do not read it
            return given_outputs(imported.onnx, given, settings.tolerance)

        cases = thread.submit(choose)
        file_outputs = thread.submit(as_given)

        def wait_for_cases() -> list[Case]:
            with step_limit("ONNX Runtime", imported.name):
                return cases.result()

        if imported.is_large:
            wait_for_cases()
            file_outputs.exception()  # told where they are compared
        with step_limit("Compiling the kernels", imported.name):
            digest = str(imported.record.get("model", ""))
            facts = port_facts(imported.drawn_for)
            library = build_library(
                imported.name, lowered, plan, workspace, target, folder, model_sha256=digest, ports=facts, source=settings.source,
            )  # fmt: skip
        wait_for_cases()
        wait_for_others()
        progress("running", 0, 0)

        def second_look(cases: Sequence[Case]) -> list[Case]:
            return add_plain_sums(imported.onnx, cases, imported.given)

        measured = verify_library(
            library,
            lowered.program,
            wait_for_cases,
            target,
            settings.tolerance,
            second_look,
            file_outputs.result,
            settings.image,
        )
    if empty := _without_rows(imported, cases.result()):
        measured = replace(measured, no_rows=empty)
    if target.bare and measured.stack is not None:
        state_stack(library, measured.stack)
    return measured, library


def _without_rows(imported: ImportedModel, cases: Sequence[Case]) -> tuple[str, ...]:
    """Return the outputs of open length that no case gives a row."""
    from ..frontend.canonical.ports.apply import length_forms, port_forms

    lengths = {name: length["output"] for name, length in length_forms(port_forms(imported.onnx)).items()}
    found = {
        name: [case.expected[length].item() for case in cases if length in case.expected]
        for name, length in lengths.items()
    }
    return tuple(name for name, rows in found.items() if rows and not any(rows))
