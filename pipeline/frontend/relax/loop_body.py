"""Lower the body of a loop to kernels, by TVM's own compile flow: legalize, fuse, destination-passing form."""

from __future__ import annotations

from dataclasses import dataclass

import tvm
from tvm import relax
from tvm.ir import GenericConst, GlobalVar, IRModule, Op
from tvm.tirx import PrimFunc

from ..canonical.node_form import UnsupportedForm
from .topk_kernel import legalize_topk


@dataclass(frozen=True)
class BodyStep:
    """Kernel of a body by TVM's `name`, with its operands and results: values by number."""

    name: str
    kernel: PrimFunc
    values: tuple[int, ...]


@dataclass(frozen=True)
class LoopBody:
    """Kernels of a body in order; `shapes` and `dtypes` are those of all values.

    The first values are the inputs. `constants` are arrays by value, `made` the values that kernels write. `outputs` are
    values.
    """

    steps: tuple[BodyStep, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    constants: dict[int, relax.Expr]
    made: frozenset[int]
    outputs: tuple[int, ...]


def lower_body(module: IRModule) -> LoopBody:
    """Lower the imported body of a loop. Raises UnsupportedForm for an operator that only TVM's runtime executes."""
    flow = [
        relax.transform.LegalizeOps({"relax.topk": legalize_topk}), relax.transform.AnnotateTIROpPattern(), relax.transform.FoldConstant(),
        relax.transform.FuseOps(), relax.transform.FuseTIR(), relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(), relax.transform.CallTIRRewrite(),
    ]  # fmt: skip
    with tvm.target.Target("llvm"):
        return _Reader(tvm.transform.Sequential(flow)(module)).body()


class _Reader:
    def __init__(self, module: IRModule):
        self._module, self._main = module, module["main"]
        self._shapes: list[tuple[int, ...]] = []
        self._dtypes: list[str] = []
        self._constants: dict[int, relax.Expr] = {}
        self._numbers: dict[relax.Expr, int | tuple[int, ...]] = {}
        self._steps: list[BodyStep] = []

    def body(self) -> LoopBody:
        for param in self._main.params:
            self._numbers[param] = self._value(param.ty)
        first = len(self._shapes)
        for block in self._main.body.blocks:
            for binding in block.bindings:
                self._numbers[binding.var] = self._bound(binding.value)
        found = self._known(self._main.body.body)
        outputs = found if isinstance(found, tuple) else (found,)
        made = frozenset(range(first, len(self._shapes))) - set(self._constants)
        return LoopBody(tuple(self._steps), tuple(self._shapes), tuple(self._dtypes), self._constants, made, outputs)

    def _value(self, type_: relax.TensorType) -> int:
        self._shapes.append(tuple(int(extent) for extent in type_.shape))
        self._dtypes.append(str(type_.dtype))
        return len(self._shapes) - 1

    def _known(self, expr: relax.Expr) -> int | tuple[int, ...]:
        """Return the value, or the values of a tuple, behind an expression."""
        if isinstance(expr, relax.Tuple):
            return tuple(map(self._one, expr.fields))
        if isinstance(expr, relax.TupleGetItem):
            whole = self._known(expr.tuple_value)
            assert isinstance(whole, tuple)
            return whole[expr.index]
        if isinstance(expr, GenericConst):
            number = self._value(expr.ty)
            self._constants[number] = expr
            return number
        return self._numbers[expr]

    def _one(self, expr: relax.Expr) -> int:
        found = self._known(expr)
        assert isinstance(found, int)
        return found

    def _bound(self, expr: relax.Expr) -> int | tuple[int, ...]:
        if not isinstance(expr, relax.Call):
            return self._known(expr)
        if isinstance(expr.op, GlobalVar):
            self._steps.append(
                BodyStep(str(expr.op.name_hint), self._module[expr.op], tuple(map(self._one, expr.args)))
            )
            return ()
        if isinstance(expr.op, Op) and expr.op.name == "relax.builtin.alloc_tensor":
            return self._value(expr.ty)
        raise UnsupportedForm("the body of a loop holds an operator that only TVM's runtime executes")
