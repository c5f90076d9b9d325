"""Programs with loops: a body of any program, and one loop inside of another."""

from __future__ import annotations

from dataclasses import replace

from passfit.memory import ALIGNMENT, SavedPlan, plan_arena
from passfit.memory.placement.plan_loop import plan_loop
from passfit.program import Buffer, Guard, Loop, Overlay, Port, Program, Step, Tensor, Window
from passfit.program.workspaces import add_workspaces

#: bytes of a slice of the loops here
SLICE = 64


def looped(body: Program, trips: int, backwards: bool = False) -> Program:
    """A program that is one loop: its body takes slices of the program's inputs, and makes slices of its outputs."""
    given, made = (body.buffers_of(tuple(port.tensor for port in ports)) for ports in (body.inputs, body.outputs))
    places = [*given, *(buffer for buffer in made if buffer not in given)]
    kinds = {tensor.buffer: tensor.dtype for tensor in reversed(body.tensors)}
    tensors = tuple(Tensor((trips * body.buffers[each].nbytes,), "uint8", buffer=n) for n, each in enumerate(places))
    elements = tuple(
        replace(each, dtype=kinds[place], shape=_elements(each, kinds[place])) for each, place in zip(tensors, places)
    )
    windows = tuple(
        Window(
            n,
            places.index(each.buffer),
            _start(body, each, trips, backwards),
            body.buffers[each.buffer].nbytes * (-1 if backwards else 1),
        )
        for n, each in enumerate(body.tensors)
        if each.buffer in places
    )
    operands, results = tuple(range(len(given))), tuple(range(len(given), len(places)))
    loop = Loop("loop", operands, results, trips=trips, body=replace(body, name="body", weights=()), windows=windows)
    ports = [tuple(Port(f"port{n}", n) for n in group) for group in (operands, results)]
    buffers = tuple(Buffer(f"port{n}", tensor.nbytes) for n, tensor in enumerate(elements))
    return Program("looped", (loop,), elements, buffers, body.weights, *ports)


def _elements(tensor: Tensor, dtype: str) -> tuple[int, ...]:
    return (tensor.nbytes // Tensor((1,), dtype).nbytes,)


def _start(body: Program, tensor: Tensor, trips: int, backwards: bool) -> int:
    return tensor.offset + (trips - 1) * body.buffers[tensor.buffer].nbytes * backwards


def planned(program: Program) -> Program:
    """Plan the bodies of the loops of `program`, those inside first."""
    steps, sizes = [], {}
    for step in program.steps:
        if isinstance(step, Loop):
            step, sizes[step.kernel] = plan_loop(replace(step, body=planned(step.body)))
        steps.append(step)
    return add_workspaces(replace(program, steps=tuple(steps)), sizes)


def recurrence(trips: int = 5, **changed: object) -> Program:
    """A loop of a state and slices: s = f(x[t], h); h = g(s); y[t] = k(h), where g may work in place."""
    tensors = tuple(Tensor((SLICE,), "uint8", buffer=buffer) for buffer in (0, 1, 2, 3, 2, 4))
    x, first, h, s, new, y = range(6)
    steps = (
        Step("copy", (first,), (h,), in_place=(Overlay(0, 0),), copies=(Overlay(0, 0),), guard=Guard()),
        Step("f", (x, h), (s,)),
        Step("g", (s,), (new,), in_place=(Overlay(0, 0),)),
        Step("k", (new,), (y,)),
    )
    names = ("x", "h0", "h", "s", "y")
    ports = (Port("x", x), Port("h0", first), Port("h", h)), (Port("h", new), Port("y", y))
    body = Program("body", steps, tensors, tuple(Buffer(name, SLICE) for name in names), (), *ports)
    windows = (Window(x, 0, stride=SLICE), Window(first, 1), Window(h, 2), Window(new, 2), Window(y, 3, stride=SLICE))
    loop = Loop("loop", (0, 1), (2, 3), trips=trips, body=body, windows=windows, carries=((h, new),))
    sizes = (trips * SLICE, SLICE, SLICE, trips * SLICE)
    around = tuple(Tensor((size,), "uint8", buffer=n) for n, size in enumerate(sizes))
    inputs, outputs = (Port("x", 0), Port("h0", 1)), (Port("h", 2), Port("y", 3))
    buffers = tuple(Buffer(name, size) for name, size in zip(("x", "h0", "h", "y"), sizes))
    return Program("recurrence", (replace(loop, **changed),), around, buffers, (), inputs, outputs)


def in_rows(trips: int = 5) -> Program:
    """A loop whose steps write a row of each slice of the result (trips, 2): one forwards, one backwards."""
    tensors = tuple(Tensor((SLICE,), "uint8", buffer=buffer) for buffer in range(3))
    steps = Step("f", (0,), (1,)), Step("g", (0,), (2,))
    buffers = tuple(Buffer(name, SLICE) for name in ("x", "y", "y_"))
    body = Program("body", steps, tensors, buffers, (), (Port("x", 0),), (Port("y", 1), Port("y_", 2)))
    rows = Window(1, 1, stride=2 * SLICE), Window(2, 1, (2 * trips - 1) * SLICE, -2 * SLICE)
    loop = Loop("loop", (0,), (1,), trips=trips, body=body, windows=(Window(0, 0, stride=SLICE), *rows))
    around = tuple(Tensor((size * trips * SLICE,), "uint8", buffer=size - 1) for size in (1, 2))
    ports = (Port("x", 0),), (Port("y", 1),)
    return Program(
        "in_rows", (loop,), around, tuple(Buffer(name, each.nbytes) for name, each in zip("xy", around)), (), *ports
    )


def copied_state(in_place: bool = True) -> Program:
    """A loop of a state: s = f(x[t], h), perhaps in place of h; y[t] = k(s); h = s by a copy."""
    program = recurrence()
    (loop,) = program.steps
    assert isinstance(loop, Loop)
    copy, f, _, k = loop.body.steps
    steps = (
        copy, replace(f, in_place=(Overlay(1, 0),) if in_place else ()), replace(k, reads=(3,)),
        Step("again", (3,), (4,), in_place=(Overlay(0, 0),), copies=(Overlay(0, 0),)),
    )  # fmt: skip
    return replace(program, steps=(replace(loop, body=replace(loop.body, steps=steps)),))


def nested() -> Program:
    """A loop of 40 trips with one of 5 inside, beside a wide value."""
    inner = recurrence(5)
    tensors = (*inner.tensors, Tensor((1024,), "uint8", buffer=4), Tensor((SLICE,), "uint8", buffer=5))
    steps = (Step("wide", (0,), (4,)), *inner.steps, Step("narrow", (4, 2), (5,)))
    buffers = (*inner.buffers, Buffer("wide", 1024), Buffer("narrow", SLICE))
    outputs = (Port("y", 3), Port("narrow", 5))
    return looped(replace(inner, steps=steps, tensors=tensors, buffers=buffers, outputs=outputs), 40)


def with_loop() -> SavedPlan:
    """A plan of the nested loops."""
    program = planned(nested())
    return SavedPlan(program, plan_arena(program), ALIGNMENT)
