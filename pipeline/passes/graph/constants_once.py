"""Hold equal constants of kernel calls once: one operand of a fused kernel, whichever passes led to the graph.

    add(x, c), add(y, d) with c = d  ──►  add(x, c), add(y, c)

States of a search are told by the values of constants, not by their number: fusion must not see the difference either.
"""

from __future__ import annotations

import tvm_ffi
from tvm.ir import GenericConst, IRModule

from .rules.dataflow import Dataflow
from .rules.layout.share_constants import equal_constants


def constants_once(module: IRModule) -> IRModule:
    """Return the module with one constant for all of equal bytes, shape and dtype; itself if there are no more."""
    main = module["main"]
    equal = equal_constants(Dataflow(main))
    if not equal:
        return module
    changed = IRModule(module.functions, attrs=module.attrs)
    changed.update_func(module.get_global_var("main"), tvm_ffi.structural_map(main, (GenericConst, lambda each: equal.get(each, each))))
    return changed
