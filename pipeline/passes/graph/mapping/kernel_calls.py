"""Read kernel calls as values of a fusion plan, and write them back in groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tvm import relax
from tvm.ir import GenericConst, IRModule

from ....program import DTYPE_BYTES
from ....program.mapping import KernelAccesses, MappingType
from ....tir.in_place.analysis import analyse_sharing
from ....tir.mapping_types import accesses_of
from ..bound_groups import group_function, is_plain_call
from ..rules.dataflow import bindings_of
from ..rules.replace_values import replace_values
from .group_cost import KernelCalls
from .plan_account import group_of
from .value_sets import Values

_LONGEST_NAME = 96


@dataclass(frozen=True)
class CalledKernels:
    """Values of `main`: inputs and weights first, then bindings in order.

    `bindings` maps the number of a value to its binding, a single-result call of a kernel.
    """

    values: Values
    calls: KernelCalls
    bindings: Mapping[int, relax.VarBinding]


@lru_cache(2)
def read_calls(module: IRModule) -> CalledKernels | None:
    """Read the calls of `main`; None if it is not a straight line of bindings.

    Those of the latest modules are kept: each is planned for ram and for latency.
    """
    main = module["main"]
    bindings = list(bindings_of(main))
    if not all(isinstance(binding, relax.VarBinding) for binding in bindings):
        return None
    reader = _Reader(module)
    for param in main.params:
        reader.known[param] = (reader.new(param, None),)
    for binding in bindings:
        reader.read(binding)
    outputs = frozenset(reader.existing(main.body.body))
    values = Values(tuple(reader.reads), tuple(reader.memory), frozenset(reader.exist), outputs)
    placed = frozenset(number for number, binding in reader.bindings.items() if reader.is_placed(number, binding))
    calls = KernelCalls(tuple(reader.kernels), values.reads, tuple(reader.nbytes), placed)
    return CalledKernels(values, calls, reader.bindings)


def write_groups(module: IRModule, called: CalledKernels, exist: frozenset[int]) -> IRModule:
    """Group the calls of each existing value into a function, for FuseTIR; drop calls of values that do not exist."""
    builder, replaced = relax.BlockBuilder(module), {}
    for number, binding in called.bindings.items():
        members = sorted(group_of(called.values, exist, number)) if number in exist else []
        if len(members) > 1:
            function, operands = group_function([called.bindings[each] for each in members])
            names = [called.bindings[each].value.args[0].name_hint for each in members]
            callee = builder.add_func(function, "_".join(["fused", *names])[:_LONGEST_NAME])
            replaced[binding.var] = relax.Call(callee, operands, None, [binding.var.ty])
    return replace_values(builder.get(), replaced)


class _Reader:
    """Number the values in order."""

    def __init__(self, module: IRModule):
        self.module = module
        #: the values behind an expression
        self.known: dict[relax.Expr, tuple[int, ...]] = {}
        self.reads: list[tuple[int, ...] | None] = []
        self.nbytes: list[int] = []
        self.memory: list[int] = []
        self.kernels: list[KernelAccesses | None] = []
        self.exist: set[int] = set()
        self.bindings: dict[int, relax.VarBinding] = {}

    def new(
        self,
        expr: relax.Expr,
        reads: tuple[int, ...] | None,
        weight: bool = False,
        kernel: KernelAccesses | None = None,
    ) -> int:
        nbytes = _bytes_of(expr.ty)
        self.reads.append(reads)
        self.nbytes.append(nbytes)
        self.memory.append(0 if weight else nbytes)
        self.kernels.append(kernel)
        return len(self.reads) - 1

    def read(self, binding: relax.VarBinding) -> None:
        call = binding.value
        if not isinstance(call, relax.Call):  # an alias or a tuple: no value of its own
            self.known[binding.var] = self.existing(call)
        elif (operands := self._operands(binding)) is not None and (kernel := accesses_of(self.module[call.args[0]])):
            number = self.new(binding.var, operands, kernel=kernel)
            self.bindings[number] = binding
            self.known[binding.var] = (number,)
        else:
            operands = tuple(value for argument in call.args for value in self.existing(argument))
            number = self.new(binding.var, operands)
            self.exist.add(number)
            self.known[binding.var] = (number,)

    def _operands(self, binding: relax.VarBinding) -> tuple[int, ...] | None:
        """Return the value of each operand of a plain call; None for another call, or a part of an unknown tuple."""
        if not is_plain_call(binding):
            return None
        found = [self.values(field) for field in binding.value.args[1].fields]
        return tuple(value for (value,) in found) if all(len(each) == 1 for each in found) else None

    def is_placed(self, number: int, binding: relax.VarBinding) -> bool:
        """Return whether a call only copies computed values, each to one place of its result."""
        reads = self.reads[number] or ()
        computed = all(self.reads[each] is not None for each in reads)
        kernel = self.kernels[number]
        if kernel is None or not kernel.copies or not (computed or kernel.mapping <= MappingType.REORGANISE):
            return False
        return bool(analyse_sharing(self.module[binding.value.args[0]]).copies)

    def existing(self, expr: relax.Expr) -> tuple[int, ...]:
        """Return the values behind an expression, all of which must exist."""
        found = self.values(expr)
        self.exist.update(each for each in found if self.reads[each] is not None)
        return found

    def values(self, expr: relax.Expr) -> tuple[int, ...]:
        if isinstance(expr, relax.Tuple):
            return tuple(value for field in expr.fields for value in self.values(field))
        if isinstance(expr, relax.TupleGetItem):
            found, fields = self.values(expr.tuple_value), expr.tuple_value.ty.fields
            flat = len(found) == len(fields) and not any(isinstance(each, relax.TupleType) for each in fields)
            return (found[expr.index],) if flat else found
        if isinstance(expr, relax.Var):
            return self.known[expr]
        if isinstance(expr, GenericConst):
            if expr not in self.known:
                self.known[expr] = (self.new(expr, None, weight=True),)
            return self.known[expr]
        return ()


def _bytes_of(kind: object) -> int:
    if isinstance(kind, relax.TupleType):
        return sum(map(_bytes_of, kind.fields))
    if not isinstance(kind, relax.TensorType) or not isinstance(kind.shape, relax.ShapeExpr):
        return 0
    return math.prod(int(extent) for extent in kind.shape) * DTYPE_BYTES.get(str(kind.dtype), 4)
