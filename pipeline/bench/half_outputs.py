"""float16 results handed out as they are: what the published winners do, and passfit does nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ..passes.base import Level, ModulePass

if TYPE_CHECKING:
    from tvm.ir import IRModule


@dataclass(frozen=True)
class HalfOutputs(ModulePass):
    """Drops the casts to float32 in front of outputs. It changes the signature, so it is in no catalogue."""

    name = "half-outputs"
    summary = "hands out float16 results as they are"
    levels = frozenset({Level.GRAPH})
    lossy: ClassVar[bool] = True

    def apply(self, module: IRModule) -> IRModule:
        from tvm import relax
        from tvm.ir import Op

        astype = Op.get("relax.astype")
        main = module["main"]
        bound = {each.var: each.value for block in main.body.blocks for each in block.bindings}

        def uncast(value: relax.Expr) -> relax.Expr:
            source = bound.get(value)
            while isinstance(source, relax.Var):
                value, source = source, bound.get(source)
            if isinstance(source, relax.Call) and source.op == astype and str(source.args[0].ty.dtype) == "float16":
                return source.args[0]
            return value

        builder = relax.BlockBuilder()
        with builder.function("main", list(main.params), attrs=dict(main.attrs)):
            with builder.dataflow():
                for block in main.body.blocks:
                    for each in block.bindings:
                        builder.emit_normalized(relax.VarBinding(each.var, each.value))
                result = bound.get(main.body.body, main.body.body)
                many = isinstance(result, relax.Tuple)
                fields = [uncast(field) for field in (result.fields if many else [main.body.body])]
                output = builder.emit_output(relax.Tuple(fields) if many else fields[0])
            builder.emit_func_output(output)
        changed = module.clone() if hasattr(module, "clone") else type(module)(dict(module.functions))
        changed.update_func(module.get_global_var("main"), builder.get()["main"])
        return changed
