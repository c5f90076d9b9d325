"""Find the licence of a model: who states it, and what is left unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from passfit.frontend.source.provenance import Licence, add_metadata, provenance


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "net.onnx").write_bytes(b"")
    return tmp_path / "net.onnx"


def onnx_model(**metadata: str):
    graph = helper.make_graph([], "g", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])])
    made = helper.make_model(graph, producer_name="pytorch", producer_version="2.7")
    helper.set_model_props(made, metadata)
    return made


def test_a_model_that_says_nothing_has_no_licence(model: Path):
    found = add_metadata(provenance(str(model), "ab"), onnx_model())
    assert found.licence == Licence() and "licence" not in found.record
    assert found.record == {"source": "net.onnx", "sha256": "ab", "producer": "pytorch 2.7"}


@pytest.mark.parametrize("name", ["LICENSE", "LICENCE.txt", "license.md", "COPYING"])
def test_a_text_beside_the_model_is_its_licence(model: Path, name: str):
    (model.parent / name).write_text("Do as you like.\n")
    found = provenance(str(model), "")
    assert found.licence == Licence("", f"{name} beside the model", b"Do as you like.\n")
    assert found.record["licence"] == {"stated_by": f"{name} beside the model", "file": "LICENSE"}


@pytest.mark.parametrize("name", ["LICENSES", "unlicense.txt", "LICENSE.py"])
def test_other_files_are_not(model: Path, name: str):
    (model.parent / name).write_text("Do as you like.\n")
    assert provenance(str(model), "").licence == Licence()


def test_the_text_names_itself_by_spdx(model: Path):
    (model.parent / "LICENSE").write_text("/* SPDX-License-Identifier: MIT OR Apache-2.0 */\n")
    assert provenance(str(model), "").licence.name == "MIT OR Apache-2.0"


def test_the_user_wins_over_the_text_and_the_text_over_metadata(model: Path):
    said = onnx_model(model_license="BSD-3-Clause", model_author="Ada")
    alone = add_metadata(provenance(str(model), ""), said)
    assert (alone.licence.name, alone.author) == ("BSD-3-Clause", "Ada")
    assert alone.licence.stated_by == "metadata of the model, model_license"
    (model.parent / "LICENSE").write_text("SPDX-License-Identifier: MIT\n")
    assert add_metadata(provenance(str(model), ""), said).licence.name == "MIT"
    declared = add_metadata(provenance(str(model), "", "LicenseRef-Acme"), said).licence
    assert (declared.name, declared.stated_by) == ("LicenseRef-Acme", "params.yaml") and declared.text


def test_a_text_without_a_name_is_named_by_the_metadata(model: Path):
    (model.parent / "LICENSE").write_text("Permission is hereby granted\n")
    found = add_metadata(provenance(str(model), ""), onnx_model(license="MIT")).licence
    assert found.name == "MIT" and found.text == b"Permission is hereby granted\n"


def test_of_a_package_only_what_the_user_states_is_known():
    source = "pypi:net==1.0!net/net.onnx"
    assert provenance(source, "").record == {"source": source}
    assert provenance(source, "", "MIT").record["licence"] == {"name": "MIT", "stated_by": "params.yaml"}


@given(st.binary(max_size=64))
def test_any_bytes_may_be_a_text(tmp_path_factory: pytest.TempPathFactory, text: bytes):
    folder = tmp_path_factory.mktemp("any")
    (folder / "LICENSE").write_bytes(text)
    assert provenance(str(folder / "net.onnx"), "").licence.text == text
