"""Name things in the generated C: identifiers, kernel symbols, and text safe inside comments and strings."""

from __future__ import annotations

import re


def c_identifier(name: str) -> str:
    """Turn `name` into the C prefix of a library: letters, digits, underscores; a letter first."""
    word = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"m{word}" if not word or not (word[0].isascii() and word[0].isalpha()) else word


def symbol(prefix: str, kernel: str) -> str:
    """Return the C function of a kernel, unique among the libraries of a program."""
    return f"{prefix}_{kernel}"


def c_string(text: str) -> str:
    """Escape `text` for a C string: UTF-8, all but plain ASCII as octal numbers."""
    plain = {each for each in range(32, 127)} - set(b'"\\?')
    return "".join(chr(each) if each in plain else f"\\{each:03o}" for each in text.encode())


def c_float(value: float) -> str:
    """Write a finite number as a float of C, with the nine digits that tell all float32 apart."""
    text = f"{value:.9g}"
    return f"{text}f" if set(text) & set(".e") else f"{text}.0f"


def c_comment(text: str) -> str:
    """Escape `text` for a C comment: ASCII on one line, without comment marks or trigraphs."""
    ascii_only = text.encode("unicode_escape").decode("ascii")
    return ascii_only.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?").replace("??", "? ?")
