"""Test that frames are read as LLVM notes them."""

from hypothesis import given
from hypothesis import strategies as st

from passfit.codegen.bare.stack_sizes import _entries


def uleb128(value: int) -> bytes:
    """Encode a number by 7 bits a byte, the lowest first (DWARF 5, section 7.6)."""
    more = value >> 7
    return bytes([value & 127 | (128 if more else 0)]) + (uleb128(more) if more else b"")


@given(st.lists(st.tuples(st.binary(min_size=8, max_size=8), st.integers(0, 1 << 40))), st.sampled_from([4, 8]))
def test_every_entry_is_an_address_and_a_number(entries: list[tuple[bytes, int]], width: int):
    content = b"".join(address[:width] + uleb128(nbytes) for address, nbytes in entries)
    assert list(_entries(content, width)) == [nbytes for _, nbytes in entries]
