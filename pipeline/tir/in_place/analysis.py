"""Find the operands of a kernel that may alias its results: evaluate its indices over all iterations.

    for i: y[i] = max(x[i], 0)                               x may alias y
    for i: y[i] = x1[i - n] if n <= i else x0[i]             x0 and x1 may alias y, and then nothing is left to do
    for i: y[i] = x[abs(i - 2)]                              x may lie in y, which keeps its elements
    for i, j: y[i, j] = x[j, i]                              x may not: y[0, 1] would be gone before it is read

An operand may alias a result if each of its elements is read only to write the one element at its place, and no element
of the result is written twice; or if the result keeps it, see `kept_elements`. This holds for any order of iterations.
Operands read for other elements, before the result is written over them, depend on the order: see `ordered_elements`.
So the kernel is analysed as it is compiled: after scheduling. Code the analysis does not understand shares nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import tvm_ffi
from tvm.ir import Call, Expr, TensorLoad, Var
from tvm.tirx import PrimFunc, Select, Stmt

from ...program import DTYPE_BYTES, Overlay
from ..expressions import choice_of, collect, element_bytes, loads, parts
from ..index_grid import Grid, Mask, NoMatch, chunks
from ..memoise import memoise_by_structure
from ..stores import Store, leaves, stores
from .kept_elements import kept_shift
from .ordered_elements import end_shift

#: intrinsics that take an address, through which anything could be read or written
_ADDRESSES = ("address_of", "access_ptr")


@dataclass(frozen=True)
class Sharing:
    """Describe the aliasing a kernel allows: see `program.Step` for both kinds of overlay.

    `results` counts the written parameters, which are the last ones.
    """

    results: int = 0
    in_place: tuple[Overlay, ...] = ()
    copies: tuple[Overlay, ...] = ()


@memoise_by_structure
def analyse_sharing(kernel: PrimFunc) -> Sharing:
    """Find the in-place operands and copies of `kernel`.

    It may be scheduled, but not lowered below blocks.
    """
    try:
        found = stores(kernel.body)
    except NoMatch:
        return Sharing()
    params = list(kernel.params)
    results = [n for n, param in enumerate(params) if any(store.buffer.same_as(param) for store in found)]
    reads = len(params) - len(results)
    if results != list(range(reads, len(params))) or not all(map(_is_plain, params)):
        return Sharing()
    shared = _Kernel(kernel.body, params[:reads], params[reads:], found)
    return Sharing(len(results), tuple(shared.in_place()), shared.copies())


def is_kept(kernel: PrimFunc, operand: int, result: Var, shift: int) -> bool:
    """Return whether elements of an operand `shift` bytes into a result are read for other places of it."""
    source, written = kernel.params[operand], [each for each in stores(kernel.body) if each.buffer.same_as(result)]
    flat = flat_shift(reads_of(written, source))
    return flat is None or flat * element_bytes(source) != shift


class _Kernel:
    """Hold a kernel's operands, its results, and all its stores."""

    def __init__(self, body: Stmt, operands: list[Var], results: list[Var], found: list[Store]):
        self.body, self.operands, self.results, self.stores = body, operands, results, found
        self.reads = reads_of(found)
        self.steering = [load for store in found for load in store.steering]
        # one walk of the whole body rules addresses out for all its stores: unrolled kernels have thousands
        self.opaque = takes_addresses(body) and any(takes_address(store) for store in found)
        self._writes_once: dict[int, int | None] = {}

    def in_place(self) -> Iterator[Overlay]:
        if self.opaque:
            return
        for number, operand in enumerate(self.operands):
            readers = self._reads_of(operand)
            for place, result in enumerate(self.results):
                own = [store.buffer.same_as(result) for store, _, _ in readers]
                if not any(own) or self._is_read(result) or self._steers(operand) or not _same_size(operand, result):
                    continue
                shift = flat_shift(readers) if all(own) else None
                if shift is None and all(own):
                    shift = kept_shift(operand, result, self.stores)
                if shift is None or self._written_once(place) is None:
                    shift = self._end_shift(operand, result)
                if shift is not None:
                    yield Overlay(number, place, shift * element_bytes(operand))

    def _end_shift(self, operand: Var, result: Var) -> int | None:
        if operand.ty.dtype != result.ty.dtype or any(
            store.buffer.same_as(result) and _depends_on_data(store) for store in self.stores
        ):
            return None
        return end_shift(self.body, operand, result, self.stores, self._reads_of(operand))

    def copies(self) -> tuple[Overlay, ...]:
        """Return the overlays that turn the kernel into a no-op; empty if it computes."""
        if self.opaque or not all(map(_only_copies, self.stores)) or not self._is_direct():
            return ()
        if any(self._written_once(n) != _elements(result) for n, result in enumerate(self.results)):
            return ()
        found: dict[tuple[int, int], int] = {}
        for number, operand in enumerate(self.operands):
            for place, result in enumerate(self.results):
                readers = [read for read in self._reads_of(operand) if read[0].buffer.same_as(result)]
                if readers:
                    shift = flat_shift(readers)
                    if shift is None or str(operand.ty.dtype) != str(result.ty.dtype):
                        return ()
                    found[number, place] = shift * element_bytes(operand)
        return tuple(Overlay(number, place, shift) for (number, place), shift in found.items())

    def _is_direct(self) -> bool:
        """Return whether all data goes from operands to results, none through an internal buffer."""
        return all(any(load.source.same_as(each) for each in self.operands) for _, load, _ in self.reads) and all(
            any(store.buffer.same_as(each) for each in self.results) for store in self.stores
        )

    def _is_read(self, result: Var) -> bool:
        return bool(self._reads_of(result)) or self._steers(result)

    def _reads_of(self, buffer: Var) -> list[Read]:
        return [read for read in self.reads if read[1].source.same_as(buffer)]

    def _steers(self, buffer: Var) -> bool:
        return any(load.source.same_as(buffer) for load in self.steering)

    def _written_once(self, place: int) -> int | None:
        """Count the elements written of a result; None if one is written twice."""
        if place not in self._writes_once:
            self._writes_once[place] = _written_once(self.results[place], self.stores)
        return self._writes_once[place]


#: a store, a load of its value, and the masks that is evaluated under: (expression, whether it holds)
Read = tuple[Store, TensorLoad, tuple[Mask, ...]]


def reads_of(found: Sequence[Store], source: Var | None = None) -> list[Read]:
    """List the loads of the stores' values, or of `source` alone, each with its masks."""
    reads = ((store, *read) for store in found for read in masked_loads(store))
    return [read for read in reads if source is None or read[1].source.same_as(source)]


def masked_loads(store: Store) -> list[tuple[TensorLoad, tuple[Mask, ...]]]:
    """List the loads of a store's value, each with the masks it is evaluated under."""
    if any(map(choice_of, collect(store.value, Select, Call))):
        return list(_loads_in(store.value, store.masks))
    return [(load, store.masks) for load in loads(store.value)]


def _loads_in(expr: object, masks: tuple) -> Iterator[tuple[TensorLoad, tuple[Mask, ...]]]:
    choice = choice_of(expr)
    if choice is not None:
        condition, then, other = choice
        yield from _loads_in(condition, masks)
        yield from _loads_in(then, (*masks, (condition, True)))
        yield from _loads_in(other, (*masks, (condition, False)))
        return
    if isinstance(expr, TensorLoad):
        yield expr, masks
    for part in parts(expr):
        yield from _loads_in(part, masks)


def _only_copies(store: Store) -> bool:
    chosen = list(leaves(store.value, store.masks))
    conditions = (condition for _, masks in chosen for condition, _ in masks)
    plain = not any(map(loads, (*store.indices, *conditions)))
    return plain and all(isinstance(each, TensorLoad) for each, _ in chosen)


def takes_address(store: Store) -> bool:
    """Return whether a store touches memory beyond its own elements: takes an address or passes a buffer."""
    return any(takes_addresses(expr) for expr in (store.value, *store.indices))


def takes_addresses(part: object) -> bool:
    """Return whether any call in an expression or a statement takes an address or passes a buffer."""
    calls = collect(part, Call)
    names = (str(getattr(each.op, "name", each.op)) for each in calls)
    return any(word in name for name in names for word in _ADDRESSES) or any(
        _is_buffer(argument) for each in calls for argument in each.args
    )


def _is_buffer(expr: Expr) -> bool:
    return isinstance(expr, Var) and hasattr(expr.ty, "data_alignment")


def flat_shift(readers: Sequence[Read]) -> int | None:
    """Return the constant shift, in elements, from each load to its result; None if it varies."""
    shifts: set[int] = set()
    for store, load, masks in readers:
        if not masks and store.iterations > _elements(load.source):
            return None  # some element is read twice
        if _same_place(store, load):
            shifts.add(0)
            continue
        try:
            for grid in chunks(store.loops, store.bindings):
                shifts.update(_shifts(grid, store, load, masks))
                if len(shifts) > 1:
                    return None
        except NoMatch:
            return None
    return shifts.pop() if len(shifts) == 1 else None


def _same_place(store: Store, load: TensorLoad) -> bool:
    if [int(extent) for extent in load.source.ty.shape] != [int(extent) for extent in store.buffer.ty.shape]:
        return False
    return all(tvm_ffi.structural_equal(one, other) for one, other in zip(load.indices, store.indices))


def _shifts(grid: Grid, store: Store, load: TensorLoad, masks: tuple) -> set[int]:
    moves = grid.flat(store.indices, store.buffer) - grid.flat(load.indices, load.source)
    (moves,) = grid.select(masks, moves) if masks else (moves,)
    return {int(moves.min()), int(moves.max())} if moves.size else set()


def _written_once(result: Var, found: list[Store]) -> int | None:
    seen = np.zeros(_elements(result), dtype=bool)
    count = 0
    try:
        for store in found:
            if not store.buffer.same_as(result):
                continue
            if _depends_on_data(store):
                return None
            for grid in chunks(store.loops, store.bindings):
                (places,) = grid.select(store.masks, grid.flat(store.indices, result))
                if places.size and places.min() < 0:
                    return None
                count += places.size
                seen[places] = True
    except (NoMatch, IndexError):
        return None
    return count if count == int(seen.sum()) else None


def _depends_on_data(store: Store) -> bool:
    """Return whether data decides if a store takes place."""
    return any(loads(condition) for condition, _ in store.masks)


def _is_plain(param: Var) -> bool:
    """Return whether a parameter is a compact buffer of known dtype and shape."""
    kind = param.ty
    if not hasattr(kind, "strides"):
        return False
    if str(getattr(kind, "dtype", "")) not in DTYPE_BYTES or list(kind.strides):
        return False
    return all(hasattr(extent, "value") for extent in kind.shape)


def _same_size(operand: Var, result: Var) -> bool:
    """Return whether an element of one buffer can replace an element of the other."""
    one, other = str(operand.ty.dtype), str(result.ty.dtype)
    return one == other or (DTYPE_BYTES[one] == DTYPE_BYTES[other] and "bool" not in (one, other))


def _elements(buffer: Var) -> int:
    return math.prod(int(extent) for extent in buffer.ty.shape)
