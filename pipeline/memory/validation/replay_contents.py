"""Replay a program over the bytes of its arena, loops trip by trip: each read must find its own value. Part of the validator.

    step 0  writes a   bytes 0 to 64: a
    step 1  is a loop: trip 0 reads x[0] as the caller wrote it, and writes y[0], part of its result y
    step 2  reads y    bytes 64 to 128: y[0], y[1], … all of them y

Shares no code with the merging of buffers. The value in a byte is the tensor that was written there last, behind the tensors
that it is a part of in the programs around.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...errors import PlanError
from ...program import Loop, Program, Step
from ..placement.plan_arena import ArenaPlan

#: tensor of each program, from the whole one inwards
_Value = tuple[int, ...]
#: half-open range of bytes, and the value there; None: not written yet
_Held = tuple[int, int, _Value | None]
#: first byte of a tensor without a place
_NOWHERE = 1 << 62


def check_contents(program: Program, plan: ArenaPlan) -> None:
    """Check that the last writer of each byte is the one its reader expects. Raises PlanError."""
    starts = [None if each.buffer is None else plan.offsets[each.buffer] + each.offset for each in program.tensors]
    frame = _Frame(program, _Contents(), [(tensor,) for tensor in range(len(starts))], starts)
    for port in program.inputs:
        frame.write(port.tensor)
    frame.run()
    for port in program.outputs:
        frame.check_read(port.tensor, f"Output '{port.name}'")


class _Contents:
    """Values of bytes, as ranges with the start of each."""

    def __init__(self) -> None:
        self._starts, self._values = [0], list[_Value | None]([None])

    def write(self, low: int, high: int, value: _Value) -> None:
        """Put a value into bytes."""
        if low < high:
            first, end = self._cut(low), self._cut(high)
            if first and self._values[first - 1] == value:
                self._starts[first:end], self._values[first:end] = [], []
            else:
                self._starts[first:end], self._values[first:end] = [low], [value]

    def read(self, low: int, high: int) -> list[_Held]:
        """List the values in bytes."""
        first, end = self._cut(low), self._cut(high)
        ends = [*self._starts[first + 1 : end], high]
        return list(zip(self._starts[first:end], ends, self._values[first:end]))

    def _cut(self, at: int) -> int:
        """Return the number of the range from a byte on, which is made if there is none."""
        place = bisect_left(self._starts, at)
        if place == len(self._starts) or self._starts[place] != at:
            self._starts.insert(place, at)
            self._values.insert(place, self._values[place - 1])
        return place


@dataclass
class _Frame:
    """Program at work, with the value and the first byte of each tensor, by number; weights have no bytes.

    The body of a `loop` is in the frame `around`. Kernels of a numbered loop compute a few rows at a time, which the
    validator of regions replays: here the loop is one step around, and its body runs once, whatever it reads outside.
    """

    program: Program
    contents: _Contents
    values: Sequence[_Value]
    starts: Sequence[int | None]
    around: _Frame | None = None
    loop: Loop | None = None

    def write(self, tensor: int) -> None:
        """Put the value of a tensor into its bytes."""
        self.contents.write(*self._bytes(tensor), self.values[tensor])

    def run(self, where: str = "", trip: int | None = None) -> None:
        """Run the steps of one trip, or all of them."""
        for number, step in enumerate(self.program.steps):
            if trip is None or step.runs_in(trip):
                self._run(step, f"Step {number} ({step.kernel}){where}")

    def _run(self, step: Step, who: str) -> None:
        for place, read in enumerate(step.reads):
            if self.loop is None or not self.loop.is_numbered or self._buffer(read) not in self.loop.outside:
                self.check_read(read, who)
                for result in range(len(step.writes)):
                    self._check_overlap(step, place, result, who)
        for number, write in enumerate(step.writes):
            if any(_overlap(self._bytes(write), self._bytes(other)) for other in step.writes[:number]):
                raise PlanError(f"{who} writes two results to the same bytes.")
        if isinstance(step, Loop):
            self._run_loop(step)
        else:
            for write in step.writes:
                self.write(write)

    def check_read(self, tensor: int, who: str) -> None:
        """Check that a tensor is all there. Raises PlanError."""
        for low, high, value in self._wrong(tensor):
            name = self._name(tensor)
            if value is None:
                raise PlanError(f"{who} reads buffer '{name}' before anything wrote it: tensor {tensor} is missing.")
            raise PlanError(
                f"{who} reads bytes {low} to {high} of the arena, buffer '{name}', "
                f"after tensor {value[-1]} is written there."
            )

    def _wrong(self, tensor: int) -> Iterator[_Held]:
        """Yield the bytes of a tensor that hold another value."""
        accepted = list(self._accepted(tensor))
        for low, high, value in self.contents.read(*self._bytes(tensor)):
            if not any(start <= low and high <= end and value == own for start, end, own in accepted):
                yield low, high, value

    def _accepted(self, tensor: int) -> Iterator[_Held]:
        """Yield the values that a tensor may hold: its own, those of the tensors it is a view of, or a window on."""
        low, high = self._bytes(tensor)
        yield low, high, self.values[tensor]
        for view in self.program.views:
            if view.tensor == tensor:
                if self._bytes(view.source)[0] != low + view.shift:
                    raise PlanError(f"Tensor {tensor} is a view of tensor {view.source}, but lies elsewhere.")
                yield from self._accepted(view.source)
        if self.loop is not None and self.around is not None:
            for window in self.loop.windows:
                if window.tensor == tensor and window.place < len(self.loop.reads):
                    yield from self.around._accepted(self.loop.reads[window.place])

    def _check_overlap(self, step: Step, place: int, result: int, who: str) -> None:
        """Check that a step overwrites an operand only as its kernel allows.

        The kernel must read each element just before it writes there. Raises PlanError.
        """
        read, write = step.reads[place], step.writes[result]
        source, target = self._bytes(read), self._bytes(write)
        shifts = [overlay.shift for overlay in step.in_place if (overlay.read, overlay.write) == (place, result)]
        if _overlap(source, target) and source[0] - target[0] not in shifts:
            raise PlanError(f"{who} writes '{self._name(write)}' over '{self._name(read)}', which it still reads.")

    def _run_loop(self, loop: Loop) -> None:
        """Run the trips of a loop; its results hold the values of this program afterwards. Raises PlanError."""
        body = loop.body
        frame = _Frame(body, self.contents, self._values_in(loop), (), self, loop)
        trips = [self._starts_in(loop, trip) for trip in range(1 if loop.is_numbered else loop.trips)]
        frame.starts = trips[0]
        for port in body.inputs:
            if body.tensors[port.tensor].buffer in loop.rings:
                frame.write(port.tensor)
        for trip, starts in enumerate(trips):
            frame.starts = starts
            if loop.is_numbered:
                frame.run(f" of loop '{loop.kernel}'")
            else:
                frame.run(f" of loop '{loop.kernel}' in trip {trip}", trip)
            for first, last in loop.carries:
                frame._carry(first, last)
        results = {window.tensor for window in loop.windows if window.place >= len(loop.reads)}
        for frame.starts in trips:
            for tensor in results & {view.tensor for view in body.views}:
                if not any(frame._wrong(tensor)):
                    frame.write(tensor)  # an operand left in its place
        for number, tensor in enumerate(loop.results):
            own = self.values[tensor]
            for low, high, value in self.contents.read(*self._bytes(tensor)):
                if value is not None and value[: len(own)] == own:
                    self.contents.write(low, high, own)
                elif self.loop is None or self._buffer(tensor) not in self.loop.outside:
                    raise PlanError(f"Loop '{loop.kernel}' does not write all of its result {number}.")

    def _values_in(self, loop: Loop) -> list[_Value]:
        """Return the values of the tensors in a loop's body: parts of those around. Raises PlanError."""
        around = (*loop.reads, *loop.results)
        homes = {window.tensor: window.place for window in sorted(loop.windows, key=lambda window: window.place)}
        for tensor in {tensor for step in loop.body.steps for tensor in step.writes}:
            if homes.get(tensor, len(around)) < len(loop.reads):
                raise PlanError(f"Loop '{loop.kernel}' writes tensor {tensor} of its body, which is not a result.")
        return [
            (*(self.values[around[homes[number]]] if number in homes else (-1,)), number)
            for number in range(len(loop.body.tensors))
        ]

    def _starts_in(self, loop: Loop, trip: int) -> list[int | None]:
        """Return the first byte of each tensor in a loop's body in a trip."""
        around, tensors = (*loop.reads, *loop.results), loop.body.tensors
        places = {
            number: (loop.workspace_of(tensor.buffer), loop.offsets[tensor.buffer] + tensor.offset)
            for number, tensor in enumerate(tensors)
            if tensor.buffer not in loop.outside
            and tensor.buffer is not None
            and loop.body.buffers[tensor.buffer].nbytes
        } | {each.tensor: (around[each.place], each.offset + trip * each.stride) for each in loop.windows}
        found = [None if tensor.buffer is None else _NOWHERE for tensor in tensors]
        for number, (place, offset) in places.items():
            start = self.starts[place]
            found[number] = None if start is None else start + offset
        return found

    def _carry(self, first: int, last: int) -> None:
        """Read what a trip wrote as `last` as `first` from now on. Raises PlanError."""
        if self.starts[first] is None or self.starts[first] != self.starts[last]:
            raise PlanError(f"A loop carries tensor {last} as tensor {first}, which lies elsewhere.")
        for low, high, value in self.contents.read(*self._bytes(last)):
            if value == self.values[last]:
                self.contents.write(low, high, self.values[first])

    def _buffer(self, tensor: int) -> int | None:
        return self.program.tensors[tensor].buffer

    def _name(self, tensor: int) -> str:
        return self.program.buffers[self.program.tensors[tensor].buffer_number].name

    def _bytes(self, tensor: int) -> tuple[int, int]:
        """Return the half-open byte range of a tensor in the arena."""
        start = self.starts[tensor]
        return (0, 0) if start is None else (start, start + self.program.tensors[tensor].nbytes)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])
