from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.errors import ConfigError
from passfit.params.params import MODEL_NAME
from passfit.scaffold.names import model_name, model_names


@given(st.text(alphabet=st.characters(exclude_characters="/!", exclude_categories=("Cs",)), min_size=1))
def test_every_name_made_from_a_file_name_is_a_valid_one(stem):
    try:
        name = model_name(f"models/{stem}.onnx")
    except ConfigError:
        return
    assert MODEL_NAME.fullmatch(name)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("models/keyword.onnx", "keyword"),
        ("Keyword_V1.2.onnx", "keyword-v1-2"),
        ("pypi:some-package==1.0!models/det infer.onnx", "det-infer"),
    ],
)
def test_a_name_comes_from_the_file(source, name):
    assert model_name(source) == name


def test_a_file_name_without_letters_is_refused():
    with pytest.raises(ConfigError, match="No name"):
        model_name("models/___.onnx")


def test_two_models_of_one_name_are_refused_with_both_paths():
    with pytest.raises(ConfigError, match="'a/m.onnx' and 'b/M.onnx' would both be called 'm'"):
        model_names(["a/m.onnx", "b/M.onnx"])


def test_the_order_of_the_models_is_kept():
    assert list(model_names(["z.onnx", "a.onnx"])) == ["z", "a"]
