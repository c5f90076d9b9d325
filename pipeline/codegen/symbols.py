"""Check the external symbols of compiled kernels, which a library without TVM has to supply; measure their functions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from ..errors import ModelError
from ..memory.files.plan_file import CodePart
from ..program import Program
from ..targets import Target
from .bare.float_functions import SUPPLIED
from .elf import ElfObject, Symbol, together
from .names import symbol as symbol_of

#: pointers TVM defines as NULL in the object; the generated C sets them before it runs
WORKSPACE_POINTERS = ("__TVMBackendAllocWorkspace", "__TVMBackendFreeWorkspace")
PARALLEL_POINTER = "__TVMBackendParallelLaunch"

_LIBC = frozenset({"memcpy", "memmove", "memset", "memcmp", "abort"})
#: functions that compilers call even without a C library
_FREESTANDING = frozenset({"memcpy", "memmove", "memset", "memcmp"})
_LIBM = re.compile(
    r"(acos|acosh|asin|asinh|atan|atan2|atanh|cbrt|ceil|copysign|cos|cosh|erf|erfc|exp|exp10|exp2|expm1|fabs|fdim|floor"
    r"|fma|fmax|fmin|fmod|frexp|hypot|ldexp|lgamma|log|log10|log1p|log2|logb|modf|nearbyint|pow|remainder|rint|round"
    r"|roundeven|scalbn|sin|sincos|sinh|sqrt|tan|tanh|tgamma|trunc|nextafter)f?"
)
#: symbols of every C compiler's runtime: arithmetic without an instruction on the cpu, tables for unwinding
_COMPILER = re.compile(
    r"__aeabi_\w+|__(?!\w*bf)\w*(hf|sf|df|tf|xf|si|di|ti)\w*|__gnu_[fh]2[fh]_ieee|_GLOBAL_OFFSET_TABLE_"
)
#: section of functions that convert float16, weak, with instructions of any cpu
_HALF = ".text.tvm.fp16.conv"
_PACKED = re.compile(r"\.tvm_func\.(.+)")
_PACKED_CALL = "__TVMFFIFunctionCall"
_RUNTIME_POINTER = re.compile(r"__TVM(FFI|Backend)\w+")


def check_symbols(kernels: ElfObject, target: Target) -> None:
    """Check that the library, or the target's libc, supplies every symbol the kernels need.

    Raises ModelError naming kernel and symbol: one of TVM's runtime, or one that a library of that target lacks.
    """
    supplied = (*WORKSPACE_POINTERS, *([PARALLEL_POINTER] if target.threads > 1 else []))
    for found in kernels.symbols:
        packed = _PACKED.fullmatch(found.name)
        if packed and found.section:
            raise _refusal(f"the function '{packed[1]}' of TVM's runtime", kernels.users.get(_PACKED_CALL, ()))
    for name in kernels.undefined:
        if not _is_supplied(name, target):
            raise _refusal(f"the symbol '{name}'", kernels.users.get(name, ()))
    for found in kernels.symbols:
        if _RUNTIME_POINTER.fullmatch(found.name) and found.section and found.name not in supplied:
            raise _refusal(f"'{found.name[2:]}' of TVM's runtime", kernels.users.get(found.name, ()))


def uses_workspace(kernels: ElfObject) -> bool:
    """Return whether some kernel allocates workspace at run time."""
    return any(s.name == WORKSPACE_POINTERS[0] for s in kernels.symbols)


def uses_threads(kernels: ElfObject) -> bool:
    """Return whether some kernel has parallel loops."""
    return any(s.name == PARALLEL_POINTER for s in kernels.symbols)


def unused_sections(objects: Sequence[ElfObject]) -> list[tuple[str, ...]]:
    """Return the sections TVM adds to each object that a library drops: conversions of float16.

    The first object holds them for all kernels, if one uses them: the linker takes the first of weak functions.
    """
    used = any(each.users.get(symbol.name) for each in objects for symbol in each.symbols if _is_half(each, symbol))
    return [() if used and number == 0 else (_HALF,) for number in range(len(objects))]


def _is_half(kernels: ElfObject, symbol: Symbol) -> bool:
    return symbol.section < len(kernels.sections) and kernels.sections[symbol.section].name == _HALF


def code_parts(members: Mapping[str, ElfObject], program: Program, identifier: str) -> tuple[CodePart, ...]:
    """Return the functions that a run of a library executes, largest first: each kernel's, with its ONNX nodes.

    `members` are the objects of the archive by name. A function whose name begins with a kernel's is part of it; any other that
    a kernel or the run calls, such as an exponential, is a part of its own. What else the archive holds is left out.
    """
    nodes: dict[str, dict[str, None]] = defaultdict(dict)
    for _, step, _ in program.calls():
        nodes[step.kernel].update(dict.fromkeys(step.nodes))
    sizes: dict[str, int] = defaultdict(int)
    runs = {symbol_of(identifier, name) for name in ("run", "instance_run")}
    used = set(runs)
    for member, content in members.items():
        for name, nbytes in content.functions().items():
            sizes[name] += nbytes
            if member.startswith(f"{identifier}_kernels"):
                used.add(name)
    users = together([*members.values()]).users
    while more := {name for name in sizes.keys() - used if used.intersection(users.get(name, ()))}:
        used |= more
    kernels = sorted(nodes, key=lambda kernel: (-len(kernel), kernel))
    parts: dict[str, int] = defaultdict(int)
    for name in sorted(used & sizes.keys()):
        owner = next((kernel for kernel in kernels if f"{name}_".startswith(f"{symbol_of(identifier, kernel)}_")), name)
        parts["run" if name in runs and owner == name else owner] += sizes[name]
    found = (CodePart(name, nbytes, tuple(nodes.get(name, ()))) for name, nbytes in parts.items())
    return tuple(sorted(found, key=lambda part: (-part.nbytes, part.name)))


def _is_supplied(name: str, target: Target) -> bool:
    if target.bare:
        return name in _FREESTANDING or name in SUPPLIED or bool(_COMPILER.fullmatch(name))
    return name in _LIBC or bool(_LIBM.fullmatch(name) or _COMPILER.fullmatch(name))


def _refusal(what: str, users: tuple[str, ...]) -> ModelError:
    who = f"Kernel '{users[0]}'" if users else "A kernel"
    return ModelError(
        f"{who} needs {what}, which a library without TVM lacks.",
        "Replace the operator (sort, topk, nonzero and the like) in the model, or compute it outside.",
    )
