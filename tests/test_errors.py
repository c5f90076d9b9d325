"""A message is one printable line, whatever the names in it hold."""

from hypothesis import given
from hypothesis import strategies as st

from passfit.errors import ModelError


@given(st.text(), st.text())
def test_a_message_is_one_printable_line(name, hint):
    error = ModelError(f"The node '{name}' is wrong.", hint)
    assert str(error).isprintable() and len(str(error).splitlines()) == 1


def test_printable_text_is_kept():
    assert ModelError("Größe 'é 输入'.").what == "Größe 'é 输入'."
    assert ModelError("a\n\x1b[31m\0b").what == r"a\n\x1b[31m\x00b"
