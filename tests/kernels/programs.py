"""Lower small Relax modules, and run a program kernel by kernel on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tvm
import tvm_ffi
from tvm import relax
from tvm.ir import IRModule

from passfit.codegen.objects import build_module
from passfit.kernels.lower.lower import Lowered, lower
from passfit.kernels.lower.specialise import specialise_kernels
from passfit.memory import ALIGNMENT, plan_arena, validate_plan
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.passes.sequence.sequence import Sequence as PassSequence

HOST = {"kind": "llvm"}
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
    library = build_module(lowered.kernels, HOST)
    program = lowered.program
    plan = plan_arena(program)
    validate_plan(program, plan, ALIGNMENT)
    block = np.full(plan.arena + 2 * _AROUND + ALIGNMENT, 0xFF, np.uint8)
    arena = block[-block.ctypes.data % ALIGNMENT + _AROUND :]

    def place(number: int) -> slice:
        tensor = program.tensors[number]
        start = plan.offsets[tensor.buffer] + tensor.offset
        return slice(start, start + tensor.nbytes)

    def array(number: int) -> np.ndarray:
        tensor = program.tensors[number]
        if tensor.weight is not None:
            return lowered.weights[tensor.weight].reshape(tensor.shape)
        return arena[place(number)].view(tensor.dtype).reshape(tensor.shape)

    def argument(number: int) -> tvm.runtime.Tensor:
        if program.tensors[number].weight is not None:
            return tvm.runtime.tensor(np.array(array(number), order="C"))
        return tvm_ffi.from_dlpack(array(number), require_alignment=0)

    for port, value in zip(program.inputs, inputs, strict=True):
        array(port.tensor)[...] = value
    for step in program.steps:
        before = block.copy()
        library[step.kernel](*(argument(number) for number in (*step.reads, *step.writes)))
        for number in step.writes:
            before[arena.ctypes.data - block.ctypes.data :][place(number)] = arena[place(number)]
        np.testing.assert_array_equal(before, block, err_msg=f"{step.kernel} writes what is not its own")
    return [array(port.tensor).copy() for port in program.outputs]
