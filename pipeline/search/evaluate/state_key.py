"""Key search states by the structure of their graphs: equal up to names of variables and values of constants."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

import tvm
import tvm_ffi
from tvm import relax
from tvm.ir import BaseFunc, Call, GenericConst, GlobalVar, IRModule, Op, Var
from tvm.tirx import FloatImm, For, IntImm, PrimFunc

from ...tir.tensor_values import tensor_digest

_SKIP = tvm_ffi.structural.WalkResult.SKIP
#: fields that TVM's walk does not visit, since they are not nodes
_PLAIN_FIELDS: tuple[tuple[type, str], ...] = (
    (IntImm, "value"), (FloatImm, "value"), (For, "kind"), (relax.TupleGetItem, "index"), (GlobalVar, "name_hint"),
)  # fmt: skip


class StateKeys:
    """Compute the keys of modules; kernels, attributes and constants already seen are not read again.

    TVM's structural hash combines small integers so that graphs of different shapes often collide, and two states
    would be taken for one. A key adds every node in order: its class, numbers, attributes, and a variable's or a
    constant's first place. Of the values of constants only their equality counts, since equal ones share flash.
    Keys are the same in every process.
    """

    def __init__(self) -> None:
        # by address; holding the node keeps its address from being given to another one
        self._known: dict[int, tuple[object, str]] = {}

    def key(self, module: IRModule) -> int:
        """Return a number of 128 bits."""
        return self.key_and_contents(module)[0]

    def key_and_contents(self, module: IRModule) -> tuple[int, str]:
        """Return the key, and a digest of the values of constants, which it leaves out."""
        functions = {var.name_hint: function for var, function in module.functions.items()}
        contents: dict[str, int] = {}
        parts = [(name, self._function(functions[name], contents)) for name in sorted(functions)]
        return int(_digest(parts), 16), _digest(*contents)

    def _function(self, function: BaseFunc, contents: dict[str, int]) -> str:
        if isinstance(function, PrimFunc):  # its digest depends on nothing else
            return self._once(function, lambda kernel: self._walk(kernel, {}))
        return self._walk(function, contents)

    def _walk(self, function: BaseFunc, contents: dict[str, int]) -> str:
        """Digest the nodes of a function; `contents` numbers the distinct constants of the module."""
        words: list[object] = []
        places: dict[int, int] = {}

        def variable(var: Var) -> object:
            address, place = hash(var), len(places)
            words.append(places.setdefault(address, place))
            return None if places[address] == place else _SKIP

        def constant(each: GenericConst) -> None:
            words.append(contents.setdefault(self._once(each.value, _content), len(contents)))

        def call(each: Call) -> None:
            words.append(each.op.name if isinstance(each.op, Op) else "call")
            if each.attrs is not None:
                words.append(self._once(each.attrs, tvm.ir.save_json))

        def tensor_type(each: relax.TensorType) -> object:
            words.append(
                self._once(each, _type)
            )  # equal types are often one object, and printing one takes longest here
            return _SKIP

        def field(each: Any, name: str) -> None:
            words.append(getattr(each, name))

        callbacks = [
            *((kind, partial(field, name=name)) for kind, name in _PLAIN_FIELDS),
            (Var, variable), (GenericConst, constant), (Call, call), (relax.TensorType, tensor_type),
            (object, lambda each: words.append(_kind(each))),
        ]  # fmt: skip
        tvm_ffi.structural_walk(function, callbacks, order="pre")
        # the hash adds what the walk passes over, such as annotations; a function alone refers to others by free variables
        return _digest(tvm_ffi.structural_hash(function, map_free_vars=True, skip_tensor_content=True), words)

    def _once(self, node: Any, compute: Callable[[Any], str]) -> str:
        address = node.__chandle__()
        if address not in self._known:
            self._known[address] = node, compute(node)
        return self._known[address][1]


def state_key(module: IRModule) -> int:
    """Return the key of one module, see `StateKeys`."""
    return StateKeys().key(module)


def _content(tensor: tvm.runtime.Tensor) -> str:
    return _digest(tuple(map(int, tensor.shape)), str(tensor.dtype), tensor_digest(tensor))


def _type(each: relax.TensorType) -> str:
    """Write a type; TVM's printer takes ten times as long, and is left to those of unusual shapes and places."""
    shape = each.shape
    if not isinstance(shape, relax.ShapeExpr) or each.vdevice is not None:
        return repr(each)
    extents = [extent.value if isinstance(extent, IntImm) else None for extent in shape.values]
    return repr(each) if None in extents else f"{extents} {each.dtype}"


def _kind(each: Any) -> object:
    """Return the class of a node, the length of a list, or a plain value itself."""
    kind = type(each)
    if kind not in _NAMES:
        _NAMES[kind] = _name(kind)
    name = _NAMES[kind]
    return len(each) if name is None else name or each


#: by class, see `_name`: the check of an abstract class takes long
_NAMES: dict[type, str | None] = {}


def _name(kind: type) -> str | None:
    """Return the name of a class of nodes, None for lists, an empty one for plain values."""
    if issubclass(kind, tvm_ffi.Array | tvm_ffi.Map):
        return None
    return kind.__name__ if issubclass(kind, tvm_ffi.Object) else ""


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
