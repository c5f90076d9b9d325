"""Compile kernels with vectors of their own by Arm's Helium (MVE), on a core that has it, and others without.

LLVM 22 makes no vectors by itself, as `noimplicitfloat` asks: its loops over vectors read past their data (vww-int8).

`vcmp.f32 lt` and `le` hold for NaN too (Armv8.1-M: LT is N != V), and LLVM takes them for `<` and `<=` where the other operand is 0 or
a general register. A fence hides such operands: of two vectors it compares by `gt` and `ge` alone. Kernels that ask for NaN itself
do without vectors, since LLVM sees through the fence there, unless they are of sums of integers, which are never NaN.
"""

from __future__ import annotations

import re

from tvm.tirx import PrimFunc

from ...tir.lowering.kernel_target import features_of

_FUNCTION = re.compile(r"^define .*?^}", re.MULTILINE | re.DOTALL)
_VECTOR = re.compile(r"<\d+ x (i8|i16|i32|float)>")
_UNORDERED = re.compile(r" fcmp [\w ]*((uno|ord) <|<\d+ x (half|double)>)")
_NAME = r'%(?:[-$.\w]+|"[^"]*")'
_OPERAND = rf"({_NAME}|zeroinitializer|splat \([^)]*\)|<[^>]*>)"
_COMPARED = re.compile(rf"^  ({_NAME} = fcmp [\w ]+) <(\d+) x float> {_OPERAND}, {_OPERAND}", re.MULTILINE)
_FENCE = re.compile(r"call (<\d+ x float>) (@llvm\.arithmetic\.fence\.v\d+f32)")
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
        if "@llvm.arm.mve." not in text and (not _VECTOR.search(text) or _UNORDERED.search(text)):
            return text
        return _NUMBER.sub(rf" #{_OWN}\1", _COMPARED.sub(_fence, text), count=1)

    def attributes(group: re.Match[str]) -> str:
        own = f'attributes #{_OWN}{group[1]} = {{ noimplicitfloat optsize "no-builtins" {group[0].partition("{")[2]}'
        return f"attributes #{group[1]} = {{{group[2]}-mve.fp,-mve{group[3]}\n{own}"

    found = _ATTRIBUTES.sub(attributes, code)
    if found == code:
        return code
    found = _FUNCTION.sub(chosen, found)
    fences = {f"declare {kind} {name}({kind}" for kind, name in _FENCE.findall(found)}
    return found + "".join(f"{each})\n" for each in sorted(fences) if each not in found)


def _fence(comparison: re.Match[str]) -> str:
    """Return a comparison of vectors of floats whose operands are fenced."""
    start, lanes, *operands = comparison.groups()
    kind = f"<{lanes} x float>"
    sides = [f"%fenced.{comparison.start()}.{side}" for side in "ab"]
    fences = [
        f"  {side} = call {kind} @llvm.arithmetic.fence.v{lanes}f32({kind} {operand})\n"
        for side, operand in zip(sides, operands)
    ]
    return f"{''.join(fences)}  {start} {kind} {', '.join(sides)}"
