"""Guard a scheduled kernel against values that operators forbid: checks come before the loops that read the data.

    for i in 3:                                    for i in 3:
        for j in 64:                       ──►         if not 0 <= index[i] < 5: fail
            y[i, j] = x[index[i], j]               for i in 3:
                                                       for j in 64:
                                                           y[i, j] = x[index[i], j]

A check moves out of every statement that writes nothing it reads, with the loops whose variables it needs. So inner loops
stay as they are, and a kernel that fails has mostly written nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, TensorLoad, Var
from tvm.s_tir import SBlockRealize
from tvm.tirx import AttrStmt, Bind, BufferStore, Evaluate, For, IfThenElse, IntImm, Not, PrimFunc, SeqStmt, Stmt

from ...frontend.relax.checked import CHECKED
from ...targets.target import IndexChecks
from ...tir.expressions import collect, is_true, loads, replaced, uses
from ...tir.index_grid import NoMatch
from ...tir.loop_nests import axis_values, sequence, statements, with_fields
from ..expand.shuffle import expand_operators
from .buffers_of_data import buffers_of_data, buffers_with_addresses
from .proofs import Constants, Proofs
from .values import DIVISIONS, SHIFTS, ValueChecks

_SERIAL = 0


@dataclass(frozen=True)
class Guarded:
    """Hold a kernel, and the reasons for which it may fail: none if it indexes by nothing unproven."""

    kernel: PrimFunc
    reasons: tuple[str, ...] = ()


def guard_kernel(kernel: PrimFunc, mode: IndexChecks, constants: Constants) -> Guarded:
    """Guard a kernel; it is the same object where no data make an address or a divisor.

    `constants` are the ranges of integer parameters that are weights. Raises NoMatch for statements not understood.
    """
    if not _may_depend_on_data(kernel.body, buffers_of_data(kernel)):
        return Guarded(kernel)
    guard = _Guard(mode, constants)
    body = guard.outermost(kernel.body)
    reasons = tuple(sorted(guard.reasons))
    if mode == "off" or not (reasons or guard.rewrote):
        return Guarded(drop_checks(kernel), reasons)
    return Guarded(kernel.with_body(body), reasons)


def drop_checks(kernel: PrimFunc) -> PrimFunc:
    """Return the kernel with the values of `frontend/relax/checked.py` unchecked."""
    return expand_operators(kernel, {CHECKED: lambda call: call.args[0]})


def _may_depend_on_data(body: Stmt, data: frozenset[Var]) -> bool:
    """Return whether some address, divisor or shift may come from the buffers of `data`: cheaply, for all kernels."""
    indices = (index for each in collect(body, TensorLoad, BufferStore) for index in each.indices)
    values = [index for index in indices if not isinstance(index, (Var, IntImm))]
    values += [each.value for each in collect(body, Bind)]
    operations = (each for each in collect(body, *DIVISIONS, *SHIFTS) if not isinstance(each.b, IntImm))
    return (
        any(load.source in data for value in values for load in loads(value))
        or any("float" not in str(each.ty.dtype) for each in operations)
        or any(getattr(call.op, "name", "") == CHECKED for call in collect(body, Call))
    )


@dataclass(frozen=True)
class _Check:
    """Statement that ends a kernel which may not go on, and the buffers it reads."""

    stmt: Stmt
    reads: frozenset[Var]

    @classmethod
    def of(cls, stmt: Stmt) -> _Check:
        return cls(stmt, frozenset(load.source for load in loads(stmt)))

    def with_values(self, values: Mapping[Var, Expr]) -> _Check:
        """Return the check outside of the place that binds variables to values."""
        return _Check.of(replaced(self.stmt, values)) if any(uses(self.stmt, var) for var in values) else self


class _Guard:
    """Rewrite the statements of one kernel. Each returns itself and the checks to run before it."""

    def __init__(self, mode: IndexChecks, constants: Constants) -> None:
        self.reasons: set[str] = set()
        self.rewrote = False
        self._mode = mode
        self._proofs = Proofs(constants)
        self._bound: set[Var] = set()  # variables bound to a value that comes from data

    def outermost(self, stmt: Stmt) -> Stmt:
        """Rewrite the body of a kernel; checks that reach its root block come first in it."""
        if isinstance(stmt, SBlockRealize) and not stmt.iter_values:
            inner, checks = self._stmt(stmt.block.body)
            return _realize(stmt, stmt.block.init, _prepend_checks(checks, inner))
        inner, checks = self._stmt(stmt)
        return _prepend_checks(checks, inner)

    def _stmt(self, stmt: Stmt) -> tuple[Stmt, list[_Check]]:
        if isinstance(stmt, SeqStmt):
            return self._sequence(stmt)
        if isinstance(stmt, For):
            return self._loop(stmt)
        if isinstance(stmt, SBlockRealize):
            return self._block(stmt)
        if isinstance(stmt, IfThenElse):
            return self._branches(stmt)
        if isinstance(stmt, AttrStmt):
            body, checks = self._stmt(stmt.body)
            return AttrStmt(stmt.node, stmt.attr_key, stmt.value, body), checks
        values = self._values()
        if isinstance(stmt, BufferStore):
            indices = [values.rewrite(index) for index in stmt.indices]
            indices = values.indices(stmt.buffer, indices) or indices
            value = values.rewrite(stmt.value)
            return self._leaf(stmt, BufferStore(stmt.buffer, value, indices), values)
        if isinstance(stmt, Evaluate):
            return self._leaf(stmt, Evaluate(values.rewrite(stmt.value)), values)
        if isinstance(stmt, Bind):
            value = values.rewrite(stmt.value)
            if loads(value) or any(uses(value, var) for var in self._bound):
                self._bound.add(stmt.var)
            return self._leaf(stmt, Bind(stmt.var, value), values)
        if isinstance(stmt, (tirx.AllocBuffer, tirx.DeclBuffer)):
            return stmt, []
        raise NoMatch(type(stmt).__name__)

    def _values(self) -> ValueChecks:
        return ValueChecks(self._proofs, self._mode, lambda var: var in self._bound)

    def _leaf(self, before: Stmt, after: Stmt, values: ValueChecks) -> tuple[Stmt, list[_Check]]:
        same = tvm_ffi.structural_equal(before, after, map_free_vars=False)
        self.rewrote = self.rewrote or not same
        return before if same else after, self._checks(values)

    def _checks(self, values: ValueChecks) -> list[_Check]:
        self.reasons.update(demand.reason for demand in values.demands)
        if self._mode != "fail":
            return []
        found = []
        for demand in values.demands:
            stmt: Stmt = IfThenElse(Not(demand.met), Evaluate(tirx.tvm_throw_last_error()), None)
            for condition in reversed(demand.conditions):
                stmt = IfThenElse(condition, stmt, None)
            found.append(_Check.of(stmt))
        return _distinct(found)

    def _sequence(self, stmt: SeqStmt) -> tuple[Stmt, list[_Check]]:
        parts: list[Stmt] = []
        above: list[_Check] = []
        bindings: dict[Var, Expr] = {}
        written = _written_buffers(stmt)
        for part in stmt.seq:
            inner, checks = self._stmt(part)
            moved = [not check.reads & written for check in checks]
            above += [check.with_values(bindings) for check, moves in zip(checks, moved) if moves]
            parts.append(_prepend_checks([check for check, moves in zip(checks, moved) if not moves], inner))
            if isinstance(part, Bind):
                bindings[part.var] = replaced(inner.value, bindings)
        return sequence([each for part in parts for each in statements(part)]), _distinct(above)

    def _loop(self, stmt: For) -> tuple[Stmt, list[_Check]]:
        values = self._values()
        extent, least = values.rewrite(stmt.extent), values.rewrite(stmt.min)
        own = self._checks(values)
        self._proofs.bind(stmt.loop_var, least, extent)
        body, checks = self._stmt(stmt.body)
        written = _written_buffers(stmt.body)
        inside = [check for check in checks if check.reads & written]
        loop = with_fields(stmt, min=least, extent=extent, body=_prepend_checks(inside, body))
        if inside and stmt.kind == tirx.ForKind.VECTORIZED:
            raise NoMatch("a vectorised loop that computes its own indices")
        return loop, _distinct([*own, *(_loop_check(stmt, check) for check in checks if not check.reads & written)])

    def _block(self, stmt: SBlockRealize) -> tuple[Stmt, list[_Check]]:
        block = stmt.block
        if block.match_buffers:
            raise NoMatch("a block renames buffers")
        for axis in block.iter_vars:
            self._proofs.bind(axis.var, axis.dom.min, axis.dom.extent)
        axes = axis_values(stmt)
        body, checks = self._stmt(block.body)
        init = block.init
        if init is not None:
            init, more = self._stmt(init)
            checks = [*more, *checks]
        written = _written_buffers(block.body)
        inside, above = [], []
        for check in checks:
            if check.reads & written:
                inside.append(check)
            else:
                moved = check.with_values(axes)
                above.append(
                    moved if is_true(stmt.predicate) else _Check.of(IfThenElse(stmt.predicate, moved.stmt, None))
                )
        return _realize(stmt, init, _prepend_checks(inside, body)), _distinct(above)

    def _branches(self, stmt: IfThenElse) -> tuple[Stmt, list[_Check]]:
        values = self._values()
        condition = values.rewrite(stmt.condition)
        above = self._checks(values)
        cases: list[Stmt | None] = []
        written = _written_buffers(stmt)
        for case, holds in ((stmt.then_case, condition), (stmt.else_case, Not(condition))):
            if case is None:
                cases.append(None)
                continue
            inner, checks = self._stmt(case)
            guarded = [(check, _Check.of(IfThenElse(holds, check.stmt, None))) for check in checks]
            above += [outer for _, outer in guarded if not outer.reads & written]
            cases.append(_prepend_checks([check for check, outer in guarded if outer.reads & written], inner))
        return IfThenElse(condition, *cases), _distinct(above)


def _loop_check(loop: For, check: _Check) -> _Check:
    """Return a check outside of a loop: in a loop of its own if it depends on the iteration, or if there may be none."""
    runs = isinstance(loop.extent, IntImm) and int(loop.extent) > 0
    if runs and not uses(check.stmt, loop.loop_var):
        return check
    var = Var(loop.loop_var.name, loop.loop_var.ty)
    inner = replaced(check.stmt, {loop.loop_var: var})
    return _Check.of(For(var, loop.min, loop.extent, _SERIAL, inner, step=loop.step))


def _realize(stmt: SBlockRealize, init: Stmt | None, body: Stmt) -> SBlockRealize:
    """Return a block with another body."""
    return SBlockRealize(stmt.iter_values, stmt.predicate, with_fields(stmt.block, body=body, init=init))


def _prepend_checks(checks: Iterable[_Check], stmt: Stmt) -> Stmt:
    """Return a statement after its checks."""
    before = [check.stmt for check in checks]
    return sequence([*before, *statements(stmt)]) if before else stmt


def _distinct(checks: list[_Check]) -> list[_Check]:
    """Drop repeated checks."""
    found: list[_Check] = []
    for check in checks:
        if not any(tvm_ffi.structural_equal(check.stmt, each.stmt, map_free_vars=False) for each in found):
            found.append(check)
    return found


def _written_buffers(stmt: Stmt) -> frozenset[Var]:
    """Return the buffers a statement may write: those whose address it takes, too."""
    return frozenset(store.buffer for store in collect(stmt, BufferStore)) | buffers_with_addresses(stmt)
