from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.scaffold.edit_yaml import Entry, insert, remove
from passfit.support.yaml_file import parse_yaml

NEW = Entry(("new:", "  source: n.onnx"), "new: {source: n.onnx}")
ITEM = Entry(("- new",), "new")

NOISE = st.sampled_from(["", "\n", "# at the left\n", "\n# of the next section\n\n"])
DEEP = st.sampled_from(["", "    # of the last entry\n", "  # between entries\n"])
ENTRIES = st.sampled_from(
    [
        "  a:\n    source: x  # why\n", "  a: {source: x,\n    shapes: {y: [1, 2]}}\n",
        "  a:\n    text: |\n      # no comment\n\n",
        "  a:\n", '  "a": "b # c"\n  "1": {}\n', "  a: plain\n     goes on\n", "  a:\n  - 1\n  - 2\n",
    ]
)  # fmt: skip
SECTIONS = st.one_of(
    st.builds(lambda entries, deep: f"models:\n{entries}{deep}", ENTRIES, DEEP),
    st.sampled_from(["models:\n", "models:  # none yet\n", "models: {}\n", "models: {a: 1}\n", "models: { a: 1, }\n"]),
    st.just("models: {a: {source: x},\n  b: 2}  # two\n"),
)
FILES = st.builds(
    lambda before, section, noise, after, end: (before + section + noise + after).replace("\n", end),
    st.sampled_from(["", "# top\n", "first: 1\n\n# about models\n"]), SECTIONS, NOISE,
    st.sampled_from(["", "targets: {x: {}}\n", "targets:\n  models: 1"]), st.sampled_from(["\n", "\r\n"]),
)  # fmt: skip


def parsed(text: str) -> dict:
    return parse_yaml(text, Path("x.yaml"))


@given(FILES)
def test_an_entry_is_added_and_every_other_byte_stays(text):
    edited = insert(text, ("models",), NEW)
    section = dict(parsed(text)["models"] or {}) | {"new": {"source": "n.onnx"}}
    assert parsed(edited) == parsed(text) | {"models": section}
    added = len(edited) - len(text)
    assert any(edited[:at] + edited[at + added :] == text for at in range(len(text) + 1))
    assert "\r\n" not in text or "\n" not in edited.replace("\r\n", "")


@given(FILES)
def test_an_added_entry_is_removed_again(text):
    edited = insert(text, ("models",), NEW)
    again = remove(edited, ("models",), "new")
    assert parsed(again) == parsed(text) | {"models": dict(parsed(text)["models"] or {})}
    if parsed(text)["models"]:
        assert again.rstrip() == text.rstrip() or "{" in text


@given(FILES)
def test_only_the_named_entry_is_removed(text):
    for name in parsed(text)["models"] or {}:
        rest = {key: value for key, value in parsed(text)["models"].items() if key != name}
        assert parsed(remove(text, ("models",), name)) == parsed(text) | {"models": rest}
    assert remove(text, ("models",), "none") is None and remove(text, ("nowhere",), "a") is None


def test_a_comment_stays_with_the_entry_it_is_about():
    text = "models:\n  a:\n    source: x\n    # shapes: none\n\n# targets we sell\ntargets: {}\n"
    expected = text.replace("none\n", "none\n  new:\n    source: n.onnx\n")
    assert insert(text, ("models",), NEW) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("l:\n  - a  # first\n\nm: 1\n", "l:\n  - a  # first\n  - new\n\nm: 1\n"),
        ("l:\n- a", "l:\n- a\n- new\n"),
        ("l: [a, b]", "l: [a, b, new]"),
        ("l: []\n", "l: [new]\n"),
    ],
)
def test_an_item_is_added_to_a_list(text, expected):
    assert insert(text, ("l",), ITEM) == expected


def test_an_entry_goes_above_another_and_its_comments():
    text = "s:\n  a: 1\n\n  # about b\n  b: 2\n"
    expected = "s:\n  a: 1\n\n  new: 3\n\n  # about b\n  b: 2\n"
    assert insert(text, ("s",), Entry(("new: 3", ""), ""), before="b") == expected


@pytest.mark.parametrize("text", ["", "a: 1\n", "models: text\n", "models: null\n", "- models\n"])
def test_without_such_a_section_nothing_is_inserted(text):
    assert insert(text, ("models",), NEW) is None
