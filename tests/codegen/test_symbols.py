import pytest

from passfit.codegen.elf import ElfObject, ElfSection, Symbol
from passfit.codegen.symbols import check_symbols, unused_sections, uses_threads, uses_workspace
from passfit.errors import ModelError
from passfit.targets import get_target

HOST, BOARD = get_target("x86-64"), get_target("mps2-an386")


def kernels(undefined=(), defined=(), users=None) -> ElfObject:
    symbols = [Symbol(name, 0, 0, 0, 0) for name in undefined] + [Symbol(name, 1, 3, 0, 8) for name in defined]
    return ElfObject((), tuple(symbols), users or {})


@pytest.mark.parametrize(
    "name",
    ["expf", "memcpy", "memset", "tanh", "__aeabi_unwind_cpp_pr0", "__udivdi3",
     "__extendhfsf2", "__aeabi_ldivmod"],
)  # fmt: skip
def test_what_a_c_compiler_or_the_library_supplies_is_allowed(name):
    check_symbols(kernels([name]), HOST)


@pytest.mark.parametrize(
    "name",
    [
        "TVMBackendParallelLaunch",
        "TVMBackendAllocWorkspace",
        "TVMFFIErrorSetRaisedFromCStrParts",
        "malloc",
        "printf",
        "expq",
        "__truncsfbf2",
    ],
)
def test_anything_else_is_refused_with_the_kernel_that_uses_it(name):
    with pytest.raises(ModelError, match=f"Kernel 'm_sort' needs the symbol '{name}'"):
        check_symbols(kernels([name], users={name: ("m_sort",)}), HOST)


@pytest.mark.parametrize("name", ["expf", "log", "nearbyintf", "memcpy", "__aeabi_fadd", "__addsf3"])
def test_a_library_without_libc_has_functions_of_its_own(name):
    check_symbols(kernels([name]), BOARD)


@pytest.mark.parametrize("name", ["abort", "lgammaf", "frexp", "malloc"])
def test_a_library_without_libc_calls_no_other_function(name):
    with pytest.raises(ModelError, match=f"Kernel 'm_sort' needs the symbol '{name}'"):
        check_symbols(kernels([name], users={name: ("m_sort",)}), BOARD)


def test_packed_functions_are_refused_by_their_name():
    found = kernels(
        defined=[".tvm_func.tvm.contrib.sort.argsort", "__TVMFFIFunctionCall"],
        users={"__TVMFFIFunctionCall": ("m_sort",)},
    )
    with pytest.raises(ModelError, match="'m_sort' needs the function 'tvm.contrib.sort.argsort'"):
        check_symbols(found, HOST)


def test_other_runtime_pointers_are_refused_and_workspace_is_not():
    check_symbols(kernels(defined=["__TVMBackendAllocWorkspace", "__TVMBackendFreeWorkspace"]), HOST)
    with pytest.raises(ModelError, match="TVMBackendParallelLaunch"):
        check_symbols(kernels(defined=["__TVMBackendParallelLaunch"]), HOST)


def test_shared_loops_need_a_library_of_threads():
    found = kernels(defined=["__TVMBackendParallelLaunch"])
    check_symbols(found, HOST.with_threads(2))
    assert uses_threads(found) and not uses_threads(kernels(["expf"]))
    with pytest.raises(ModelError, match="TVMBackendParallelBarrier"):
        check_symbols(kernels(defined=["__TVMBackendParallelBarrier"]), HOST.with_threads(2))


def test_workspace_is_seen():
    assert uses_workspace(kernels(defined=["__TVMBackendAllocWorkspace"]))
    assert not uses_workspace(kernels(["expf"]))


def test_conversions_of_float16_stay_in_the_first_object_if_a_kernel_of_any_uses_them():
    half = ".text.tvm.fp16.conv"
    sections = tuple(ElfSection(name, 1, 6, 0, 8, 0, 0) for name in ("", ".text", half))
    symbols = (Symbol("k", 2, 1, 0, 8), Symbol("__extendhfsf2", 2, 2, 0, 8), Symbol("k.c", 4, 0xFFF1, 0, 0))
    idle, using = (ElfObject(sections, symbols, users) for users in ({}, {"__extendhfsf2": ("k",)}))
    assert unused_sections([idle, idle]) == [(half,), (half,)]
    assert unused_sections([idle, using]) == unused_sections([using, idle]) == [(), (half,)]
