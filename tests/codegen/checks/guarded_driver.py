"""Run compiled kernels on guarded memory: a request of guarded_memory.py from stdin, the ends of its cases to stdout."""

import ctypes
import mmap
import os
import pickle
import resource
import sys

PAGE = mmap.PAGESIZE
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
REFUSED = 100
ALIGNMENT = 64
#: forbidden pages on either side: beyond them wild accesses meet other memory, rarely
GUARDS = 64


def guarded(nbytes: int, high: bool) -> int:
    """Return the address of a block between forbidden pages, at the upper or lower end of its own."""
    pages = max(1, -(-nbytes // PAGE))
    start = LIBC.mmap(None, (pages + 2 * GUARDS) * PAGE, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    start += GUARDS * PAGE
    assert LIBC.mprotect(start, pages * PAGE, mmap.PROT_READ | mmap.PROT_WRITE) == 0
    ctypes.memset(start, 0xA5, pages * PAGE)
    return start + (pages * PAGE - -(-nbytes // ALIGNMENT) * ALIGNMENT if high else 0)


def run(program: dict, inputs: dict, library: ctypes.CDLL, high: bool) -> list[bytes] | None:
    """Return the outputs; None if a kernel refuses its data."""
    buffers = [guarded(each, high) for each in program["buffers"]]
    weights = [guarded(len(each), high) for each in program["weights"]]
    for address, content in zip(weights, program["weights"]):
        ctypes.memmove(address, content, len(content))
    addresses = [(buffers[b] if b is not None else weights[w]) + offset for b, w, offset, _ in program["tensors"]]
    for port, tensor in program["inputs"].items():
        ctypes.memmove(addresses[tensor], inputs[port], len(inputs[port]))
    for symbol, arguments in program["steps"]:
        kernel = getattr(library, symbol)
        kernel.argtypes = [ctypes.c_void_p] * len(arguments)
        if kernel(*(addresses[each] for each in arguments)):
            return None
    return [ctypes.string_at(addresses[each], program["tensors"][each][3]) for each in program["outputs"]]


def end_of(program: dict, inputs: dict, library: ctypes.CDLL, high: bool) -> tuple:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        outputs = run(program, inputs, library, high)
        if outputs is None:
            os._exit(REFUSED)
        with os.fdopen(writer, "wb") as file:
            pickle.dump(outputs, file)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        content = file.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return "signal", os.WTERMSIG(status)
    if os.WEXITSTATUS(status) == REFUSED:
        return ("refused",)
    return "outputs", pickle.loads(content)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    request = pickle.load(sys.stdin.buffer)
    loaded = ctypes.CDLL(request["library"])
    ends = [
        [end_of(request["programs"][name], inputs, loaded, high) for high in (False, True)]
        for name, inputs in request["cases"]
    ]
    pickle.dump(ends, sys.stdout.buffer)
