"""Lower small Relax modules, and run a program kernel by kernel on numpy arrays."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import tvm
import tvm_ffi
from tvm import relax
from tvm.ir import IRModule
from tvm.tirx import PrimFunc

from passfit.codegen.objects import build_module
from passfit.kernels.lower.lower import Lowered, lower
from passfit.kernels.lower.specialise import specialise_kernels
from passfit.memory import ALIGNMENT, plan_arena, validate_plan
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.passes.sequence.sequence import Sequence as PassSequence
from passfit.program import Loop, Program
from passfit.support.result_store import kept_bytes
from passfit.targets import toolchain
from passfit.tir.structural_key import structural_key

#: LLVM without its optimisations, half of the time a kernel takes to build: what is tested here is the kernel. Those of
#: whole libraries, in tests/api, tests/nodes and tests/fuzz, are optimised as they are delivered
HOST = {"kind": "llvm", "opt-level": 0}
#: bytes around an arena that no kernel may touch, a multiple of the alignment
_AROUND = 4096


def module_of(shapes: Sequence[tuple[int, ...]], body: Callable[..., relax.Expr], dtype: str = "float32") -> IRModule:
    """Build a module whose main function applies `body` to inputs of `shapes`."""
    builder = relax.BlockBuilder()
    inputs = [relax.Var(f"x{number}", relax.TensorType(shape, dtype)) for number, shape in enumerate(shapes)]
    with builder.function("main", inputs):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(body(*inputs)))
        builder.emit_func_output(result)
    return builder.get()


def lowered(
    shapes: Sequence[tuple[int, ...]], body: Callable[..., relax.Expr], passes: Sequence[str] = TVM_DEFAULT
) -> Lowered:
    module = module_of(shapes, body)
    for each in PassSequence.parse(passes).passes:
        module = each.apply(module)
    return lower(module, "small", [f"x{number}" for number in range(len(shapes))], ["y"])


def build(kernels: Mapping[str, PrimFunc]) -> tvm.runtime.Module:
    """Build kernels for this process, or take what an earlier run built of equal ones by the same code."""
    asked = repr([(name, structural_key(kernel)) for name, kernel in sorted(kernels.items())])
    key = hashlib.sha256(f"{asked} {HOST}".encode()).hexdigest()[:32]
    library = kept_bytes("test-kernels", key, partial(_shared_library, build_module, kernels))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernels.so")
        file.write_bytes(library)
        return tvm.runtime.load_module(str(file))


def _shared_library(build_module: Callable[..., tvm.runtime.Module], kernels: Mapping[str, PrimFunc]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        build_module(kernels, HOST).write_to_file(f"{folder}/kernels.o", "o")
        toolchain._run(["ld.lld", "-shared", "kernels.o", "-o", "kernels.so"], Path(folder))
        return Path(folder, "kernels.so").read_bytes()


def weight(*shape: int, seed: int = 0) -> relax.Expr:
    return relax.const(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def random_inputs(program: Lowered, seed: int = 1) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    tensors = [program.program.tensors[port.tensor] for port in program.program.inputs]
    return [generator.standard_normal(tensor.shape).astype(tensor.dtype) for tensor in tensors]


def run(lowered: Lowered, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run the program in an arena as a library would: kernels get pointers to their tensors.

    The arena starts out full of NaN, so that bytes no kernel writes show; no kernel may write anything but its results,
    in the arena or around it.
    """
    lowered = specialise_kernels(lowered)
    library = build(lowered.kernels)
    program = lowered.program
    plan = plan_arena(program)
    validate_plan(program, plan, ALIGNMENT)
    block = np.full(plan.arena + 2 * _AROUND + ALIGNMENT, 0xFF, np.uint8)
    arena = block[-block.ctypes.data % ALIGNMENT + _AROUND :]

    # by tensor: the bytes it lies in, and where
    def starts_of(
        within: Program, offsets: Sequence[int], memory: np.ndarray, first: int
    ) -> list[tuple[np.ndarray, int]]:
        return [
            (lowered.weights[each.weight].reshape(-1).view(np.uint8), 0)
            if each.buffer is None
            else (memory, first + offsets[each.buffer] + each.offset)
            for each in within.tensors
        ]

    def array(within: Program, starts: Sequence[tuple[np.ndarray, int]], number: int) -> np.ndarray:
        tensor, (memory, start) = within.tensors[number], starts[number]
        return memory[start : start + tensor.nbytes].view(tensor.dtype).reshape(tensor.shape)

    def argument(within: Program, starts: Sequence[tuple[np.ndarray, int]], number: int) -> tvm.runtime.Tensor:
        value = array(within, starts, number)
        return (
            tvm_ffi.from_dlpack(value, require_alignment=0)
            if starts[number][0] is arena
            else tvm.runtime.tensor(np.array(value, order="C"))
        )

    def execute(within: Program, starts: Sequence[tuple[np.ndarray, int]], trip: int) -> None:
        for step in within.steps:
            if not step.runs_in(trip):
                continue
            if isinstance(step, Loop):
                for each in range(step.trips):
                    execute(step.body, in_trip(step, starts, each), each)
                continue
            before = block.copy()
            guard = step.guard
            numbers = [(trip - guard.offset) // guard.period] if guard is not None and guard.numbered else []
            library[step.kernel](
                *numbers, *(argument(within, starts, number) for number in (*step.reads, *step.writes))
            )
            own = before[arena.ctypes.data - block.ctypes.data :]
            for number in step.writes:
                place = slice(starts[number][1], starts[number][1] + within.tensors[number].nbytes)
                own[place] = arena[place]
            np.testing.assert_array_equal(before, block, err_msg=f"{step.kernel} writes what is not its own")

    def in_trip(loop: Loop, starts: Sequence[tuple[np.ndarray, int]], trip: int) -> list[tuple[np.ndarray, int]]:
        places = [
            offset + starts[loop.workspace_of(buffer)][1] if loop.workspaces else 0
            for buffer, offset in enumerate(loop.offsets)
        ]
        found = starts_of(loop.body, places, arena, 0)
        for window in loop.windows:
            memory, start = starts[(*loop.reads, *loop.results)[window.place]]
            found[window.tensor] = memory, start + window.offset + trip * window.stride
        return found

    starts = starts_of(program, plan.offsets, arena, 0)
    for port, value in zip(program.inputs, inputs, strict=True):
        array(program, starts, port.tensor)[...] = value
    execute(program, starts, 0)
    return [array(program, starts, port.tensor).copy() for port in program.outputs]
