"""Trace kernels to the ONNX nodes they compute.

The importer names every variable after the node that emitted it: `onnx12_` holds a result of node 12. Such names
live through legalisation, folding and canonicalisation, but fusion loses them, and makes one function of groups that
look alike. So the variables before fusion and those after it are matched by value: a value is the callee with its
arguments' values, down to inputs and constants (value numbering), and a fused call is looked into.

Imports TVM lazily; a graph made by other means has no names, hence no nodes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .plain_dequantisation import plain_dequantisations

if TYPE_CHECKING:
    import onnx
    import tvm
    from tvm import relax

#: elements up to which constants are compared
_SMALL = 64
_NAMED = re.compile(r"onnx(\d+)_\d*")

#: a value: ("input", position), ("constant", tensor) or (callee, arguments …), each interned to a number
Key = tuple[object, ...]


def variable_name(index: int) -> str:
    """Return the name hint for results of the ONNX node `index`."""
    return f"onnx{index}_"


def provenance(model: onnx.ModelProto, before: tvm.IRModule, after: tvm.IRModule) -> dict[str, tuple[str, ...]]:
    """Return the names of the ONNX nodes behind each variable of `after["main"]`.

    The names are in the model's order.

    `before` is the module just before FuseOps, `after` the one just after it (or the same one, if nothing is fused).
    FuseTIR and the passes that follow keep the variables' names, so the result also serves for the module with kernels
    in destination-passing form: there, look up the variable bound to the `alloc_tensor` a kernel writes.
    """
    model = plain_dequantisations(model)  # the nodes that were imported
    numbers: dict[Key, int] = {}
    ordered: list[tuple[int, int | None]] = []
    for variable, value, _ in _values(before, numbers, {}):
        named = _NAMED.fullmatch(variable)
        ordered.append((value, int(named[1]) if named else None))
    nodes = _nodes_of_values(ordered, len(model.graph.node))
    found: dict[str, set[int]] = {}
    for variable, _, inside in _values(after, numbers, {}):
        # Names are not unique: a tuple and the part taken from it may share one.
        found.setdefault(variable, set()).update(*(nodes.get(value, set()) for value in inside))
    return {variable: tuple(model.graph.node[index].name for index in sorted(each)) for variable, each in found.items()}


def _nodes_of_values(ordered: list[tuple[int, int | None]], count: int) -> dict[int, set[int]]:
    """Return the nodes of every value; `ordered` holds (value, node or None) per binding.

    Values without a name lie between two with one. They belong to the nodes in between that left no name (with tuples
    as results, say), else they were made on the way to the next node's result.
    """
    named = {node for _, node in ordered if node is not None}
    nodes: dict[int, set[int]] = {}
    waiting: list[int] = []
    last = -1
    for value, node in [*ordered, (-1, count)]:
        if node is None:
            waiting.append(value)
            continue
        between = set(range(last + 1, node)) - named
        for each in waiting:
            nodes.setdefault(each, set()).update(between or ({node} if node < count else {last}))
        nodes.setdefault(value, set()).add(node)
        waiting, last = [], node
    return nodes


def _values(
    module: tvm.IRModule, numbers: dict[Key, int], known: dict[relax.Var, int]
) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    """Yield each variable of `main`: its name, its value's number, and the numbers of values inside."""
    main = module["main"]
    made: dict[int, tuple[int, ...]] = {}
    for position, parameter in enumerate(main.params):
        known[parameter] = _intern(numbers, ("input", position))
    for block in main.body.blocks:
        for binding in block.bindings:
            inside: list[int] = []
            known[binding.var] = number = _number(module, binding.value, numbers, known, inside)
            # A variable that is only another name (`gv = onnx6_`) stands for the same nodes.
            made[number] = tuple(inside) or made.get(number, ())
            yield binding.var.name, number, made[number]


def _number(
    module: tvm.IRModule,
    expr: relax.Expr,
    numbers: dict[Key, int],
    known: dict[relax.Var, int],
    inside: list[int],
) -> int:
    """Return the number of an expression's value; add the calls made on the way to `inside`."""
    from tvm import ir, relax

    if isinstance(expr, relax.Var):
        return known[expr] if expr in known else _intern(numbers, ("free", expr.name))
    if isinstance(expr, relax.Tuple):
        fields = [_number(module, field, numbers, known, inside) for field in expr.fields]
        number = _intern(numbers, ("tuple", *fields))
        for index, field in enumerate(fields):
            numbers.setdefault(("item", index, number), field)  # an item taken from it is the field itself
        return number
    if isinstance(expr, relax.TupleGetItem):
        return _intern(numbers, ("item", expr.index, _number(module, expr.tuple_value, numbers, known, inside)))
    if isinstance(expr, relax.Call):
        arguments = [_number(module, argument, numbers, known, inside) for argument in expr.args]
        function = module[expr.op] if isinstance(expr.op, ir.GlobalVar) else None
        if isinstance(function, relax.Function):
            return _inline(module, function, arguments, numbers, inside)
        number = _intern(numbers, ("call", _callee(expr), *arguments))
        inside.append(number)
        return number
    if isinstance(expr, ir.GlobalVar):
        return _intern(numbers, ("function", expr.name_hint))
    if isinstance(expr, ir.GenericConst):
        return _intern(numbers, ("constant", *_content(expr.value)))
    return _intern(numbers, ("other", str(expr)))


def _inline(
    module: tvm.IRModule, function: relax.Function, arguments: list[int], numbers: dict[Key, int], inside: list[int]
) -> int:
    """Return the number of a fused call's value, computed through the function's body."""
    known = dict(zip(function.params, arguments))
    for block in function.body.blocks:
        for binding in block.bindings:
            known[binding.var] = _number(module, binding.value, numbers, known, inside)
    return _number(module, function.body.body, numbers, known, inside)


def _callee(call: relax.Call) -> str:
    """Return the callee and its attributes, equal for equal calls before and after fusion."""
    name = getattr(call.op, "name", None) or getattr(call.op, "name_hint", None) or "function"
    return f"{name} {call.attrs} {[str(ty) for ty in call.ty_args]}"


def _content(tensor: tvm.runtime.Tensor) -> Key:
    """Return the content of a small tensor, else its handle, which equals another one of the same tensor.

    Passes hand tensors on, but functions that look alike become one, with the constants of the first.
    """
    if math.prod(tensor.shape) > _SMALL:
        return (tensor,)
    return str(tensor.dtype), tuple(tensor.shape), tensor.numpy().tobytes()


def _intern(numbers: dict[Key, int], key: Key) -> int:
    """Return the number of a key, a new one for a new key."""
    return numbers.setdefault(key, len(numbers))
