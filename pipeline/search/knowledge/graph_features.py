"""Features of a Relax graph: bindings as operations, operators sorted into kinds."""

from __future__ import annotations

import math
from collections.abc import Iterable

import tvm
from tvm import relax
from tvm.ir import GenericConst, IRModule, Op

from .features import Operation, features

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
    """Compute the features of an imported graph's main function. A TIR call counts as "other"."""
    main = module["main"]
    values: dict[relax.Var, tuple[int, ...]] = {var: (number,) for number, var in enumerate(main.params)}
    inputs = [_nbytes(var.ty) for var in main.params]
    operations: list[Operation] = []
    weights = 0
    for binding in (binding for block in main.body.blocks for binding in block.bindings):
        value = binding.value
        if not isinstance(value, relax.Call):
            values[binding.var] = _reads(value, values)
            continue
        weights += _constants(value.args)
        reads = tuple(number for each in value.args for number in _reads(each, values))
        values[binding.var] = (len(inputs) + len(operations),)
        operations.append(Operation(_kind(value, binding.var), reads, _nbytes(binding.var.ty)))
    return features(inputs, operations, _reads(main.body.body, values), weights)


def _kind(call: relax.Call, result: relax.Var) -> str:
    if not isinstance(call.op, Op) or call.op.name == "relax.call_tir":
        return "other"
    known = _KIND_OF.get(call.op.name.rpartition(".")[2])
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


def _constants(arguments: Iterable[object]) -> int:
    """Sum the bytes of the constants among the arguments of a call."""
    return sum(
        _nbytes(each.ty) if isinstance(each, GenericConst) else _constants(each.fields)
        for each in arguments
        if isinstance(each, (GenericConst, relax.Tuple))
    )


def _nbytes(kind: object) -> int:
    """Return the bytes of a tensor type of static shape; 0 for any other type (shapes, for one)."""
    if isinstance(kind, relax.TupleType):
        return sum(_nbytes(field) for field in kind.fields)
    if not isinstance(kind, relax.TensorType) or kind.shape is None:
        return 0
    try:
        elements = math.prod(int(extent) for extent in kind.shape)
    except TypeError:
        return 0
    return elements * -(-tvm.DataType(str(kind.dtype)).bits // 8)
