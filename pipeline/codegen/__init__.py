"""Generate and build the C library: plan and kernels → C source → toolchain → archive.

Public faces: `write_library`, `Library`, `c_identifier`, `symbol`.
"""

from .library import Library, write_library
from .names import c_identifier, symbol

__all__ = ["Library", "c_identifier", "symbol", "write_library"]
