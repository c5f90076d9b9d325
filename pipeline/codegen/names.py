"""Names in the generated C: identifiers, kernel symbols, and user text made safe for comments and strings."""

from __future__ import annotations

import re


def c_identifier(name: str) -> str:
    """`name` as the C prefix of everything a library defines: letters, digits and underscores, no digit first."""
    word = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"m{word}" if not word or not (word[0].isascii() and word[0].isalpha()) else word


def symbol(prefix: str, kernel: str) -> str:
    """The name a kernel is compiled under, so that kernels of two libraries in one program do not clash."""
    return f"{prefix}_{kernel}"


def entry(prefix: str, kernel: str) -> str:
    """The C function TVM makes of a kernel."""
    return f"__tvm_ffi_{symbol(prefix, kernel)}"


def c_comment(text: str) -> str:
    """`text` for the inside of a C comment: ASCII on one line, without comment marks and trigraphs."""
    ascii_only = text.encode("unicode_escape").decode("ascii")
    return ascii_only.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?").replace("??", "? ?")
