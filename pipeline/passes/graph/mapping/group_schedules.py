"""Schedule the kernels of groups, each form of group once: rounds, objectives, graphs and processes repeat few forms.

"group 1f3a…": {"workspace": 0, "speed": 2, "arithmetic": 1568}
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from tvm import relax
from tvm.ir import GenericConst, IRModule, Var
from tvm.tirx import PrimFunc

from ....kernels.rules.rule import Speed
from ....kernels.schedule.candidates import Schedule, schedules
from ....kernels.schedule.divide_stages import faster_stages
from ....support.result_store import shared_store
from ....targets import Machine
from ....tir.counts.operation_counts import BY_ELEMENT, instructions_of
from ....tir.inlining import REFUSALS
from ....tir.structural_key import structural_key
from ..bound_groups import group_function
from .kernel_calls import CalledKernels

_MACHINE = Machine()


@dataclass(frozen=True)
class GroupSchedule:
    """Needs of a group by its fastest schedule; `arithmetic` is that of its sums, `workspace` excludes registers."""

    workspace: int
    speed: Speed
    arithmetic: int


def group_schedule(module: IRModule, called: CalledKernels, group: frozenset[int]) -> GroupSchedule | None:
    """Return the needs of a group; None if it is not a kernel: TVM cannot lower it, or lowering divides it."""

    def compute() -> GroupSchedule | None:
        try:
            kernel, constants = _fuse(module, called, group)
            return None if faster_stages(kernel, constants) else _schedule(kernel, constants)
        except REFUSALS:
            return None

    return shared_store().get_or_make_as(GroupSchedule | None, f"group {_key(module, called, group)}", compute)


def speed_alone(module: IRModule, called: CalledKernels, value: int) -> Speed:
    """Return the speed of the kernel of a value alone."""
    call = called.bindings[value].value
    constants = _constants(call.args[1].fields)
    kernel = module[call.args[0]]
    return Speed(shared_store().get_or_make(
        f"speed {structural_key(kernel, sorted(constants))}", lambda: int(_fastest(kernel, constants).speed)
    ))  # fmt: skip


def _key(module: IRModule, called: CalledKernels, group: frozenset[int]) -> str:
    """Return 32 digits for all that the kernel of a group depends on: its kernels and their dataflow."""
    known: dict[relax.Expr, int] = {}
    form: list[object] = []
    for binding in (called.bindings[each] for each in sorted(group)):
        callee, operands = binding.value.args[:2]
        form.append(structural_key(module[callee]))
        form += [(known.setdefault(each, len(known)), isinstance(each, GenericConst)) for each in operands.fields]
        known[binding.var] = len(known)
    return hashlib.sha256(repr(form).encode()).hexdigest()[:32]


def _fuse(module: IRModule, called: CalledKernels, group: frozenset[int]) -> tuple[PrimFunc, frozenset[int]]:
    """Return the kernel of a group, fused by itself, and the numbers of its constant operands."""
    bindings = [called.bindings[each] for each in sorted(group)]
    function, operands = group_function(bindings)
    callees = {each.value.args[0] for each in bindings}
    builder = relax.BlockBuilder(IRModule({each: module[each] for each in callees}))
    callee = builder.add_func(function, "fused")
    result = relax.Var("result", bindings[-1].var.ty)
    call = relax.VarBinding(result, relax.Call(callee, operands, None, [result.ty]))
    free = [each for each in operands if isinstance(each, Var)]
    body = relax.SeqExpr([relax.DataflowBlock([call])], result)
    builder.add_func(relax.Function(free, body, result.ty).with_attr("global_symbol", "main"), "main")
    return relax.transform.FuseTIR()(builder.get())[callee.name_hint], _constants(operands)


def _schedule(kernel: PrimFunc, constants: frozenset[int]) -> GroupSchedule:
    schedule = _fastest(kernel, constants)
    workspace = schedule.workspace if schedule.workspace > _MACHINE.register_bytes * schedule.threads else 0
    # of sums alone: LLVM hoists other values out of the loops that they do not depend on, as the gate of a plane
    done = round(sum(each.arithmetic for each in instructions_of(schedule.kernel, BY_ELEMENT) if each.steps > 1))
    return GroupSchedule(workspace, schedule.speed, done)


def _constants(operands: list[relax.Expr]) -> frozenset[int]:
    return frozenset(number for number, each in enumerate(operands) if isinstance(each, GenericConst))


def _fastest(kernel: PrimFunc, constants: frozenset[int]) -> Schedule:
    """Return the fastest schedule; any program allows as much workspace as the kernel needs as TVM made it."""
    return next(iter(schedules(kernel, constants, _MACHINE).candidates()))
