"""Compile kernels with vectors of their own by Arm's Helium (MVE), on a core that has it, and others without.

LLVM 22 makes no vectors by itself, as `noimplicitfloat` asks: its loops over vectors read past their data (vww-int8). Kernels that
compare vectors of floats do without, unless they are of sums of integers, which are never NaN: `fcmp uno <4 x float> %x,
zeroinitializer` is never true.
"""

from __future__ import annotations

import re

from tvm.tirx import PrimFunc

from ...tir.lowering.kernel_target import features_of

_FUNCTION = re.compile(r"^define .*?^}", re.MULTILINE | re.DOTALL)
_VECTOR = re.compile(r"<\d+ x i(8|16|32)>")
_COMPARED = re.compile(r" fcmp .*<\d+ x float>")
_NUMBER = re.compile(r" #(\d+)(?=[^\n]* \{\n)")
_ATTRIBUTES = re.compile(r'^attributes #(\d+) = \{(.*"target-features"="[^"]*)\+mve(?:\.fp)?(.*)$', re.MULTILINE)
#: before the number of the attributes of functions with vectors
_OWN = "1000"


def has_vectors(kernel: PrimFunc, floats: bool = False) -> bool:
    """Return whether a kernel's target has Helium's vectors, of integers or of `floats` too."""
    return not {"+mve.fp", *([] if floats else ["+mve"])}.isdisjoint(features_of(kernel))


def choose_vectors(code: str) -> str:
    """Return a module of LLVM, as text, whose functions use vectors only where they have some of their own.

    Loops of these are unrolled by rules, so that `optsize` keeps LLVM from it: it would have addresses in memory for want of registers.
    """

    def chosen(function: re.Match[str]) -> str:
        text = function[0]
        own = "@llvm.arm.mve." in text or (_VECTOR.search(text) and not _COMPARED.search(text))
        return _NUMBER.sub(rf" #{_OWN}\1", text, count=1) if own else text

    def attributes(group: re.Match[str]) -> str:
        own = f'attributes #{_OWN}{group[1]} = {{ noimplicitfloat optsize "no-builtins" {group[0].partition("{")[2]}'
        return f"attributes #{group[1]} = {{{group[2]}-mve.fp,-mve{group[3]}\n{own}"

    found = _ATTRIBUTES.sub(attributes, code)
    return _FUNCTION.sub(chosen, found) if found != code else code
