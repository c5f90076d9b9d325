"""Check the canonical form: same results, static, equal bytes; other models are refused in a sentence."""

from __future__ import annotations

import contextlib
import pickle
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model
from passfit.frontend.source.import_options import ImportOptions

from ..models import FLOAT, model_of, run, save, shape_of
from ..profiles import examples

node = helper.make_node
RNG = np.random.default_rng(0)


def flattened() -> onnx.ModelProto:
    """Build a model with dynamic input, flattened by shape arithmetic, with an Identity and a Constant inside."""
    return model_of(
        [
            node("Constant", [], ["zero"], value=numpy_helper.from_array(np.asarray([0]))),
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["b"], axis=0),
            node("Constant", [], ["rest"], value=numpy_helper.from_array(np.asarray([-1]))),
            node("Concat", ["b", "rest"], ["target"], axis=0),
            node("Identity", ["x"], ["same"]),
            node("Reshape", ["same", "target"], ["y"]),
        ],
        {"x": ["batch", 3, "h", 4]},
        ["y"],
    )


def test_shape_arithmetic_is_folded_and_ports_are_kept(tmp_path: Path) -> None:
    path = save(flattened(), tmp_path)
    model = import_model(path, ImportOptions({"x": (2, 3, 5, 4)}))
    assert [each.op_type for each in model.graph.node] == ["Reshape"]
    assert [value.name for value in model.graph.input] == ["x"]
    assert [(value.name, shape_of(value)) for value in model.graph.output] == [("y", (2, 60))]
    x = RNG.standard_normal((2, 3, 5, 4)).astype(np.float32)
    assert np.array_equal(run(model, {"x": x})[0], run(flattened(), {"x": x})[0])


def test_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    path = save(flattened(), tmp_path)
    first, second = (
        import_model(path, ImportOptions({"x": (1, 3, 5, 4)})).SerializeToString(deterministic=True) for _ in range(2)
    )
    assert first == second


def test_importing_twice_changes_nothing(tmp_path: Path) -> None:
    once = import_model(save(flattened(), tmp_path), ImportOptions({"x": (1, 3, 5, 4)}))
    again = import_model(save(once, tmp_path, "again.onnx"))
    assert again.SerializeToString(deterministic=True) == once.SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"not a model at all, only text", "not an ONNX model"),
        (b"\x08", "not an ONNX model"),
        (b"PK\x03\x04 and more", "but a zip file, as PyTorch.*exporting.md"),
        (b"\x1c\0\0\0TFL3 and more", "but a model of TensorFlow Lite"),
        (b"\x89HDF\r\n", "but an HDF5 file, as Keras"),
        (pickle.dumps({"a": [1.5] * 9}), "but a pickle, as scikit-learn"),
    ],
)
def test_files_that_are_no_models_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=said):
        import_model(path)


def test_a_truncated_model_is_refused(tmp_path: Path) -> None:
    path = save(flattened(), tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ModelError):
        import_model(path, ImportOptions({"x": (1, 3, 5, 4)}))


@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_model_is_imported_or_refused(tmp_path: Path, damage: list[tuple[int, int]]) -> None:
    content = bytearray(branching().SerializeToString())
    for position, byte in damage:
        content[position % len(content)] = byte
    path = tmp_path / "damaged.onnx"
    path.write_bytes(content)
    with contextlib.suppress(ModelError):
        import_model(path)


@pytest.mark.parametrize("valid", [True, False])
def test_an_error_inside_is_the_files_fault_only_if_that_is_not_valid(tmp_path: Path, monkeypatch, valid: bool) -> None:
    def fail(_: object) -> None:
        raise IndexError("tuple index out of range")

    monkeypatch.setattr("passfit.frontend.canonicalise.rewrite", fail)
    model = model_of([node("Relu", ["x"], ["y"])], {"x": [4]}, ["y"])
    model.ir_version = model.ir_version if valid else 99
    path = save(model, tmp_path)
    with pytest.raises(IndexError if valid else ModelError, match="index" if valid else "not valid ONNX: .*ir_version"):
        import_model(path)


@pytest.mark.parametrize("operator", ["Relu", "Bernoulli"])
def test_a_batch_is_told_of_an_import_and_not_of_a_refusal(tmp_path: Path, caplog, operator: str) -> None:
    path = save(model_of([node(operator, ["x"], ["y"])], {"x": ["n", 4]}, ["y"]), tmp_path)
    with contextlib.nullcontext() if operator == "Relu" else pytest.raises(ModelError, match="cannot be compiled"):
        import_model(path)
    assert ("has a batch of 1" in caplog.text) == (operator == "Relu")


@pytest.mark.parametrize("version", [-1, 0, 1 << 31, (1 << 63) - 1])
def test_an_operator_set_that_cannot_exist_is_refused(tmp_path: Path, version: int) -> None:
    model = model_of([node("Relu", ["x"], ["y"])], {"x": [4]}, ["y"])
    model.opset_import[0].version = version
    with pytest.raises(ModelError, match=f"operator set {version}, which does not exist"):
        import_model(save(model, tmp_path))


def test_a_cycle_and_a_missing_value_are_refused(tmp_path: Path) -> None:
    cycle = [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Neg", ["b"], ["y"])]
    with pytest.raises(ModelError, match="order"):
        import_model(save(model_of(cycle, {"x": [4]}, ["y"]), tmp_path))
    with pytest.raises(ModelError, match="Neg_0.*'nowhere'"):
        import_model(save(model_of([node("Neg", ["nowhere"], ["y"], name="Neg_0")], {"x": [4]}, ["y"]), tmp_path))


@pytest.mark.parametrize("content", [b"", b"\0" * 15, b"\0" * 12, b"\0" * 20])
def test_a_constant_of_other_bytes_than_its_shape_is_refused(tmp_path: Path, content: bytes) -> None:
    w = TensorProto(name="w", dims=[4], data_type=FLOAT, raw_data=content)
    path = save(model_of([node("Add", ["x", "w"], ["y"])], {"x": [4]}, ["y"], [w]), tmp_path)
    with pytest.raises(ModelError, match="a constant 'w' whose numbers are not those of its shape 4"):
        import_model(path)


def test_a_directory_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.onnx"):
        with pytest.raises(ModelError):
            import_model(path)


def test_a_missing_side_file_is_named(tmp_path: Path) -> None:
    model = model_of([node("Add", ["x", "w"], ["y"])], {"x": [4]}, ["y"], {"w": np.ones(4, np.float32)})
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    (tmp_path / "m.data").unlink()
    with pytest.raises(ModelError, match="side file"):
        import_model(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ({}, "--shape x=1x3x224x4"),
        ({"y": (1,)}, "no input 'y'"),
        ({"x": (1, 3, 5)}, "4"),
        ({"x": (1, 2, 5, 4)}, "dimension 1 is 3"),
        ({"x": (0, 3, 5, 4)}, "below 1"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(tmp_path: Path, shapes: dict[str, tuple[int, ...]], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        import_model(save(flattened(), tmp_path), ImportOptions(shapes))


def test_a_named_dimension_is_the_same_everywhere(tmp_path: Path) -> None:
    model = model_of([node("Add", ["a", "b"], ["y"])], {"a": ["n", 4], "b": ["n", 4]}, ["y"])
    assert shape_of(import_model(save(model, tmp_path), ImportOptions({"a": (3, 4)})).graph.input[1]) == (3, 4)


def test_dimensions_called_unknown_need_not_be_equal(tmp_path: Path) -> None:
    model = model_of([node("Add", ["a", "b"], ["y"])], {"a": [4, "?"], "b": [4, "?"]}, ["y"])
    with pytest.raises(ModelError, match="'b'"):
        import_model(save(model, tmp_path), ImportOptions({"a": (4, 3)}))


def branching() -> onnx.ModelProto:
    """Build y = x + 1 if the input `flag` is true, else x * 2."""
    bodies = {}
    for branch, op in (("then_branch", "Add"), ("else_branch", "Mul")):
        inside = [node(op, ["x", "c"], ["r"], name="inner")]
        constant = numpy_helper.from_array(np.asarray(1 if op == "Add" else 2, np.float32), "c")
        value = helper.make_tensor_value_info("r", FLOAT, None)
        bodies[branch] = helper.make_graph(inside, branch, [], [value], [constant])
    choice = node("If", ["flag"], ["y"], name="choice", **bodies)
    return model_of([choice], {"x": [3], "flag": []}, ["y"], dtypes={"flag": TensorProto.BOOL})


@pytest.mark.parametrize("flag", [True, False])
def test_a_frozen_condition_leaves_one_branch(tmp_path: Path, flag: bool) -> None:
    model = import_model(save(branching(), tmp_path), ImportOptions(fix={"flag": flag}))
    assert [each.op_type for each in model.graph.node] == ["Add" if flag else "Mul"]
    assert [value.name for value in model.graph.input] == ["x"]
    x = np.asarray([1, 2, 3], np.float32)
    assert np.array_equal(run(model, {"x": x})[0], x + 1 if flag else x * 2)


def test_an_open_condition_chooses_between_both(tmp_path: Path) -> None:
    model = import_model(save(branching(), tmp_path))
    assert "If" not in {each.op_type for each in model.graph.node}
    x = np.asarray([1, 2, 3], np.float32)
    for flag in (True, False):
        assert np.array_equal(run(model, {"x": x, "flag": np.asarray(flag)})[0], x + 1 if flag else x * 2)


@pytest.mark.parametrize(("value", "said"), [("high", "cannot be frozen"), ([1, 2], "cannot be frozen")])
def test_values_that_do_not_fit_an_input_are_refused(tmp_path: Path, value: object, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        import_model(save(branching(), tmp_path), ImportOptions(fix={"flag": value}))


def test_foreign_domains_are_refused_by_node(tmp_path: Path) -> None:
    model = model_of([node("Relu", ["x"], ["y"], domain="my", name="n1")], {"x": [4]}, ["y"])
    model.opset_import.append(helper.make_opsetid("my", 1))
    with pytest.raises(ModelError, match="'n1'.*domain 'my'"):
        import_model(save(model, tmp_path))


def test_functions_of_the_model_are_inlined(tmp_path: Path) -> None:
    model = model_of([node("Twice", ["x"], ["y"], domain="my")], {"x": [4]}, ["y"])
    model.opset_import.append(helper.make_opsetid("my", 1))
    body = [node("Add", ["a", "a"], ["b"])]
    model.functions.append(helper.make_function("my", "Twice", ["a"], ["b"], body, [helper.make_opsetid("", 17)]))
    assert [each.op_type for each in import_model(save(model, tmp_path)).graph.node] == ["Add"]


def test_what_cannot_be_compiled_is_named_with_its_node(tmp_path: Path) -> None:
    body = helper.make_graph(
        [node("NonZero", ["h"], ["places"], name="where"), node("ReduceSum", ["places"], ["sum"], keepdims=0), node("Add", ["h", "sum"], ["after"])],
        "body", [helper.make_tensor_value_info(name, TensorProto.INT64, [4]) for name in ("h", "row")],
        [helper.make_tensor_value_info("after", TensorProto.INT64, [4])],
    )  # fmt: skip
    scan = node("Scan", ["x", "rows"], ["y"], body=body, num_scan_inputs=1)
    model = model_of([scan], {"x": [4], "rows": [4096, 4]}, ["y"], dtype=TensorProto.INT64)
    with pytest.raises(
        ModelError, match="NonZero node 'where'. Cut the model before it: the size of its result depends"
    ):
        import_model(save(model, tmp_path))


def test_an_operator_unknown_to_onnx_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="Frobnicate"):
        import_model(save(model_of([node("Frobnicate", ["x"], ["y"])], {"x": [4]}, ["y"]), tmp_path))


def test_nodes_out_of_order_are_sorted_and_unused_ones_dropped(tmp_path: Path) -> None:
    nodes = [node("Relu", ["t"], ["y"]), node("Neg", ["x"], ["t"]), node("Abs", ["x"], ["unused"])]
    model = model_of(nodes, {"x": [4]}, ["y"], {"spare": np.ones(3, np.float32)})
    imported = import_model(save(model, tmp_path))
    assert [each.op_type for each in imported.graph.node] == ["Neg", "Relu"]
    assert not imported.graph.initializer


def test_every_node_has_a_name_of_its_own(tmp_path: Path) -> None:
    nodes = [node("Relu", ["x"], ["a"], name="n"), node("Neg", ["a"], ["b"], name="n"), node("Abs", ["b"], ["y"])]
    names = [each.name for each in import_model(save(model_of(nodes, {"x": [4]}, ["y"]), tmp_path)).graph.node]
    assert len(set(names)) == 3 and names[0] == "n" and names[2] == "Abs_2"


def test_constants_listed_as_inputs_are_no_inputs(tmp_path: Path) -> None:
    model = model_of([node("Add", ["x", "w"], ["y"])], {"x": [2], "w": [2]}, ["y"], {"w": np.ones(2, np.float32)})
    assert [value.name for value in import_model(save(model, tmp_path)).graph.input] == ["x"]


def test_a_large_constant_result_is_left_to_be_computed(tmp_path: Path) -> None:
    small = RNG.integers(-8, 8, 100_000).astype(np.int8)
    nodes = [node("Cast", ["w"], ["f"], to=FLOAT), node("Add", ["x", "f"], ["y"])]
    model = model_of(nodes, {"x": [100_000]}, ["y"], {"w": small})
    imported = import_model(save(model, tmp_path))
    assert imported.ByteSize() < 1.1 * model.ByteSize()


def test_a_constant_part_that_does_not_grow_is_folded_whole(tmp_path: Path) -> None:
    weight = RNG.standard_normal((4, 20_000)).astype(np.float32)
    nodes = [
        node("Slice", ["w", "two", "four", "axis"], ["a"]),
        node("Slice", ["w", "zero", "two", "axis"], ["b"]),
        node("Concat", ["a", "b"], ["swapped"], axis=0),
        node("Add", ["x", "swapped"], ["y"]),
    ]
    ends = {name: np.asarray([value]) for name, value in (("zero", 0), ("two", 2), ("four", 4), ("axis", 0))}
    model = model_of(nodes, {"x": [4, 20_000]}, ["y"], {"w": weight} | ends)
    assert [each.op_type for each in import_model(save(model, tmp_path)).graph.node] == ["Add"]


def test_old_operator_sets_are_raised(tmp_path: Path) -> None:
    nodes = [node("Unsqueeze", ["x"], ["u"], axes=[0]), node("Softmax", ["u"], ["y"], axis=1)]
    model = model_of(nodes, {"x": [3, 4]}, ["y"], opset=9)
    imported = import_model(save(model, tmp_path))
    assert imported.opset_import[0].version == 13
    x = RNG.standard_normal((3, 4)).astype(np.float32)
    np.testing.assert_allclose(run(imported, {"x": x})[0], run(model, {"x": x})[0], rtol=1e-6)


@pytest.mark.parametrize("as_input", [True, False])
def test_the_first_files_that_list_constants_as_inputs_are_raised(tmp_path: Path, as_input: bool) -> None:
    """ONNX's converter did not find constants that the import had bound."""
    nodes = [node("MatMul", ["x", "w"], ["m"]), node("Squeeze", ["m"], ["y"], axes=[0])]
    inputs = {"x": [1, 3], "w": [3, 5]} if as_input else {"x": [1, 3]}
    model = model_of(nodes, inputs, ["y"], {"w": np.ones((3, 5), np.float32)}, opset=7)
    model.ir_version = 3
    assert [each.op_type for each in import_model(save(model, tmp_path)).graph.node] == ["MatMul", "Squeeze"]


def test_an_output_that_is_constant_stays_an_output(tmp_path: Path) -> None:
    nodes = [node("Relu", ["x"], ["y"]), node("Add", ["c", "c"], ["z"])]
    model = model_of(nodes, {"x": [2]}, ["y", "z"], {"c": np.ones(2, np.float32)})
    imported = import_model(save(model, tmp_path))
    assert [value.name for value in imported.graph.output] == ["y", "z"]
    assert np.array_equal(run(imported, {"x": np.ones(2, np.float32)})[1], [2, 2])


def test_equal_constants_are_kept_once_beside_larger_ones(tmp_path: Path) -> None:
    one, two, larger = RNG.random((4, 4), np.float32), RNG.random((4, 4), np.float32), RNG.random((4, 8), np.float32)
    constants = {"a": one, "b": two, "c": one, "large": larger}
    nodes = [node("MatMul", [before, name], [after]) for before, name, after in zip("xpqr", constants, "pqry")]
    model = model_of(nodes, {"x": [3, 4]}, ["y"], constants)
    kept = [numpy_helper.to_array(each) for each in import_model(save(model, tmp_path)).graph.initializer]
    assert sorted(map(bytes, kept)) == sorted(map(bytes, (one, two, larger)))
