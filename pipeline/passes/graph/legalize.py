"""`legalize`: lower operators to kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...tir import HOST
from ..base import Level, ModulePass

if TYPE_CHECKING:
    from tvm.ir import IRModule


class Legalize(ModulePass):
    name = "legalize"
    summary = "lower each operator to a kernel call, dequantising in the readers"

    def apply(self, module: IRModule) -> IRModule:
        import tvm
        from tvm import relax
        from tvm.relax.backend.cpu_generic import pipeline

        from ...frontend.relax.topk_kernel import legalize_topk
        from .lowering.cumulative import CUMULATIVE, legalize_cumulative
        from .lowering.first_extremes import FIRST_EXTREMES, legalize_first_extreme
        from .lowering.grid_sample import legalize_grid_sample
        from .lowering.half_batch_norm import legalize_batch_norm
        from .lowering.half_sums import sum_halves
        from .lowering.infinite_extremes import EXTREMES, legalize_extreme, legalize_max_pool
        from .lowering.scatter import legalize_scatter_elements, legalize_scatter_nd
        from .lowering.serial_loops import serial_loops
        from .lowering.transposed_convolution import legalize_transposed
        from .memoised_legalize import memoised_rules
        from .quantised.inline_dequantisation import inline_dequantisation
        from .quantised.legalize_quantize import legalize_dequantize, legalize_quantize
        from .rules.convolution.geometry import TRANSPOSED
        from .rules.operators import MAX_POOLS

        module = sum_halves(module)
        target = tvm.target.Target(HOST)
        own = dict.fromkeys(TRANSPOSED, legalize_transposed) | dict.fromkeys(EXTREMES, legalize_extreme)
        own |= dict.fromkeys(MAX_POOLS, legalize_max_pool) | dict.fromkeys(FIRST_EXTREMES, legalize_first_extreme)
        own |= {"relax.scatter_elements": legalize_scatter_elements, "relax.scatter_nd": legalize_scatter_nd}
        own |= {
            "relax.quantize": legalize_quantize,
            "relax.dequantize": legalize_dequantize,
            "relax.nn.batch_norm": legalize_batch_norm,
        }
        own |= {"relax.image.grid_sample": legalize_grid_sample}
        own |= dict.fromkeys(CUMULATIVE, legalize_cumulative)
        memoised = memoised_rules(module, own)
        rules = relax.transform.LegalizeOps({**memoised, "relax.topk": legalize_topk})
        with target:
            # The rules go first: dispatching would turn a TopK into a call of TVM's runtime.
            legal = tvm.transform.Sequential([rules, *pipeline.library_dispatch_passes(target)])(module)
        return inline_dequantisation(serial_loops(legal))

    def level_after(self, level: Level) -> Level:
        return Level.KERNELS
