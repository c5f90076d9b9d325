"""Side files: found wherever a tensor stands, part of every digest, read through the links of caches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from passfit.errors import ModelError
from passfit.frontend.canonical.read_onnx import read_model
from passfit.frontend.imported_model import import_onnx
from passfit.frontend.source.model_record import model_record
from passfit.frontend.source.side_files import model_digest, read_with_side_files, side_files

from ...models import model_of


def outside(name: str, values: np.ndarray, location: str, offset: int | None = None) -> onnx.TensorProto:
    """Return a tensor whose values are in the file `location`, not written here."""
    tensor = TensorProto(name=name, data_type=helper.np_dtype_to_tensor_dtype(values.dtype), dims=values.shape)
    tensor.data_location = TensorProto.EXTERNAL
    length = None if offset is None else values.nbytes
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    return tensor


def save_split(path: Path, weight: float = 1.0, location: str = "m.onnx.data") -> Path:
    """Save a model that adds a vector kept in the side file `location`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.full(4, weight, np.float32)
    side = path.parent / location
    side.parent.mkdir(parents=True, exist_ok=True)
    side.write_bytes(values.tobytes())
    onnx.save(
        model_of(
            [helper.make_node("Add", ["x", "w"], ["y"])], {"x": [4]}, {"y": [4]}, [outside("w", values, location)]
        ),
        path,
    )
    return path


def test_they_are_found_wherever_a_tensor_stands(tmp_path: Path):
    """As an initializer, an attribute, in a subgraph, in a function and in its subgraph."""
    values = {
        name: np.full(2, i, np.float32) for i, name in enumerate(("own", "attribute", "inner", "function", "deep"))
    }
    for name, array in values.items():
        (tmp_path / f"{name}.bin").write_bytes(array.tobytes())
    tensors = {name: outside(name, array, f"./{name}.bin") for name, array in values.items()}

    def branch(result: str, *initializers: onnx.TensorProto) -> onnx.GraphProto:
        node = helper.make_node("Identity", [initializers[0].name], [result])
        return helper.make_graph([node], "g", [], [helper.make_tensor_value_info(result, 1, [2])], initializers)

    nodes = [
        helper.make_node("Constant", [], ["a"], value=tensors["attribute"]),
        helper.make_node(
            "If", ["c"], ["i"], then_branch=branch("t", tensors["inner"]), else_branch=branch("e", tensors["inner"])
        ),
        helper.make_node("Mine", ["c"], ["f"], domain="mine"),
        helper.make_node("Sum", ["a", "i", "f", "own"], ["y"]),
    ]
    model = model_of(nodes, {"c": []}, {"y": [2]}, [tensors["own"]], dtypes={"c": TensorProto.BOOL}, domain="mine")
    body = [
        helper.make_node(
            "If", ["c"], ["h"], then_branch=branch("t", tensors["deep"]), else_branch=branch("e", tensors["deep"])
        ),
        helper.make_node("Constant", [], ["k"], value=tensors["function"]),
        helper.make_node("Add", ["h", "k"], ["r"]),
    ]
    model.functions.append(helper.make_function("mine", "Mine", ["c"], ["r"], body, [helper.make_opsetid("", 17)]))
    onnx.save(model, tmp_path / "m.onnx")
    assert side_files(tmp_path / "m.onnx") == tuple(sorted(f"{name}.bin" for name in values))
    loaded = read_model(tmp_path / "m.onnx")
    assert TensorProto.EXTERNAL not in [each.data_location for each in loaded.graph.initializer]
    assert numpy_helper.to_array(loaded.functions[0].node[0].attribute[0].g.initializer[0]).tolist() == [4, 4]
    (tmp_path / "one.onnx").write_bytes(read_with_side_files(tmp_path / "m.onnx"))
    assert side_files(tmp_path / "one.onnx") == () and read_model(tmp_path / "one.onnx") == loaded


def test_tensors_share_a_file_by_offset_and_length(tmp_path: Path):
    values = {"v": np.arange(3, dtype=np.float32), "w": np.arange(4, 7, dtype=np.float32)}
    (tmp_path / "all.bin").write_bytes(b"\0" * 64 + values["v"].tobytes() + values["w"].tobytes())
    tensors = [outside("v", values["v"], "all.bin", 64), outside("w", values["w"], "all.bin", 76)]
    onnx.save(model_of([helper.make_node("Add", ["v", "w"], ["y"])], {}, {"y": [3]}, tensors), tmp_path / "m.onnx")
    assert side_files(tmp_path / "m.onnx") == ("all.bin",)
    found = {
        each.name: numpy_helper.to_array(each).tolist() for each in read_model(tmp_path / "m.onnx").graph.initializer
    }
    assert found == {name: array.tolist() for name, array in values.items()}


@pytest.mark.parametrize("location", ["m.onnx.data", "weights/of this/w", "ünï.bin"])
def test_other_weights_are_another_model_wherever_they_are_kept(tmp_path: Path, location: str):
    model = save_split(tmp_path / "m.onnx", 1.0, location)
    first, record = model_digest(model), model_record(model, "m.onnx")
    assert side_files(model) == (location,) and record["model"] == first
    imported = import_onnx(model)[0].SerializeToString(deterministic=True)
    save_split(model, 2.0, location)
    assert model_digest(model) != first and model_record(model, "m.onnx") != record
    assert import_onnx(model)[0].SerializeToString(deterministic=True) != imported
    save_split(model, 1.0, location)
    assert model_digest(model) == first


@pytest.mark.parametrize("content", [b"", b"a model", b"a location", b"\x0a\x08location"])
def test_a_file_without_side_files_has_its_own_digest(tmp_path: Path, content: bytes):
    (tmp_path / "m.onnx").write_bytes(content)
    assert model_digest(tmp_path / "m.onnx") == hashlib.sha256(content).hexdigest()


def cached_by_dvc(file: Path, cache: Path) -> None:
    content = hashlib.md5(file.read_bytes()).hexdigest()
    target = cache / content[:2] / content[2:]
    target.parent.mkdir(parents=True)
    file.rename(target)
    file.symlink_to(target)


def cached_by_hugging_face(file: Path, cache: Path) -> None:
    target = cache / hashlib.sha256(file.read_bytes()).hexdigest()
    cache.mkdir(exist_ok=True)
    file.rename(target)
    file.symlink_to(target)


def hard_link(file: Path, cache: Path) -> None:
    cache.mkdir()
    (cache / "other").hardlink_to(file)


@pytest.mark.parametrize("linked", [cached_by_dvc, cached_by_hugging_face, hard_link])
def test_the_links_of_caches_are_read(tmp_path: Path, linked: Callable[[Path, Path], None]):
    model = save_split(tmp_path / "models" / "m.onnx", 3.0)
    digest, weights = model_digest(model), read_model(model).graph.initializer[0]
    for number, file in enumerate((model.with_name("m.onnx.data"), model)):
        linked(file, tmp_path / f"cache{number}")
    assert read_model(model).graph.initializer[0] == weights and model_digest(model) == digest


def test_weights_in_a_file_that_there_cannot_be(tmp_path: Path):
    tensor = outside("w", np.zeros(4, np.float32), "x" * 300)
    onnx.save(model_of([helper.make_node("Relu", ["w"], ["y"])], {}, {"y": [4]}, [tensor]), tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="File name too long"):
        read_model(tmp_path / "m.onnx")


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "", ".", "sub/../../secret", "link", "m.onnx.data\0"])
@pytest.mark.fault(
    "bad input", "weights in a file outside of the folder, by path or link", "exit code 2; it is not read"
)
def test_no_file_outside_of_the_folder_is_read(tmp_path: Path, location: str):
    (tmp_path / "secret").write_bytes(bytes(16))
    model = save_split(tmp_path / "in" / "m.onnx")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "secret")
    tensor = outside("w", np.zeros(4, np.float32), location)
    onnx.save(model_of([helper.make_node("Add", ["x", "w"], ["y"])], {"x": [4]}, {"y": [4]}, [tensor]), model)
    with pytest.raises(ModelError, match="outside of its own folder"):
        read_model(model)
