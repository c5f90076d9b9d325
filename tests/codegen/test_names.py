import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.codegen import c_identifier, symbol
from passfit.codegen.names import c_comment


@given(st.text())
def test_every_name_becomes_an_identifier(name):
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", c_identifier(name))


@given(st.text())
def test_identifiers_are_left_alone(name):
    assert c_identifier(c_identifier(name)) == c_identifier(name)


@given(st.text() | st.text(alphabet="*/?\\\n"))
def test_a_comment_ends_where_it_should(text):
    comment = c_comment(text)
    assert "*/" not in comment and "/*" not in comment and "??" not in comment
    assert comment.isascii() and comment.isprintable()


@pytest.mark.parametrize(("name", "identifier"), [("ocr-cls", "ocr_cls"), ("3d", "m3d"), ("", "m"), ("_x", "m_x")])
def test_known_names(name, identifier):
    assert c_identifier(name) == identifier


def test_kernel_symbols_carry_the_models_prefix():
    assert symbol("ocr_cls", "conv2d") == "ocr_cls_conv2d"
