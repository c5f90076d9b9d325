"""Read a Relax graph as operations, its operators sorted into kinds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from tvm import relax
from tvm.ir import GenericConst, IRModule, Op

from ...frontend.relax.loop_kernel import ITERATIONS
from ...tir.expressions import dtype_bytes
from .features import Operation, OperatorGraph, features

_KIND_OF = {
    name: kind
    for kind, names in {
        "convolution": "conv1d conv2d conv3d conv1d_transpose conv2d_transpose conv3d_transpose",
        "matmul": "matmul einsum linear",
        "normalise": "batch_norm layer_norm group_norm instance_norm rms_norm softmax log_softmax",
        "pool": "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d",
        "reduce": "sum mean max min prod std variance argmax argmin cumsum cumprod adaptive_avg_pool1d "
        "adaptive_avg_pool2d adaptive_avg_pool3d global_avg_pool2d",
        "concat": "concat stack",
        "move": "reshape permute_dims expand_dims squeeze flatten layout_transform broadcast_to split strided_slice "
        "tile repeat pad flip shape_to_tensor tensor_to_shape dynamic_strided_slice resize2d",
        "gather": "take gather_elements gather_nd scatter_elements scatter_nd index_tensor one_hot take_along_axis",
    }.items()
    for name in names.split()
}


def graph_features(module: IRModule) -> tuple[float, ...]:
    """Compute the features of an imported graph's main function."""
    return features(*read_graph(module))


def read_graph(module: IRModule) -> OperatorGraph:
    """Read the operations of an imported graph's main function. A TIR call counts as "other"."""
    main = module["main"]
    values: dict[relax.Var, tuple[int, ...]] = {var: (number,) for number, var in enumerate(main.params)}
    inputs = [_nbytes(var.ty) for var in main.params]
    operations: list[Operation] = []
    constants: dict[GenericConst, int] = {}
    weights = 0
    for binding in (binding for block in main.body.blocks for binding in block.bindings):
        value = binding.value
        if not isinstance(value, relax.Call):
            values[binding.var] = _reads(value, values)
            continue
        read = list(_constants(value.args))
        weights += sum(_nbytes(each.ty) for each in read)
        reads = tuple(number for each in value.args for number in _reads(each, values))
        values[binding.var] = (len(inputs) + len(operations),)
        operations.append(
            Operation(
                _kind(value, binding.var), reads, _nbytes(binding.var.ty), _name(value, module), _shape(binding.var.ty),
                tuple(constants.setdefault(each, len(constants)) for each in read), _depthwise(value),
            )
        )  # fmt: skip
    return OperatorGraph(inputs, operations, _reads(main.body.body, values), weights)


def _kind(call: relax.Call, result: relax.Var) -> str:
    operator = _operator(call)
    if operator in ("", "call_tir"):
        return "other"
    known = _KIND_OF.get(operator)
    return known or ("element-wise" if isinstance(result.ty, relax.TensorType) else "other")


def _reads(value: object, values: dict[relax.Var, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the numbers of the values in an expression; constants have none."""
    if isinstance(value, relax.Var):
        return values.get(value, ())
    if isinstance(value, relax.TupleGetItem):
        return _reads(value.tuple_value, values)
    if isinstance(value, relax.Tuple):
        return tuple(number for field in value.fields for number in _reads(field, values))
    return ()


def _constants(arguments: Iterable[object]) -> Iterator[GenericConst]:
    """Yield the constants among the arguments of a call."""
    for each in arguments:
        if isinstance(each, GenericConst):
            yield each
        elif isinstance(each, relax.Tuple):
            yield from _constants(each.fields)


def _operator(call: relax.Call) -> str:
    """Return the operator's name without its namespace; empty for a call of a function."""
    return call.op.name.rpartition(".")[2] if isinstance(call.op, Op) else ""


def _name(call: relax.Call, module: IRModule) -> str:
    """Return the operator's name; `recurrent` for a kernel with a loop over steps, each of which reads the last."""
    name = _operator(call)
    if name != "call_tir":
        return name
    kernel = module[call.args[0]]
    return "recurrent" if kernel.attrs and ITERATIONS in kernel.attrs else name


def _depthwise(call: relax.Call) -> bool:
    """Tell whether a convolution's groups read one channel each; its weights are (outputs, channels a group, …)."""
    if getattr(call.attrs, "groups", 1) < 2 or len(call.args) < 2:
        return False
    shape = _shape(call.args[1].ty)
    return len(shape) > 2 and shape[1] == 1


def _nbytes(kind: object) -> int:
    """Return the bytes of a tensor type of static shape; 0 for any other type (shapes, for one)."""
    if isinstance(kind, relax.TupleType):
        return sum(_nbytes(field) for field in kind.fields)
    if not isinstance(kind, relax.TensorType) or kind.shape is None or not _static(kind):
        return 0
    return math.prod(_shape(kind)) * dtype_bytes(str(kind.dtype))


def _shape(kind: object) -> tuple[int, ...]:
    """Return the shape of a tensor type, or of a tuple's first field; empty for scalars and dynamic shapes."""
    if isinstance(kind, relax.TupleType) and len(kind.fields):
        kind = kind.fields[0]
    if not isinstance(kind, relax.TensorType) or kind.shape is None or not _static(kind):
        return ()
    return tuple(int(extent) for extent in kind.shape)


def _static(kind: relax.TensorType) -> bool:
    try:
        return all(int(extent) >= 0 for extent in kind.shape)
    except TypeError:  # an extent is a variable, or the shape is one
        return False
