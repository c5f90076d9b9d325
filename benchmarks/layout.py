"""What another layout of activations would give: convolutions and poolings of models in NCHW, in blocks and in NHWC.

    .venv/bin/python benchmarks/layout.py                results in benchmarks/results/layout.md
    .venv/bin/python benchmarks/layout.py --only resnet

Each kernel alone, made by the rules as they are, on one thread, operands in the caches; the layouts turn by turn, of
ROUNDS turns the shortest. Blocks are of as many channels as a vector has lanes, NCHW{c}c, with weights OIHW{i}i{o}o;
weights are in the best layout for their kernel in all of them. No transform between layouts is counted.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace

import numpy as np
from entries import HERE, geometric_mean
from latency import TARGET
from tvm import relax, te, tirx

from passfit.kernels.lower.lower import lower
from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.schedule.tuned import ScheduleRequest
from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence
from passfit.support.text_files import write_text
from passfit.tuning.measure.timed import TimingHarness
from passfit.tuning.recorder import ScheduleRecorder

LAYOUTS, ROUNDS = ("NCHW", "blocks", "NHWC"), 5
_LANES = TARGET.machine.lanes


@dataclass(frozen=True)
class Case:
    """A convolution, of one channel at a time where `kind` says so, or a pooling, with bias and ReLU; of `taken`
    channels by `height` and `width`."""

    model: str
    kind: str
    taken: int
    height: int
    width: int
    given: int
    window: int
    stride: int = 1

    @property
    def padding(self) -> int:
        return self.window // 2

    @property
    def name(self) -> str:
        stride = f", stride {self.stride}" if self.stride > 1 else ""
        channels = f"{self.taken} → {self.given}" if self.kind == "convolution" else f"{self.taken}"
        return f"{self.kind} {self.window}×{self.window}{stride}, {channels}, {self.height}×{self.width}"


CASES = (
    Case("squeezenet1.1", "convolution", 3, 224, 224, 64, 3, 2),
    Case("squeezenet1.1", "convolution", 16, 55, 55, 64, 3),
    Case("squeezenet1.1", "convolution", 32, 27, 27, 128, 3),
    Case("squeezenet1.1", "convolution", 64, 13, 13, 256, 3),
    Case("squeezenet1.1", "convolution", 128, 27, 27, 32, 1),
    Case("squeezenet1.1", "convolution", 512, 13, 13, 1000, 1),
    Case("squeezenet1.1", "pooling", 64, 111, 111, 64, 3, 2),
    Case("resnet50", "convolution", 3, 224, 224, 64, 7, 2),
    Case("resnet50", "convolution", 64, 56, 56, 64, 3),
    Case("resnet50", "convolution", 128, 28, 28, 128, 3),
    Case("resnet50", "convolution", 256, 14, 14, 256, 3),
    Case("resnet50", "convolution", 512, 7, 7, 512, 3),
    Case("resnet50", "convolution", 64, 56, 56, 256, 1),
    Case("resnet50", "convolution", 256, 56, 56, 64, 1),
    Case("resnet50", "convolution", 1024, 14, 14, 256, 1),
    Case("resnet50", "convolution", 256, 14, 14, 1024, 1),
    Case("resnet50", "convolution", 256, 56, 56, 128, 3, 2),
    Case("resnet50", "convolution", 2048, 7, 7, 512, 1),
    Case("mobilenet_v2", "depthwise", 144, 56, 56, 144, 3),
    Case("mobilenet_v2", "depthwise", 96, 112, 112, 96, 3, 2),
    Case("mobilenet_v2", "depthwise", 384, 14, 14, 384, 3),
    Case("mobilenet_v2", "convolution", 96, 14, 14, 576, 1),
    Case("mobilenet_v2", "convolution", 160, 7, 7, 960, 1),
    Case("face-scrfd", "convolution", 24, 160, 160, 24, 3),
    Case("face-scrfd", "convolution", 48, 80, 80, 48, 3),
    Case("face-scrfd", "convolution", 64, 80, 80, 64, 3),
)


def request_of(case: Case, layout: str) -> ScheduleRequest:
    """The kernel, about to be scheduled."""
    block = {"NCHW": 0, "blocks": _LANES, "NHWC": max(case.taken, case.given)}[layout]
    blocks, lanes = _blocked(case.taken, block) if block else (case.taken, None)
    shape = (1, blocks, case.height, case.width, *((lanes,) if lanes else ()))
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = _in_blocks(case, x, block, builder) if block else _plain(case, x)
            result = builder.emit_output(builder.normalize(result))
        builder.emit_func_output(result)
    module = builder.get()
    for each in Sequence.parse(TVM_DEFAULT).passes:
        module = each.apply(module)
    census = ScheduleRecorder()
    lowered = lower(module, "kernel", ["x"], ["y"], machine=TARGET.machine)
    schedule_program(replace(lowered, tuning=census))
    (request,) = census.requests.values()
    return request


def _blocked(channels: int, block: int) -> tuple[int, int]:
    """Blocks, and channels in each."""
    block = min(block, channels)
    return channels // block, block


def _plain(case: Case, x: relax.Expr) -> relax.Expr:
    """As models have it."""
    options = {"strides": (case.stride,) * 2, "padding": (case.padding,) * 2}
    if case.kind == "pooling":
        result = relax.op.nn.max_pool2d(x, (case.window,) * 2, **options)
    else:
        groups = case.taken if case.kind == "depthwise" else 1
        weights = _constant((case.given, case.taken // groups, case.window, case.window))
        result = relax.op.nn.conv2d(x, weights, groups=groups, **options)
    return relax.op.nn.relu(relax.op.add(result, _constant((1, case.given, 1, 1))))


def _in_blocks(case: Case, x: relax.Expr, block: int, builder: relax.BlockBuilder) -> relax.Expr:
    blocks, taken = _blocked(case.taken, block)
    others, given = _blocked(case.given, block)
    weights = {
        "convolution": [(others, blocks, case.window, case.window, taken, given)],
        "depthwise": [(others, 1, case.window, case.window, 1, given)],
    }.get(case.kind, [])
    constants = [_constant(each) for each in (*weights, (others, given))]

    def kernel(x: te.Tensor, *constants: te.Tensor) -> te.Tensor:
        return _result(case, x, constants[-1], constants[0] if weights else None)

    return builder.call_te(kernel, x, *constants)


def _constant(shape: tuple[int, ...]) -> relax.Constant:
    return relax.const(np.random.default_rng(0).standard_normal(shape).astype("float32"))


def _result(case: Case, x: te.Tensor, bias: te.Tensor, weights: te.Tensor | None) -> te.Tensor:
    """In five dimensions, the last of which is the channel within its block."""
    before, size, stride = case.padding, case.window, case.stride
    _, blocks, height, width, block = map(int, x.shape)
    zero = tirx.const(0.0 if case.kind != "pooling" else -3.0e38, "float32")

    def padded(n, c, y, column, lane):
        inside = tirx.all(y >= before, y < height + before, column >= before, column < width + before)
        return tirx.if_then_else(inside, x[n, c, y - before, column - before, lane], zero)

    data = te.compute((1, blocks, height + 2 * before, width + 2 * before, block), padded, "padded") if before else x
    rows, columns = te.reduce_axis((0, size), "i"), te.reduce_axis((0, size), "j")
    extent = [(side + 2 * before - size) // stride + 1 for side in (height, width)]
    shape = (1, int(bias.shape[0]), *extent, int(bias.shape[1]))
    if case.kind == "convolution":
        group, inner = te.reduce_axis((0, blocks), "c"), te.reduce_axis((0, block), "inner")

        def window(n, f, y, column, lane):
            element = data[n, group, y * stride + rows, column * stride + columns, inner]
            return te.sum(element * weights[f, group, rows, columns, inner, lane], [group, rows, columns, inner])
    else:

        def window(n, f, y, column, lane):
            element = data[n, f, y * stride + rows, column * stride + columns, lane]
            if weights is None:
                return te.max(element, [rows, columns])
            return te.sum(element * weights[f, 0, rows, columns, 0, lane], [rows, columns])

    sums = te.compute(shape, window, "sums")
    return te.compute(shape, lambda *at: te.max(sums(*at) + bias[at[1], at[4]], tirx.const(0.0, "float32")), "result")


def measure(case: Case) -> list[float]:
    """Microseconds, by layout."""
    requests = [request_of(case, layout) for layout in LAYOUTS]
    harnesses = [TimingHarness(request, TARGET, 0) for request in requests]
    found = [float("inf")] * len(harnesses)
    for _ in range(ROUNDS):
        taken = [harness.cost(request.rules) / 1e3 for harness, request in zip(harnesses, requests)]
        found = list(map(min, found, taken))
    return found


def table(rows: list[tuple[Case, list[float]]]) -> str:
    lines = [
        "# Layouts of activations: microseconds a kernel",
        "",
        "`.venv/bin/python benchmarks/layout.py`: each kernel alone on one thread, x86-64-v3, by the rules as they are, the shortest",
        f"of {ROUNDS} turns on a machine with other work to do. Blocks: NCHW{_LANES}c. In brackets, ÷ NCHW: below 1 the layout is faster, before",
        "any transform into it and out of it.",
        "",
        "| model | kernel | NCHW | blocks | NHWC |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for case, (plain, *others) in rows:
        cells = " | ".join(f"{each:.0f} ({each / plain:.2f}×)" for each in others)
        lines.append(f"| {case.model} | {case.name} | {plain:.0f} | {cells} |")
    means = [geometric_mean([times[n] / times[0] for _, times in rows]) for n in (1, 2)]
    best = geometric_mean([min(times) / times[0] for _, times in rows])
    cells = " | ".join(f"**{mean:.2f}×**" for mean in means)
    lines += [f"| **geometric mean** ({len(rows)}) | | | {cells} |", ""]
    lines += [f"The best of the three for each kernel alone: {best:.2f}× NCHW in the geometric mean.", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="of models whose name has this in it; nothing is written then")
    arguments = parser.parse_args()
    rows = []
    for case in CASES:
        if arguments.only in case.model:
            rows.append((case, measure(case)))
            sys.stdout.write(f"{case.model}, {case.name}: {' '.join(f'{each:.0f}' for each in rows[-1][1])}\n")
            sys.stdout.flush()
    if not arguments.only:
        write_text(HERE / "results" / "layout.md", table(rows))


if __name__ == "__main__":
    main()
