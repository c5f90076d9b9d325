"""Commands that print tables: explain, passes, targets, and the comparisons of bench."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError
from .option_groups import Evaluations, TargetName
from .output import print_table


def explain(
    folder: Annotated[Path, typer.Argument(help="result folder of `passfit compile`", metavar="DIR")],
    minimalloc: Annotated[
        Path | None, typer.Option("--minimalloc", help="write the buffers to this file, as MiniMalloc's CSV")
    ] = None,
    solution: Annotated[
        Path | None, typer.Option("--solution", help="explain this MiniMalloc solution instead of passfit's plan")
    ] = None,
    wide: Annotated[bool, typer.Option("--wide", help="show whole names, every buffer and ONNX node")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of tables")] = False,
) -> None:
    """Explain ram, flash and a run: live buffers at the peak, levers, initializers, kernels, nodes.

    And accuracy, if the model was evaluated: the worst classes and samples.
    """
    from dataclasses import asdict

    from ..artifacts.places import PLAN_BEFORE, search_file
    from ..artifacts.read_results import accuracy_beside
    from ..memory import read_plan, read_report
    from ..memory.files.minimalloc_csv import read_minimalloc, write_minimalloc
    from ..report.accuracy_table import accuracy_lines
    from ..report.arena.explain import explain as explain_plan
    from ..report.arena.explain_bodies import bodies_table, explain_bodies
    from ..report.arena.explain_flash import explain_flash, flash_tables
    from ..report.arena.explain_nodes import explain_nodes, nodes_table
    from ..report.arena.explanation_table import explanation_table
    from ..report.footprint_table import measured_line
    from ..report.front_table import remedy_lines, tradeoff_table
    from ..report.levers import read_levers, read_search
    from ..support.text_files import json_lines
    from ..verify.measure.run_cycles import read_cycles

    saved = read_plan(folder / "plan.json")
    if minimalloc is not None:
        write_minimalloc(saved, minimalloc)
    if solution is not None:
        saved = read_minimalloc(saved, solution)
    place = search_file(folder)
    levers = read_levers(place, saved.plan.arena)
    search = read_search(place) if levers is not None else {}
    explained, bodies = explain_plan(saved.program, saved.plan, saved.alignment, levers), explain_bodies(saved.program)
    file = folder / "footprint.json"
    report = read_report(file) if file.is_file() else None
    flash = explain_flash(saved, None if report is None else report.best)
    whole = folder / PLAN_BEFORE
    nodes = explain_nodes(saved, read_plan(whole) if whole.is_file() else None, read_cycles(folder))
    accuracy = None if report is None else accuracy_beside(folder, report.model, report.target)
    if as_json:
        parts = {
            "arena": asdict(explained), "bodies": [asdict(body) for body in bodies], "flash": asdict(flash),
            "nodes": asdict(nodes),
        }  # fmt: skip
        typer.echo(json_lines(parts | ({} if accuracy is None else {"accuracy": asdict(accuracy)})), nl=False)
        return
    print_table(explanation_table(explained, wide))
    if "tradeoff" in search:
        print_table(tradeoff_table(search["tradeoff"]))
    for line in [] if report is None else remedy_lines(search, report.best, place.parent != folder):
        print_table(line)
    if bodies:
        print_table(bodies_table(bodies, wide))
    print_table(flash_tables(flash, wide))
    if nodes.parts:
        print_table(nodes_table(nodes, wide))
    if report is not None:
        print_table(measured_line(report, wide))
    for line in () if accuracy is None else accuracy_lines(accuracy):
        print_table(line)


def rebench(
    folder: Annotated[
        Path, typer.Argument(help="folder of ONNX graphs and, optionally, published.json", metavar="DIR")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="write rebench.json and rebench.md to this folder; default: none")
    ] = None,
    target: TargetName = "x86-64",
    evaluations: Evaluations = 64,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="run randomised strategies with this many seeds")] = 3,
    check: Annotated[bool, typer.Option("--check/--no-check", help="compile, execute and compare the winners")] = True,
) -> None:
    """Compare all strategies on the graphs of DIR, by the sum of all tensors and by ram.

    A graph that fails is listed with the reason.
    """
    from ..bench import rebench_table
    from ..bench.rebench import rebench as run
    from ..report.progress import console_progress
    from ..support.result_folder import result_folder
    from ..support.text_files import json_lines, write_text
    from ..targets.catalogue import get_target

    with console_progress() as progress:
        compared = run(
            folder, get_target(target, Path()), evaluations=evaluations, seeds=seeds, check=check, progress=progress
        )
    command = f"passfit bench rebench DIR --target {target} --evaluations {evaluations} --seeds {seeds}"
    report = rebench_table.markdown(compared, command)
    if out is not None:
        with result_folder(out) as written:
            write_text(written / "rebench.md", report)
            write_text(written / "rebench.json", json_lines(rebench_table.as_json(compared)))
    typer.echo(report)


def passes(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="write the page docs/passes.md instead of a table")
    ] = False,
) -> None:
    """List the passes."""
    if markdown:
        from ..report.pages.passes_page import passes_page
        from ..search.knowledge.store import SHIPPED, read_records

        typer.echo(passes_page(read_records(SHIPPED)), nl=False)
        return
    from ..report.catalogues import passes_table

    print_table(passes_table())


def targets(
    add: Annotated[
        str | None, typer.Option("--add", help="write a device of your own into params.yaml", metavar="NAME")
    ] = None,
    like: Annotated[str | None, typer.Option("--like", help="target whose facts it shares")] = None,
    ram: Annotated[str | None, typer.Option("--ram", help="its ram, such as 512MiB; default: that of --like")] = None,
    flash: Annotated[str | None, typer.Option("--flash", help="its flash; default: that of --like")] = None,
) -> None:
    """List the target devices, or add one."""
    if add is not None and like is not None:
        from ..scaffold import add_own_target

        for path in add_own_target(Path(), add, like, ram, flash):
            typer.echo(f"wrote {path}")
        typer.echo(f"Next: `passfit add --target {add}`.")
        return
    if not add == like == ram == flash:
        raise ConfigError(
            "A device is added by --add NAME and --like TARGET.", "Give both; --ram and --flash are for it."
        )
    from ..report.catalogues import targets_table
    from ..targets.catalogue import load_catalogue

    print_table(targets_table(load_catalogue(Path()).readable()))
