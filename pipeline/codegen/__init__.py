"""The C library a device gets: plan and kernels → C source → toolchain → archive."""

from .library import Library, write_library
from .names import c_identifier, symbol

__all__ = ["Library", "c_identifier", "symbol", "write_library"]
