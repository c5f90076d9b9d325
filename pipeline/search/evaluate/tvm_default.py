"""Baseline: the model through TVM's own default CPU pipeline, accounted by the same rules."""

from __future__ import annotations

import math
from collections.abc import Sequence as Ordered
from dataclasses import dataclass
from functools import lru_cache

import tvm
from tvm import relax
from tvm.ir import IRModule, Op
from tvm.relax.backend.cpu_generic import pipeline

from ...kernels.lower.lower import Lowered, lower
from ...kernels.lower.schedule_program import largest_default_workspace
from ...memory import Baseline, Footprint, sum_of_tensors
from ...memory.liveness import aligned
from ...passes.graph.folding.constant_folder import fold_constants, folds_more
from ...passes.graph.lowering.half_batch_norm import legalize_batch_norm
from ...passes.graph.memoised_legalize import memoised_rules
from ...support.strictness import spare
from ...targets import Target
from ...tir import HOST


@dataclass(frozen=True)
class Storage:
    """Block of memory that TVM allocates; `steps` are those whose results it holds, one after the other."""

    nbytes: int
    steps: tuple[int, ...]


def tvm_default(module: IRModule, target: Target, inputs: Ordered[str], outputs: Ordered[str]) -> Baseline:
    """Compute the footprint of `tvm-default`; without sizes if TVM fails, which costs comparisons alone.

    Its ram is the storages StaticPlanBlockMemory allocates + the outputs it leaves unplanned + the inputs + the largest
    workspace of the kernels as TVM makes them (+ weights that are copied to ram). Every block is rounded up to the
    target's alignment, as in an arena (TVM's allocator aligns to 64 too). See `tvm_default_code` for the code.
    """
    return spare(
        Baseline.missing("").name, lambda: Baseline.of(_account(module, target, inputs, outputs)), Baseline.missing
    )


def _account(module: IRModule, target: Target, inputs: Ordered[str], outputs: Ordered[str]) -> Footprint:
    """Count the storages and workspaces of TVM's own pipeline; `code`, `bound` and `floor` are 0: unknown."""
    lowered, storages = default_plan(module, inputs, outputs)
    program = lowered.program
    blocks = [program.buffers[index].nbytes for index in program.input_buffers()] + [each.nbytes for each in storages]
    arena = sum(aligned(nbytes, target.alignment) for nbytes in blocks)
    workspace = largest_default_workspace(lowered)
    weights = program.weight_bytes
    return Footprint(
        ram=arena + workspace + (0 if target.weights == "in-place" else weights),
        flash=weights,
        arena=arena,
        workspace=workspace,
        weights=weights,
        code=0,
        bound=0,
        floor=0,
        proved=False,
        kernels=len(program.steps),
        sum=sum_of_tensors(program),
    )


def default_plan(module: IRModule, inputs: Ordered[str], outputs: Ordered[str]) -> tuple[Lowered, list[Storage]]:
    """Return the program of `tvm-default`, and the storages that StaticPlanBlockMemory gives its results."""
    host = tvm.target.Target(HOST)
    with host:
        legal, lowered = _lower(module, tuple(inputs), tuple(outputs))
        planned = tvm.transform.Sequential(
            [*pipeline.dataflow_lower_passes(host), relax.transform.StaticPlanBlockMemory()]
        )(legal)
    return lowered, _storages(planned["main"])


def lowered_default(module: IRModule, inputs: Ordered[str], outputs: Ordered[str]) -> Lowered:
    """Return the program of `tvm-default`, its kernels as TVM makes them."""
    return _lower(module, tuple(inputs), tuple(outputs))[1]


@lru_cache(1)
def _lower(module: IRModule, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> tuple[IRModule, Lowered]:
    """Legalize, fuse and lower the graph, once for its memory and its code."""
    host = tvm.target.Target(HOST)
    with host:
        legal = _legal(module, host)
        return legal, lower(legal, "baseline", inputs, outputs, apart=False)


def _legal(module: IRModule, host: tvm.target.Target) -> IRModule:
    """Legalize and fuse by TVM's pipeline; `host` is the target in scope."""
    legal = tvm.transform.Sequential(pipeline.library_dispatch_passes(host))(module)
    for each in pipeline.legalize_passes(host):
        legal = _faster(str(each.info.name), legal) or each(legal)
    return legal


def _faster(name: str, module: IRModule) -> IRModule | None:
    """Apply passfit's memoising equivalent of TVM's pass `name`; None unless the results are equal."""
    if name == "LegalizeOps":
        # TVM's own rule makes float32 of float16, which no reader takes
        own = {"relax.nn.batch_norm": legalize_batch_norm}
        return relax.transform.LegalizeOps(memoised_rules(module, own))(module)
    return fold_constants(module, may_grow=True) if name == "FoldConstant" and not folds_more(module) else None


def _storages(function: relax.Function) -> list[Storage]:
    """List every storage, and every tensor allocated outside of one, with the kernels that write there."""
    storage, inside, outside = (
        Op.get(name)
        for name in ("relax.memory.alloc_storage", "relax.memory.alloc_tensor", "relax.builtin.alloc_tensor")
    )
    sizes: dict[relax.Var, int] = {}
    places: dict[relax.Expr, relax.Var] = {}
    steps: dict[relax.Var, list[int]] = {}
    step = 0
    for binding in (each for block in function.body.blocks for each in block.bindings):
        call = binding.value
        if not isinstance(call, relax.Call):
            continue
        if call.op == storage:
            sizes[binding.var] = int(call.args[0].values[0])
        elif call.op == outside:
            bits = tvm.DataType(str(call.ty.dtype)).bits
            sizes[binding.var] = math.prod(int(extent) for extent in call.ty.shape) * -(-bits // 8)
            places[binding.var] = binding.var
        elif call.op == inside:
            places[binding.var] = call.args[0]
        elif isinstance(call.op, relax.GlobalVar):
            for each in set(call.args) & places.keys():  # a tensor is called by this name where it is written alone
                steps.setdefault(places.pop(each), []).append(step)
            step += 1
    return [Storage(nbytes, tuple(steps.get(var, ()))) for var, nbytes in sizes.items()]
