"""Explain a run node by node: multiply-adds, weights and bytes read; on a board instructions and cycles, estimated from those of an emulator.

ONNX nodes            MACs   weights      read  cycles  instructions     time
conv2, relu2        1.18 M  36.0 KiB  52.0 KiB   402 k         362 k  16.1 ms
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType

from ...memory.files.plan_file import SavedPlan
from ...program.program import Call
from ...support.sizes import format_bytes, format_count, format_milliseconds
from ...verify.measure.run_cycles import RunCycles
from ..fit import Name, Nodes, fitted, nodes_in, table

#: rows listed; the others are summed up in one
ROWS = 12
#: name of what kernels call: functions of the compiler and of C
_RUNTIME = "memory and arithmetic functions"
_COLUMNS = ("ONNX nodes", ">MACs", ">weights", ">read")
_TIMED = (">cycles", ">instructions", ">time")


@dataclass(frozen=True)
class NodePart:
    """ONNX nodes that one kernel of the whole model computes, in one run; `name` is the kernel's where no node is known.

    `macs` are multiply-adds, None if they were not counted. `weights` and `read` are bytes: of the weights, and of all operands with the
    weights, as often as a loop reads them. `instructions` and `cycles`, at least, likely and at most, are None without an emulator's.
    """

    name: str
    nodes: tuple[str, ...] = ()
    macs: int | None = None
    weights: int = 0
    read: int = 0
    instructions: int | None = None
    cycles: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class NodesExplained:
    """Nodes of a run, the slowest first, on a board at `mhz`; those of most multiply-adds first where cycles are not known."""

    mhz: int | None
    parts: tuple[NodePart, ...]

    @property
    def cycles(self) -> int:
        """Return the likely cycles of all."""
        return sum(each.cycles[1] for each in self.parts if each.cycles)

    @property
    def summary(self) -> str:
        """Say the multiply-adds of a run, and its time."""
        known = [part.macs for part in self.parts if part.macs is not None]
        said = [f"{format_count(sum(known))} MACs (multiply-adds, those with padding too)"] if known else []
        if self.mhz:
            said.append(f"about {format_milliseconds(self.cycles / self.mhz / 1e3)} at {self.mhz} MHz, estimated")
        return "; ".join(said)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of its table; those of numbers begin with >."""
        return (*_COLUMNS, *(_TIMED if self.mhz else ()))

    def cells(self, parts: Sequence[NodePart]) -> tuple[str, ...]:
        """Return the sums over `parts` in the columns of numbers."""
        macs = [part.macs for part in parts if part.macs is not None]
        sizes = (sum(part.weights for part in parts), sum(part.read for part in parts))
        counted = (format_count(sum(macs)) if macs else "–", *map(format_bytes, sizes))
        if not self.mhz:
            return counted
        cycles = sum(part.cycles[1] for part in parts if part.cycles)
        instructions = sum(part.instructions or 0 for part in parts)
        time = format_milliseconds(cycles / self.mhz / 1e3)
        return *counted, format_count(cycles), format_count(instructions), time

    def rows(self, most: int) -> Iterator[tuple[NodePart | None, tuple[str, ...]]]:
        """Yield the first `most` parts with their cells, and None with those of all others."""
        for part in self.parts[:most]:
            yield part, self.cells([part])
        if rest := self.parts[most:]:
            yield None, self.cells(rest)


def explain_nodes(saved: SavedPlan, before: SavedPlan | None, counted: RunCycles | None) -> NodesExplained:
    """Explain the nodes of a run of the library of `saved`.

    `before` is the plan of the same kernels whole, which has multiply-adds. A function's cycles are shared by its calls.
    """
    model = before or saved
    calls: dict[str, list[Call]] = defaultdict(list)
    for call in model.program.calls():
        calls[_name(call)].append(call)
    timed = {} if counted is None else _counted(saved, counted)
    parts = [_part(name, calls[name], model, *timed.get(name, (None, None))) for name in {**calls, **timed}]
    ordered = sorted(parts, key=lambda part: (-(part.cycles or (0, 0))[1], -(part.macs or 0), -part.read, part.name))
    return NodesExplained(None if counted is None else counted.mhz, tuple(ordered))


def _name(call: Call) -> str:
    return ", ".join(call.step.nodes) or call.step.kernel


def _part(
    name: str, calls: Sequence[Call], model: SavedPlan, instructions: int | None, cycles: tuple[int, int, int] | None
) -> NodePart:
    operands = [(call, call.program.tensors[number]) for call in calls for number in dict.fromkeys(call.step.reads)]
    macs = [model.macs[call.step.kernel] * call.runs for call in calls if call.step.kernel in model.macs]
    weights = {tensor.weight for _, tensor in operands if tensor.weight is not None}
    return NodePart(
        name,
        calls[0].step.nodes if calls else (),
        sum(macs) if macs else None,
        sum(model.program.weights[each].nbytes for each in weights),
        sum(tensor.nbytes * call.runs for call, tensor in operands),
        instructions,
        cycles,
    )


def _counted(saved: SavedPlan, counted: RunCycles) -> dict[str, tuple[int, tuple[int, int, int]]]:
    """Sum the instructions and cycles of functions by the nodes of the kernels they belong to."""
    runs: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for call in saved.program.calls():
        runs[call.step.kernel][_name(call)] += call.runs
    owners = sorted(runs, key=lambda name: (-len(name), name))
    found: dict[str, list[float]] = defaultdict(lambda: [0.0] * 4)
    for row in counted.functions:
        owner = next((each for each in owners if f"{row.function}_".startswith(f"{each}_")), None)
        shares = {_RUNTIME: 1} if owner is None else runs[owner]
        for name, share in shares.items():
            for place, figure in enumerate((row.instructions, *row.cycles)):
                found[name][place] += figure * share / sum(shares.values())
    rounded = {name: [round(each) for each in figures] for name, figures in found.items()}
    return {name: (each[0], (each[1], each[2], each[3])) for name, each in rounded.items()}


def title_of(part: NodePart) -> str:
    """Name the nodes of a part in short, or its kernel."""
    return nodes_in(part.nodes) or part.name


def nodes_table(found: NodesExplained, wide: bool = False) -> RenderableType:
    """Show the nodes of a run; with `wide` all of them, with whole names."""
    made = table(f"Nodes: {found.summary}", f"<{found.columns[0]}", *found.columns[1:])
    made.box, made.pad_edge = SIMPLE_HEAD, False
    rows = list(found.rows(len(found.parts) if wide else ROWS))
    for part, cells in rows:
        if part is None:
            made.add_row(f"{len(found.parts) - len(rows) + 1} more", *cells)
        else:
            made.add_row(Nodes(part.nodes, wide) if part.nodes else Name(part.name), *cells)
    return fitted(made, *([CYCLES_ARE] if found.mhz else []), wide=wide)


#: origin of cycles, in words
CYCLES_ARE = "cycles: of the instructions an emulator counted, by class, as the core's manual gives them"
