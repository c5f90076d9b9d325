"""Split kernels (loop fission) at a value every row of the result needs whole: a gate computed from means, say.

result[c, y, x] = data[c, y, x] * sigmoid(Σ weight[c, k] * mean[k])          one kernel, by TVM's fusion
gate[c] = sigmoid(Σ weight[c, k] * mean[k])                                  needed whole by every row
result[c, y, x] = data[c, y, x] * gate[c]                                    can be computed row by row
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir import Var
from tvm.s_tir import SBlock
from tvm.tirx import PrimFunc, Stmt

from ...tir.expressions import reads
from ...tir.index_grid import NoMatch
from ...tir.loop_nests import blocks_of, kernel_of, nests_in
from ...tir.memoise import memoise_by_structure
from ...tir.row_window import RowDependence
from ..lower.divide_kernels import divide
from ..lower.lower import Lowered
from ..schedule.divide_stages import Stage


def split_reductions(lowered: Lowered) -> Lowered:
    """Split every kernel with a sum that each row of its result needs whole."""
    names = {step.kernel for step in lowered.program.steps if len(step.writes) == 1}
    cuts = {name: _cut(lowered.kernels[name]) for name in sorted(names & lowered.kernels.keys())}
    return divide(lowered, {name: cut for name, cut in cuts.items() if cut}, ("sum", "rest"))


@memoise_by_structure
def _cut(kernel: PrimFunc) -> tuple[Stage, ...]:
    for axis in reversed(range(len(kernel.params[-1].ty.shape))):
        try:
            cut = _cut_along(kernel, axis)
        except NoMatch:
            continue
        if cut:
            return cut
    return ()


def _cut_along(kernel: PrimFunc, axis: int) -> tuple[Stage, ...]:
    """Separate the blocks that follow the result's rows along `axis` from those before; nothing if these hold no sum."""
    blocks, nests = blocks_of(kernel), nests_in(kernel)
    if not any(block.init is not None for block in blocks) or int(kernel.params[-1].ty.shape[axis]) == 1:
        return ()
    found = RowDependence(kernel, repeats=True)
    found.start(kernel.params[-1], axis)
    for block in reversed(blocks):
        found.follow(block)
    early = [number for number, block in enumerate(blocks) if block.body.buffer in found.whole]
    late = [number for number in range(len(blocks)) if number not in early]
    if not any(blocks[number].init is not None for number in early):
        return ()
    written = [blocks[number].body.buffer for number in early]
    needed = [each for each in written if any(reads(blocks[number].body.value, each) for number in late)]
    if len(needed) != 1:
        return ()
    (between,) = needed
    *operands, result = kernel.params
    first_reads, then_reads = (
        tuple(n for n, param in enumerate(operands) if any(reads(blocks[each].body.value, param) for each in part))
        for part in (early, late)
    )
    first = _part(kernel, [*(operands[n] for n in first_reads), between], early, blocks, nests)
    then = _part(kernel, [*(operands[n] for n in then_reads), between, result], late, blocks, nests)
    return Stage(first, first_reads), Stage(then, (*then_reads, len(operands)))


def _part(
    kernel: PrimFunc, params: list[Var], numbers: list[int], blocks: Sequence[SBlock], nests: Sequence[Stmt]
) -> PrimFunc:
    own = [blocks[number].body.buffer for number in numbers]
    own = [each for each in own if not any(each.same_as(param) for param in params)]
    made = kernel_of(params, [nests[number] for number in numbers], own, kernel.attrs)
    return made.without_attr("op_pattern") if made.attrs and "op_pattern" in made.attrs else made
