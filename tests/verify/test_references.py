"""A library is compared with the file as given, by the first evaluator that runs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model
from passfit.frontend.given_model import given_model, write_given
from passfit.frontend.imported_model import load
from passfit.frontend.source.import_options import ImportOptions
from passfit.verify import reference
from passfit.verify.blame_import import blame_import
from passfit.verify.cases import add_plain_sums, choose_cases
from passfit.verify.reference import NoReference, OnnxReference, Reference

from ..models import NodeBuilder, model_of, save


def lines() -> onnx.ModelProto:
    return model_of(
        [helper.make_node("Conv", ["x", "w"], ["y"])], {"x": [1, 2, 8]}, ["y"], {"w": np.ones((3, 2, 3), np.float32)}
    )


def test_expected_outputs_are_those_of_the_file() -> None:
    canonical, given = lines(), lines()
    given.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.full((3, 2, 3), 2, np.float32), "w"))
    (case,) = choose_cases(canonical, 0, 1, 1e-4, given)
    np.testing.assert_array_equal(case.expected["y"], Reference(given)(case.inputs)["y"])
    assert case.reference == "onnxruntime"
    assert case.double is None and "differs from the reference's" in case.no_double


def test_a_file_that_onnx_runtime_cannot_run_is_evaluated_by_onnx() -> None:
    """Multiply in doubles: ONNX Runtime has no convolution of them."""
    model = model_of(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        {"x": [1, 2, 8]},
        ["y"],
        {"w": np.ones((3, 2, 3))},
        dtype=TensorProto.DOUBLE,
    )
    with pytest.raises(NoReference):
        Reference(model)
    (case,) = choose_cases(model, 0, 1, 1e-4, model)
    assert case.reference == "onnx" and case.expected["y"].dtype == np.float64
    np.testing.assert_allclose(case.expected["y"][0, 0, 0], case.inputs["x"][0, :, :3].sum())


def test_a_large_model_is_loaded_from_a_file_as_from_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name no scratch file in errors: they are part of results."""
    wrong = model_of([helper.make_node("Conv", ["x", "w"], ["y"])], {"x": [1, 2, 8]}, ["y"], {"w": np.ones((3, 3, 3))})
    x, found, said = {"x": np.arange(16, dtype=np.float32).reshape(1, 2, 8)}, [], []
    for elements in (1 << 22, 1):
        monkeypatch.setattr(reference, "_LARGE", elements)
        found.append(Reference(lines())(x)["y"])
        with pytest.raises(NoReference) as refused:
            Reference(wrong)
        said.append(str(refused.value))
    np.testing.assert_array_equal(*found)
    assert "/" not in said[1] and "the model" in said[1]


def test_the_weights_of_a_large_model_are_mapped_from_a_file() -> None:
    weights = {f"w{place}": np.full((256, 256, 3, 3), 1e-3, np.float32) for place in range(8)}
    nodes = [helper.make_node("Conv", [f"v{place}", f"w{place}"], [f"v{place + 1}"]) for place in range(8)]
    model = model_of(nodes, {"v0": [1, 256, 17, 17]}, ["v8"], weights)
    before = _own_bytes()
    plain = Reference(model)
    x = {"v0": np.ones((1, 256, 17, 17), np.float32)}
    assert np.isfinite(plain(x)["v8"]).all()
    assert _own_bytes() - before < sum(each.nbytes for each in weights.values()) / 2


def _own_bytes() -> int:
    """Return the memory of this process that is not a file's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))


def test_weights_are_dequantised_where_they_are_read() -> None:
    """Hold the floats of one layer at a time, not of all eight."""
    scale, count, width = np.float32(0.01), 8, 1024
    weights = {f"w{place}": np.full((width, width), 1, np.int8) for place in range(count)} | {"scale": scale}
    nodes = []
    for place in range(count):
        nodes.append(helper.make_node("DequantizeLinear", [f"w{place}", "scale"], [f"f{place}"]))
        nodes.append(helper.make_node("MatMul", [f"v{place}", f"f{place}"], [f"v{place + 1}"]))
    reference = Reference(model_of(nodes, {"v0": [1, width]}, [f"v{count}"], weights))
    before = _own_bytes()
    reference({"v0": np.ones((1, width), np.float32)})
    assert _own_bytes() - before < 4 * width * width * 4


def test_a_result_that_may_have_any_order_is_sorted_by_library_and_reference(tmp_path: Path) -> None:
    nodes = [helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=0, sorted=0)]
    given = model_of(nodes, {"x": [20, 3]}, ["y"], {"k": np.array([5])})
    (node,) = import_model(save(given, tmp_path)).graph.node
    assert "sorted" not in {each.name for each in node.attribute}
    x = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    np.testing.assert_array_equal(Reference(given)({"x": x})["y"], -np.sort(-x, axis=0)[:5])


def test_outputs_of_onnxs_evaluator_have_their_dtypes() -> None:
    x = {"x": np.float32(np.arange(16)).reshape(1, 2, 8)}
    found = OnnxReference(lines())(x)["y"]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, Reference(lines())(x)["y"])


def test_a_file_that_nobody_can_run_is_not_verified() -> None:
    given = lines()
    given.opset_import.add(domain="nobody", version=1)
    given.graph.node.append(helper.make_node("Secret", ["y"], ["z"], domain="nobody"))
    given.graph.output[0].name = "z"
    (case,) = choose_cases(lines(), 0, 1, 1e-4, given)
    assert case.reference.startswith("not-verified: ONNX Runtime cannot run the model") and "Secret" in case.reference
    (alone,) = choose_cases(given, 0, 1, 1e-4, given)
    assert alone.expected == {} and alone.reference.startswith("not-verified: ")


def test_integers_of_rounded_floats_have_witnesses_and_others_none() -> None:
    for operator, witnesses in (("MatMul", 4), ("Min", 0)):
        build = NodeBuilder()
        output = build.node("ArgMax", build.node(operator, "x", build.weight(8, 8)), axis=1)
        model = build.model([8, 8], output, dtypes={output: TensorProto.INT64})
        (case,) = add_plain_sums(model, choose_cases(model, 0, 1, 1e-4, model), model)
        assert len(case.witnesses) == witnesses


def test_side_files_and_shapes_are_inside_the_model_as_given(tmp_path: Path) -> None:
    model = model_of(
        [helper.make_node("Add", ["x", "w"], ["y"])], {"x": ["n", 300]}, ["y"], {"w": np.ones(300, np.float32)}
    )
    plain = save(model, tmp_path, "plain.onnx")
    onnx.save(model, tmp_path / "large.onnx", save_as_external_data=True, location="large.bin", size_threshold=0)
    for path in (plain, tmp_path / "large.onnx"):
        write_given(tmp_path / "given.onnx", path, ImportOptions({"x": [2, 300]}))
        given = onnx.load(tmp_path / "given.onnx")
        assert given.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2
        assert numpy_helper.to_array(given.graph.initializer[0]).sum() == 300
    static = save(model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [2]}, ["y"]), tmp_path, "static.onnx")
    write_given(tmp_path / "again.onnx", static)
    assert (tmp_path / "again.onnx").read_bytes() == static.read_bytes()


def test_a_canonical_file_is_compared_with_the_file_it_was_made_from(tmp_path: Path) -> None:
    from passfit import api

    file = save(lines(), tmp_path)
    api.import_model_file(file, tmp_path / "models" / "model.onnx")
    assert given_model(tmp_path / "models" / "model.onnx") is None
    assert load(tmp_path / "models" / "model.onnx").given is None
    imported = load(tmp_path / "models" / "model.onnx", given=tmp_path / "models" / "given.onnx")
    assert imported.given == onnx.load(file)
    with pytest.raises(ModelError, match="cannot be read"):
        load(tmp_path / "models" / "model.onnx", given=tmp_path / "models" / "none.onnx")


def test_the_first_value_that_an_import_changed_is_named(tmp_path: Path) -> None:
    build = NodeBuilder()
    first = build.node("MatMul", "x", build.weight(8, 4))
    second = build.node("Tanh", build.node("Relu", first))
    path = save(build.model([3, 8], build.node("MatMul", second, build.weight(4, 2))), tmp_path)
    canonical, given = import_model(path), given_model(path)
    assert blame_import(canonical, given, 0) == ""
    canonical.graph.node[1].op_type = "Neg"
    assert (
        blame_import(canonical, given, 0)
        == "The import is at fault: it changes the value 't1_0', made by the Neg node 'relu1'."
    )
    assert blame_import(canonical, None, 0) == ""


def test_values_as_long_as_their_bound_are_not_blamed(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Neg", ["places"], ["inside"]),
        helper.make_node("Abs", ["inside"], ["y"]),
    ]
    model = model_of(nodes, {"x": [9]}, ["y"], dtypes={"y": TensorProto.INT64})
    imported = load(save(model, tmp_path), bounds={"places": 6})
    assert any("inside" in node.output for node in imported.onnx.graph.node)
    assert blame_import(imported.onnx, imported.given, 0) == ""
    next(node for node in imported.onnx.graph.node if "inside" in node.output).op_type = "Sign"
    assert "it changes the value 'inside" in blame_import(imported.onnx, imported.given, 0)


@pytest.mark.parametrize(
    "node, shape, opset",
    [
        (helper.make_node("Hardmax", ["x"], ["y"], axis=1), [2, 3, 4], 11),
        (helper.make_node("LpPool", ["x"], ["y"], kernel_shape=[2, 2], auto_pad="SAME_UPPER"), [1, 1, 5, 5], 18),
        (helper.make_node("RNN", ["x", "w", "r"], ["y"], hidden_size=3, clip=0.5), [2, 1, 4], 14),
        (
            helper.make_node(
                "Resize", ["x", "", "s"], ["y"], mode="linear", coordinate_transformation_mode="align_corners"
            ),
            [1, 1, 3, 3],
            19,
        ),
    ],
)
def test_forms_that_onnxs_evaluator_computes_wrongly_are_not_evaluated_by_it(
    node: onnx.NodeProto, shape: list[int], opset: int
) -> None:
    constants = {"w": np.ones((1, 3, 4)), "r": np.ones((1, 3, 3)), "s": np.float32([1, 1, 1.5, 2])}
    used = {name: value for name, value in constants.items() if name in node.input}
    with pytest.raises(NoReference, match=f"computes {node.op_type} wrongly"):
        OnnxReference(model_of([node], {"x": shape}, ["y"], used, opset=opset, dtype=TensorProto.DOUBLE))
