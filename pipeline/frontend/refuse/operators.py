"""Refuse unsupported operators, each with the way around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ModelError
from ..canonical.read_onnx import ONNX_DOMAINS, advice_on, all_nodes, node_title, operator_set, refuse

if TYPE_CHECKING:
    import onnx

#: operators of TVM's importer, without sequences and results of unknown size
OPERATORS = frozenset(
    """
    Abs Acos Acosh Add AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization
    BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Clip Concat ConstantOfShape Conv
    ConvInteger ConvTranspose Cos Cosh CumProd CumSum DepthToSpace DequantizeLinear Div Dropout DynamicQuantizeLinear Einsum Elu Equal Erf
    Exp Expand EyeLike Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalLpPool
    GlobalMaxPool Greater GreaterOrEqual GridSample GroupNormalization HardSigmoid HardSwish Hardmax Identity
    InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpPool
    MatMul MatMulInteger Max MaxPool MaxRoiPool MaxUnpool Mean MeanVarianceNormalization Min Mish Mod Mul Neg Not
    OneHot Or PRelu Pad Pow QLinearConv QLinearMatMul QuantizeLinear RMSNormalization RNN Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum
    ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize RoiAlign
    Round Scan ScatterElements ScatterND Selu Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax Softplus Softsign
    SpaceToDepth Split Sqrt Squeeze Sub Sum Tan Tanh ThresholdedRelu Tile TopK Transpose Trilu Unsqueeze Where Xor
    """.split()
)
_SIZE = "Cut the model before it: the size of its result depends on the data."
#: in subgraphs; `canonical/lengths` bounds them elsewhere
HINTS = dict.fromkeys(("Compress", "NonMaxSuppression", "NonZero", "Unique"), _SIZE)


def refuse_foreign_domains(model: onnx.ModelProto) -> None:
    """Refuse operators of domains other than ONNX's own: raise ModelError for the first node.

    TVM looks operators up by name alone, so `my::Relu` would silently become Relu. Functions defined in the model
    must have been inlined. The long name of ONNX's own domain is shortened.
    """
    for node in all_nodes(model.graph):
        if node.domain not in ONNX_DOMAINS:
            refuse(node, f"is of the domain '{node.domain}', which cannot be compiled", advice_on(node.domain))
        node.domain = ""
    version = operator_set(model.opset_import)
    del model.opset_import[:]
    model.opset_import.add(domain="", version=version)


def refuse_unsupported(model: onnx.ModelProto) -> None:
    """Refuse operators outside `OPERATORS`: raise ModelError naming the first node of each."""
    first: dict[str, onnx.NodeProto] = {}
    for node in all_nodes(model.graph):
        if node.op_type not in OPERATORS:
            first.setdefault(node.op_type, node)
    if first:
        said = ", ".join(node_title(node) for node in first.values())
        hints = [HINTS[op] for op in first if op in HINTS]
        raise ModelError(
            f"The model holds {'an operator' if len(first) == 1 else 'operators'} that cannot be compiled: {said}.",
            hints[0] if hints else "Replace or remove it before exporting the model.",
        )
