"""Key of a search state: the module's structural hash, without contents of constants."""

from __future__ import annotations

import tvm_ffi
from tvm.ir import IRModule


def state_key(module: IRModule) -> int:
    """Hash a module up to values of constants and names of variables; stable across runs."""
    return tvm_ffi.structural_hash(module, skip_tensor_content=True)
