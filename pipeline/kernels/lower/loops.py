"""Split the kernel of a Scan into a loop of kernels, which are scheduled like any others.

    kernel loop(x, W, y):                               for t in 0 … n - 1:
      for t in 0 … n - 1:                                 step 0: product(x[t], W) ──► sums
        stage: sums = x[t] · W                  ──►       step 1: tanh(sums) ──► y[t]
        stage: y[t] = tanh(sums)

A stage reads and writes slices of the present trip; alone, they are whole tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tvm.ir import Expr, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import PrimFunc

from ...frontend.relax.loop_kernel import STOPPING
from ...memory.sharing.overlay import drop_empty_buffers
from ...program import DTYPE_BYTES, Buffer, Guard, Loop, Port, Program, Step, Tensor, Window
from ...program.free_name import free_name
from ...tir.in_place.analysis import takes_addresses
from ...tir.index_grid import NoMatch
from ...tir.memoise import memoise_by_structure
from .loop_stages import direction_of, is_loop, is_loop_body, loop_parts, read_in_rows, stage_alone


def take_apart(program: Program, kernels: Mapping[str, PrimFunc]) -> tuple[Program, dict[str, PrimFunc]]:
    """Split the loop kernels of a program; one of another form stays a kernel."""
    found = {
        name: made for name, kernel in kernels.items() if is_loop(kernel) and (made := _take_apart(kernel)) is not None
    }
    left = {name: kernel for name, kernel in kernels.items() if name not in found}
    names = {name: _add_kernels(left, name, made.kernels) for name, made in found.items()}
    steps = tuple(
        _place(found[step.kernel].loop, step, program.tensors, names[step.kernel]) if step.kernel in found else step
        for step in program.steps
    )
    return replace(program, steps=steps), dict(sorted(left.items()))


def _add_kernels(kernels: dict[str, PrimFunc], loop: str, more: Mapping[str, PrimFunc]) -> dict[str, str]:
    """Add the kernels of a loop; return their names there."""
    names = {}
    for name, kernel in more.items():
        names[name] = free_name(f"{loop}_{name}", kernels)
        kernels[names[name]] = kernel
    return names


def _place(loop: Loop, step: Step, tensors: Sequence[Tensor], names: Mapping[str, str]) -> Loop:
    """Return the loop at the place of a step that takes these `tensors`, its kernels by their `names`.

    Weights that it reads whole are tensors of its body.
    """
    weights = {
        window.tensor: tensors[step.reads[window.place]].weight
        for window in loop.windows
        if window.place < len(step.reads) and not window.stride and tensors[step.reads[window.place]].weight is not None
    }
    places = {window.place for window in loop.windows if window.tensor not in weights} | set(
        range(len(step.reads), len(step.reads) + len(step.writes))
    )
    numbers = {place: number for number, place in enumerate(sorted(places))}
    body = loop.body
    inside = tuple(
        replace(each, buffer=None, weight=weights[n]) if n in weights else each for n, each in enumerate(body.tensors)
    )
    steps = tuple(
        _place(own, own, inside, names)
        if isinstance(own, Loop)
        else replace(own, kernel=names[each.kernel], nodes=step.nodes)
        for each in body.steps
        for own in (replace(each, kernel=f"{step.kernel}_{each.kernel}"),)
    )
    ports = tuple(port for port in body.inputs if port.tensor not in weights)
    body = drop_empty_buffers(replace(body, steps=steps, tensors=inside, inputs=ports))
    windows = tuple(replace(each, place=numbers[each.place]) for each in loop.windows if each.tensor not in weights)
    reads = tuple(tensor for place, tensor in enumerate(step.reads) if place in places)
    return replace(
        loop,
        kernel=step.kernel,
        reads=reads,
        writes=step.writes,
        nodes=step.nodes,
        guard=step.guard,
        body=body,
        windows=windows,
    )


@dataclass(frozen=True)
class _Taken:
    """Hold the loop of a kernel, all its operands windows, and the kernels of its body by name."""

    loop: Loop
    kernels: dict[str, PrimFunc]


def can_take_apart(kernel: PrimFunc) -> bool:
    """Return whether the kernel of a loop is of a form that `take_apart` splits."""
    return _take_apart(kernel) is not None


@memoise_by_structure
def _take_apart(kernel: PrimFunc) -> _Taken | None:
    try:
        return _Reader(kernel).taken()
    except NoMatch:
        return None


class _Part(NamedTuple):
    """Part of a buffer that a trip uses: all of it, or its slice forwards (1) or backwards (-1), or a row of that."""

    buffer: Var
    direction: int = 0
    row: int | None = None


@dataclass
class _Reader:
    """Read the stages of a loop's kernel as steps. Raises NoMatch for another form."""

    kernel: PrimFunc
    tensors: list[Tensor] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    steps: list[Loop | Step] = field(default_factory=list)
    kernels: dict[str, PrimFunc] = field(default_factory=dict)
    #: the number of each part, as a buffer of the body, and the tensor it holds
    numbers: dict[_Part, int] = field(default_factory=dict)
    present: dict[_Part, int] = field(default_factory=dict)
    #: the tensor of each part that is read before a step writes it
    given: dict[_Part, int] = field(default_factory=dict)

    def taken(self) -> _Taken:
        body = self.kernel.body
        if not isinstance(body, SBlockRealize) or takes_addresses(body):
            raise NoMatch("a loop has no root block, or passes an address")
        before, self.number, self.trips, inside = loop_parts(body.block.body)
        self.rows = read_in_rows([*before, *inside], self.number)
        for block in before:
            self._read(block, once=True)
        first = dict(self.present)
        for block in inside:
            self._read(block, once=False)
        self._check_parts()
        params = set(self.kernel.params)
        made = {tensor for step in self.steps for tensor in step.writes}
        carries = tuple(
            (first[each], last)
            for each, last in self.present.items()
            if each.buffer in params and first.get(each, last) != last
        )
        if any(tensor in made for part, tensor in first.items() if part.buffer not in params):
            raise NoMatch("a value between the stages is made once")
        given = [tensor for part, tensor in self.given.items() if part.buffer in params] + [one for one, _ in carries]
        if any(part.buffer not in params for part in self.given):
            raise NoMatch("a stage reads a value before it is made")
        names = [buffer.name for buffer in self.buffers]
        inputs, outputs = (
            tuple(Port(names[self.tensors[tensor].buffer_number], tensor) for tensor in dict.fromkeys(group))
            for group in (
                given,
                [tensor for part, tensor in self.present.items() if part.buffer in params and tensor in made],
            )
        )
        program = Program("body", tuple(self.steps), tuple(self.tensors), tuple(self.buffers), (), inputs, outputs)
        return _Taken(
            Loop(
                "", (), (), trips=self.trips, body=program, windows=tuple(self.windows), carries=carries,
                stops=bool(self.kernel.attrs and STOPPING in self.kernel.attrs),
            ),
            self.kernels,
        )  # fmt: skip

    def _read(self, block: SBlock, once: bool) -> None:
        kernel, buffers, slices, results = stage_alone(block, self.number, self.rows)
        guard = Guard() if once else None
        reads = tuple(self._tensor(buffer, slices[buffer]) for buffer in buffers[: len(buffers) - results])
        writes = tuple(
            self._tensor(buffer, slices[buffer], written=True) for buffer in buffers[len(buffers) - results :]
        )
        name = free_name(block.name_hint, {each.kernel for each in self.steps} | self.kernels.keys())
        if is_loop_body(block.body):
            inner = _Reader(kernel).taken()
            names = {old: free_name(f"{name}_{old}", self.kernels) for old in inner.kernels}
            self.kernels |= {names[old]: each for old, each in inner.kernels.items()}
            body = inner.loop.body.with_calls(lambda _, step: replace(step, kernel=names[step.kernel]))
            self.steps.append(replace(inner.loop, kernel=name, reads=reads, writes=writes, guard=guard, body=body))
        else:
            self.kernels[name] = kernel
            self.steps.append(Step(name, reads, writes, guard=guard))

    def _check_parts(self) -> None:
        """Refuse a buffer that steps read and write in several parts, unless these are its rows."""
        buffers = {number: part.buffer for part, number in self.numbers.items()}
        read, written = (
            {buffers[self.tensors[tensor].buffer] for step in self.steps for tensor in group(step)}
            for group in (lambda step: step.reads, lambda step: step.writes)
        )
        parts: dict[Var, list[int | None]] = {}
        for part in self.numbers:
            parts.setdefault(part.buffer, []).append(part.row)
        if any(
            len(parts[each]) > 1 and (None in parts[each] or len(set(parts[each])) < len(parts[each]))
            for each in read & written
        ):
            raise NoMatch("a value is used in several slices, or in slices and as a whole")

    def _tensor(self, buffer: Var, index: Sequence[Expr], written: bool = False) -> int:
        """Return the tensor a stage reads in a part of a buffer, or a new one it writes."""
        part = _Part(buffer, self._direction(index), int(index[1]) if len(index) > 1 else None)
        if not written and part in self.present:
            return self.present[part]
        if str(buffer.ty.dtype) not in DTYPE_BYTES:
            raise NoMatch("a value is of a dtype without a size")
        shape = tuple(int(extent) for extent in buffer.ty.shape[len(index) :])
        number = len(self.tensors)
        tensor = Tensor(shape, str(buffer.ty.dtype), buffer=self.numbers.setdefault(part, len(self.numbers)))
        if tensor.buffer == len(self.buffers):
            self.buffers.append(Buffer(free_name(buffer.name, {each.name for each in self.buffers}), tensor.nbytes))
        self.tensors.append(tensor)
        self.present[part] = number
        if not written:
            self.given[part] = number
        place = next((place for place, param in enumerate(self.kernel.params) if param.same_as(buffer)), None)
        if place is not None:
            stride = tensor.nbytes * (1 if part.row is None else int(buffer.ty.shape[1]))
            start = (self.trips - 1) * stride if part.direction < 0 else 0
            self.windows.append(Window(number, place, start + tensor.nbytes * (part.row or 0), part.direction * stride))
        return number

    def _direction(self, index: Sequence[Expr]) -> int:
        """Return 1 or -1 for the slice of the present trip, forwards or backwards; 0 for a whole value."""
        direction = direction_of([index[:1]], self.number, self.trips)
        if index and not direction:
            raise NoMatch("a slice is of another trip")
        return direction or 0
