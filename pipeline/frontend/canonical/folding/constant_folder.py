"""Compute constants by the rules of the model's operator set, in onnxscript's folder.

onnxscript computes by ONNX's evaluator in Python, whose results are right where data only move, and in plain arithmetic
(bit for bit those of ONNX Runtime, and without the millisecond that a session costs). ONNX Runtime computes the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnxscript.optimizer._constant_folding import FoldConstantsPass, Replacement

from .evaluate import evaluate

#: operators that move data, or whose every result is one rounded operation, or none
_PLAIN = frozenset(
    """
    Abs Add And Concat ConstantOfShape Equal Expand Flatten Gather GatherElements GatherND Greater GreaterOrEqual Identity Less
    LessOrEqual Mul Neg Not Or Reshape Shape Size Slice Squeeze Sub Tile Transpose Unsqueeze Where Xor
    """.split()
)
#: the set from which on operands are broadcast without attributes
_BROADCASTS = 7


class ConstantFolder(FoldConstantsPass):
    """onnxscript's pass; `folds` chooses among nodes of constants."""

    def __init__(self, folds: Callable[[ir.Node], bool]) -> None:
        super().__init__(
            shape_inference=True, input_size_limit=0, output_size_limit=512 * 512, should_fold=self._compute_by_numpy
        )
        self._folds = folds
        self._left: Any = None

    def _do_inference(self, node: ir.Node) -> None:
        """Infer the results of a node whose types are open; inference of the graph found the others."""
        if not all(
            value.type is not None and value.shape is not None and value.shape.is_static() for value in node.outputs
        ):
            super()._do_inference(node)

    def _compute_by_numpy(self, node: ir.Node) -> bool:
        """Tell onnxscript to compute a plain node itself; mark any other one."""
        if not self._folds(node):
            return False
        self._left = node
        plain = node.op_type in _PLAIN and not _inserts_several(node)
        return self._set() >= _BROADCASTS and (plain or _is_plain_cast(node) or _is_half_range(node))

    def process_node(self, node: ir.Node, is_function: bool) -> Replacement | None:
        """Process a node; compute one of constants by ONNX Runtime if onnxscript does not."""
        if node.op_type == "CastLike" and "saturate" in node.attributes:
            return None  # onnxscript makes a Cast without it
        replacement = super().process_node(node, is_function)
        if (numbers := _whole_numbers(replacement)) is not None:
            return self._constants(node, [numbers])
        if replacement is not None or self._left is not node:
            return replacement
        constants = {value.name: value.const_value for value in node.inputs if value is not None}
        tensors = [ir.serde.serialize_tensor(tensor) for tensor in constants.values() if tensor is not None]
        for tensor, name in zip(tensors, constants, strict=True):
            tensor.name = name or ""
        results = evaluate(ir.serde.serialize_node(node), tensors, self._set())
        return None if isinstance(results, str) else self._constants(node, results)

    def new_initializer(self, node: ir.Node, array: np.ndarray) -> ir.Value | None:
        """Return the result of `node` as an initializer; strings are tensors of bytes, which onnxscript does not build."""
        value = super().new_initializer(node, array)
        if value is not None and array.dtype.kind in "OSU":
            texts = [each.encode() if isinstance(each, str) else each for each in array.reshape(-1).tolist()]
            value.const_value = ir.StringTensor(texts, shape=ir.Shape(array.shape), name=value.name)
        return value

    def _constants(self, node: ir.Node, arrays: Sequence[np.ndarray]) -> Replacement | None:
        """Register the results of a node, in the order of its named outputs, as initializers."""
        values, left = [], iter(arrays)
        for output in node.outputs:
            value = self.new_initializer(node, next(left)) if output.name else ir.Value(name="")
            if value is None:
                return None
            value.name = output.name
            values.append(value)
        assert node.graph is not None
        for value in values:
            if value.name:
                node.graph.register_initializer(value)
        return Replacement(values, [])

    def _set(self) -> int:
        return self._opset_imports.get("", 1)


def _whole_numbers(replacement: Replacement | None) -> np.ndarray | None:
    """Return the integers of a Constant that onnxscript made: old operator sets lack its attribute and dtype."""
    made = replacement.new_nodes[0] if replacement and len(replacement.new_nodes) == 1 else None
    found = [made.attributes[name].value for name in ("value_int", "value_ints") if made and name in made.attributes]
    return np.asarray(found[0], np.int64) if found else None


def _inserts_several(node: ir.Node) -> bool:
    """Return whether an Unsqueeze has several axes, which ONNX's evaluator inserts one after the other as they come."""
    if node.op_type != "Unsqueeze":
        return False
    if "axes" in node.attributes:
        return len(node.attributes["axes"].as_ints()) > 1
    axes = node.inputs[1].const_value if node.inputs[1] is not None else None
    return axes is None or axes.size > 1


def _is_half_range(node: ir.Node) -> bool:
    """Return whether a node counts in 16-bit floats, for which ONNX Runtime has no kernel."""
    return (
        node.op_type == "Range"
        and node.inputs[0] is not None
        and node.inputs[0].dtype in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
    )


def _is_plain_cast(node: ir.Node) -> bool:
    """Return whether a node casts integers or truth values to integers: every implementation wraps them."""
    if node.op_type != "Cast" or node.inputs[0] is None:
        return False
    given, wanted = node.inputs[0].dtype, node.outputs[0].dtype
    return given is not None and wanted is not None and all(_is_whole(each) for each in (given, wanted))


def _is_whole(dtype: ir.DataType) -> bool:
    return dtype.is_integer() and dtype.bitwidth >= 8
