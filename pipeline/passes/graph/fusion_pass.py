"""Define a fusion: groups of kernel calls, each of which becomes one kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ..base import Level, ModulePass

if TYPE_CHECKING:
    from tvm.ir import IRModule


class FusionPass(ModulePass):
    """Group kernel calls into functions, each of which becomes one kernel."""

    levels: ClassVar[frozenset[Level]] = frozenset({Level.KERNELS})

    def apply(self, module: IRModule) -> IRModule:
        return self.fused(module, self.group(module))

    def group(self, module: IRModule) -> IRModule:
        """Return the module with the calls of each future kernel in a function, and each constant once."""
        return self._group(constants_once(module))

    def _group(self, module: IRModule) -> IRModule:
        raise NotImplementedError

    def fused(self, module: IRModule, grouped: IRModule) -> IRModule:
        """Make a kernel of each group of `grouped`; return `module` if nothing is grouped."""
        from tvm import relax

        # with nothing to fuse, all that is new are marks of patterns
        changed = any(function.attrs and "Primitive" in function.attrs for function in grouped.functions.values())
        return relax.transform.FuseTIR()(grouped) if changed else module


def constants_once(module: IRModule) -> IRModule:
    """Return the module with one constant for all of equal bytes, shape and dtype; itself if there are no more.

        add(x, c), add(y, d) with c = d  ──►  add(x, c), add(y, c)

    States of a search are recognised by the values of constants, not by their number: fusion must not see the difference either.
    """
    import tvm_ffi
    from tvm.ir import GenericConst, IRModule

    from .rules.dataflow import Dataflow
    from .rules.layout.share_constants import equal_constants

    main = module["main"]
    equal = equal_constants(Dataflow(main))
    if not equal:
        return module
    changed = IRModule(module.functions, attrs=module.attrs)
    changed.update_func(
        module.get_global_var("main"), tvm_ffi.structural_map(main, (GenericConst, lambda each: equal.get(each, each)))
    )
    return changed
