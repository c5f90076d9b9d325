"""Test what a file is read as: its operator set as ONNX Runtime reads it, its constants wherever they are written."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, defs, helper, numpy_helper, parser, save

from passfit.errors import ModelError
from passfit.frontend.canonical.opset import lower_opset
from passfit.frontend.canonical.read_onnx import NEWEST, operator_set
from passfit.frontend.canonicalise import import_model

from ...models import model_of, run

#: set 11 reads Softmax along all axes from the first one on, set 17 along one
SETS = [
    [("", 11)],
    [("ai.onnx", 11)],
    [("", 11), ("ai.onnx", 17)],
    [("ai.onnx", 17), ("", 11)],
    [("", 17), ("", 11)],
    [("", 11), ("mine", 20)],
    [("mine", 11)],
]


@pytest.mark.parametrize("sets", SETS, ids=str)
@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_models_are_read_in_the_operator_set_of_onnx_runtime(tmp_path, sets, domain):
    model = model_of([helper.make_node("Softmax", ["x"], ["y"], domain=domain)], {"x": [2, 3, 4]}, {"y": [2, 3, 4]})
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*each) for each in sets)
    save(model, tmp_path / "m.onnx")
    canonical = import_model(tmp_path / "m.onnx")
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    given, own = (ort.InferenceSession(each.SerializeToString()).run(None, {"x": x})[0] for each in (model, canonical))
    assert np.allclose(given, own)


def test_a_set_that_is_not_declared_is_the_newest_unless_the_caller_knows_better():
    imports = [helper.make_opsetid("mine", 3)]
    assert operator_set(imports) == NEWEST
    assert operator_set(imports, undeclared=0) == 0


#: dtypes with a field of their own beside the raw bytes, and how many of their numbers a number of that field holds
PACKED = {
    "BFLOAT16": 1, "BOOL": 1, "FLOAT16": 1, "FLOAT8E4M3FN": 1, "FLOAT8E4M3FNUZ": 1, "FLOAT8E5M2": 1, "FLOAT8E5M2FNUZ": 1,
    "INT16": 1, "INT2": 4, "INT4": 2, "INT8": 1, "UINT16": 1, "UINT2": 4, "UINT4": 2, "UINT8": 1,
}  # fmt: skip


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("size", [3, 8])
def test_constants_are_equal_in_all_fields_and_files(tmp_path, name, size):
    number = getattr(TensorProto, name)
    dtype = helper.tensor_dtype_to_np_dtype(number)
    raw = numpy_helper.from_array(np.random.default_rng(size).integers(0, 2, size).astype(dtype), "w")
    words = np.frombuffer(raw.raw_data, "u1" if PACKED[name] > 1 else f"u{dtype.itemsize}")
    typed = TensorProto(name="w", data_type=number, dims=[size], int32_data=words.tolist())
    nodes = [helper.make_node("Cast", ["w"], ["f"], to=TensorProto.FLOAT), helper.make_node("Mul", ["x", "f"], ["y"])]
    found = []
    for kind, tensor in (("raw", raw), ("typed", typed), ("side", raw)):
        model = model_of(nodes, {"x": [size]}, {"y": [size]}, [tensor], opset=25)
        file = tmp_path / f"{kind}.onnx"
        save(model, file, save_as_external_data=kind == "side", location=f"{kind}.bin", size_threshold=0)
        found.append(import_model(file).SerializeToString(deterministic=True))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("dims", [(2, 3), (-1, 3)])
def test_a_constant_of_another_size_than_its_shape_is_refused_by_name(tmp_path, dims):
    tensor = TensorProto(name="w", data_type=TensorProto.INT64, dims=dims, int64_data=[1, 2, 3])
    save(
        model_of([helper.make_node("Add", ["x", "w"], ["y"])], {"x": [3]}, {"y": [2, 3]}, [tensor]), tmp_path / "m.onnx"
    )
    with pytest.raises(ModelError, match=f"'w' whose numbers are not those of its shape {dims[0]}x3"):
        import_model(tmp_path / "m.onnx")


@pytest.mark.parametrize("operator", ["DequantizeLinear", "Mul"])
def test_a_constant_of_a_dtype_that_onnx_does_not_define_is_refused_by_name(tmp_path, operator):
    tensor = TensorProto(name="w", data_type=2**31 - 1, dims=[], raw_data=bytes(4))
    save(
        model_of([helper.make_node(operator, ["x", "w"], ["y"])], {"x": [3]}, {"y": [3]}, [tensor]), tmp_path / "m.onnx"
    )
    with pytest.raises(ModelError, match="constant 'w' of dtype number 2147483647, which ONNX does not define"):
        import_model(tmp_path / "m.onnx")


@pytest.mark.parametrize("place", ["input", "output", "value_info"])
def test_a_value_of_a_dtype_that_onnx_does_not_define_is_refused_by_name(tmp_path, place):
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [3]}, {"y": [3]})
    getattr(model.graph, place).append(helper.make_tensor_value_info("u", 67, [3]))
    save(model, tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="value 'u' has the dtype number 67, which ONNX does not define"):
        import_model(tmp_path / "m.onnx")


@pytest.mark.parametrize("version", [3, 4, 10])
def test_a_constant_may_be_an_input_too(tmp_path, version):
    """Whose default value it is; files of version 3 list every one."""
    text = f"""<ir_version: {version}, opset_import: ["" : 8]> m (float[2, 3] x, float[3, 2] w, int64[2] s) => (float[2, 2] y)
        <float[3, 2] w = {{1, 2, 3, 4, 5, 6}}, int64[2] s = {{3, 2}}> {{ v = Reshape(w, s) y = MatMul(x, v) }}"""
    model = parser.parse_model(text)
    save(model, tmp_path / "m.onnx")
    canonical = import_model(tmp_path / "m.onnx")
    x = {"x": np.float32([[1, 2, 3], [4, 5, 6]])}
    assert [value.name for value in canonical.graph.input] == ["x"]
    assert np.array_equal(run(canonical, x)[0], x["x"] @ np.float32([[1, 2], [3, 4], [5, 6]]))


@pytest.mark.parametrize("form", ["initializer", "node"])
@pytest.mark.parametrize("places", [[1, 5], [[0, 1], [1, 2]]], ids=["of elements", "by axis"])
def test_a_sparse_constant_is_a_dense_one(tmp_path, form, places):
    numbers = numpy_helper.from_array(np.float32([3, 4]), "w" if form == "initializer" else "")
    sparse = helper.make_sparse_tensor(numbers, numpy_helper.from_array(np.int64(places), "places"), [2, 3])
    nodes = [helper.make_node("Constant", [], ["w"], sparse_value=sparse)] if form == "node" else []
    model = model_of([*nodes, helper.make_node("Add", ["x", "w"], ["y"])], {"x": [2, 3]}, {"y": [2, 3]})
    model.graph.sparse_initializer.extend([sparse] if form == "initializer" else [])
    save(model, tmp_path / "m.onnx")
    x = {"x": np.ones((2, 3), np.float32)}
    expected = np.float32([[1, 4, 1], [1, 1, 5]])
    assert np.array_equal(run(model, x)[0], expected)
    assert np.array_equal(run(import_model(tmp_path / "m.onnx"), x)[0], expected)


@pytest.mark.parametrize(
    "dims, places", [([2, 3], [6]), ([2, 3], [[2, 0]]), ([2, 3], [0, 1]), ([100_000, 100_000], [0])], ids=str
)
def test_a_sparse_constant_of_wrong_places_or_vast_size_is_refused(tmp_path, dims, places):
    sparse = onnx.SparseTensorProto(
        values=numpy_helper.from_array(np.float32([3]), "w"),
        indices=numpy_helper.from_array(np.int64(places), "p"),
        dims=dims,
    )
    model = model_of([helper.make_node("Add", ["x", "w"], ["y"])], {"x": [2, 3]}, {"y": [2, 3]})
    model.graph.sparse_initializer.append(sparse)
    save(model, tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="sparse constant 'w'"):
        import_model(tmp_path / "m.onnx")
    sparse.indices.data_type = 2**31 - 1
    save(model, tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="sparse constant 'w'"):
        import_model(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    "nodes",
    [
        "{ a = Neg(x) a = Abs(x) y = Relu(a) }",
        "{ x = Neg(x) y = Abs(x) }",
        "<float[2] a = {1, 2}> { a = Neg(x) y = Add(a, x) }",
        """<bool c = {1}> { a = Neg(x) y = If(c) <then_branch = t () => (float[2] k) { a = Abs(x) k = Neg(a) },
                            else_branch = e () => (float[2] k) { k = Neg(x) }> }""",
        '{ y = l.f(x) } <domain: "l", opset_import: ["" : 17]> f (x) => (b) { a = Neg(x) a = Abs(a) b = Neg(a) }',
    ],
    ids=["of two nodes", "of an input", "of a constant", "in a branch", "in a function"],
)
def test_two_values_of_one_name_are_refused(tmp_path, nodes):
    text = f'<ir_version: 8, opset_import: ["" : 17, "l" : 1]> m (float[2] x) => (float[2] y) {nodes}'
    save(parser.parse_model(text), tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="makes '[ax]', and another value has that name already"):
        import_model(tmp_path / "m.onnx")


def test_an_operator_that_only_takes_more_dtypes_in_a_set_after_the_newest_is_read(tmp_path):
    """ONNX Runtime reads Cast of set 28 as that of the newest set it knows, 25's; one that is new in that set is refused."""
    model = model_of(
        [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT32)],
        {"x": [3]},
        {"y": [3]},
        opset=28,
        dtypes={"y": TensorProto.INT32},
    )
    save(model, tmp_path / "m.onnx")
    x = {"x": np.float32([1.5, -2.5, 3])}
    canonical = import_model(tmp_path / "m.onnx")
    assert operator_set(canonical.opset_import) == defs.get_schema("Cast", NEWEST).since_version
    assert np.array_equal(run(canonical, x)[0], run(model, x)[0])
    new = model_of([helper.make_node("SwiGLU", ["x", "x"], ["y"], name="gate")], {"x": [4]}, {"y": [4]}, opset=28)
    with pytest.raises(ModelError, match="needs operator set 28; the newest that can be compiled is 26"):
        lower_opset(new)


def test_texts_in_another_encoding_are_read_as_onnx_runtime_reads_them(tmp_path):
    model = model_of(
        [helper.make_node("MatMul", ["x", "w@@"], ["y"], name="n@@", doc_string="d@@")],
        {"x": [2, 64]},
        {"y": [2, 96]},
        {"w@@": np.random.default_rng(0).normal(size=(64, 96)).astype(np.float32)},  # large: it is written back
    )
    model.graph.name, model.graph.doc_string, model.producer_name, model.graph.input[0].doc_string = (
        "g@@",
        "d@@",
        "p@@",
        "i@@",
    )
    helper.set_model_props(model, {"key@@": "value@@"})
    content = model.SerializeToString().replace(b"@@", b"\xe9\xe8")
    (tmp_path / "m.onnx").write_bytes(content)
    x = {"x": np.ones((2, 64), np.float32)}
    assert np.array_equal(ort.InferenceSession(content).run(None, x)[0], run(import_model(tmp_path / "m.onnx"), x)[0])


@pytest.mark.parametrize(
    "node, said",
    [
        (helper.make_node("Upsample", ["x", "s"], ["y"], mode="nearest@@"), r"the attribute 'mode', whose text is not UTF-8"),
        (helper.make_node("Softmax", ["x"], ["y"], **{"axi@@": 1}), r"axi\\xe9\\xe8"),
        (helper.make_node("Unsqueeze", ["x"], ["y"], **{"ax@@s": [0]}), r"ax\\xe9\\xe8s"),
        (helper.make_node("Cast", ["x"], ["v"], to=99), "99|not valid ONNX|takes no"),
    ],
    ids=["of an attribute", "an attribute's name", "the name of one that is needed", "a dtype's number"],
)  # fmt: skip
def test_what_is_not_onnx_is_refused_in_a_sentence_whatever_its_bytes(tmp_path, node, said):
    model = model_of([node], {"x": [2, 3]}, {node.output[0]: [2, 3]}, {"s": np.ones(2, np.float32)}, opset=9)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString().replace(b"@@", b"\xe9\xe8"))
    with pytest.raises(ModelError, match=said):
        import_model(tmp_path / "m.onnx")


@pytest.mark.parametrize("size", [3, 96])
@pytest.mark.parametrize("other", [1.0, 2.0])
def test_constants_of_one_name_are_refused_unless_they_are_equal(tmp_path, size, other):
    first, second = (numpy_helper.from_array(np.full((64, size), each, np.float32), "w") for each in (1.0, other))
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    save(model_of(nodes, {"x": [2, 64]}, {"y": [2, size]}, [first, second]), tmp_path / "m.onnx")
    if other == 1.0:
        assert np.all(run(import_model(tmp_path / "m.onnx"), {"x": np.ones((2, 64), np.float32)})[0] == 64)
        return
    with pytest.raises(ModelError, match="constant 'w' has the name of another value"):
        import_model(tmp_path / "m.onnx")


@pytest.mark.parametrize("name", ["x", "w", "v", "own"])
def test_a_constant_of_a_branch_with_a_name_from_outside_is_refused(tmp_path, name):
    text = f"""<ir_version: 8, opset_import: ["" : 17]> m (float[2] x, bool c) => (float[2] y) <float[2] w = {{1, 2}}> {{
        v = Add(x, w)
        y = If(c) <then_branch = t () => (float[2] k) <float[2] {name} = {{3, 4}}> {{ k = Neg({name}) }},
                   else_branch = e () => (float[2] j) <float[2] own = {{5, 6}}> {{ j = Mul(v, own) }}> }}"""
    save(parser.parse_model(text), tmp_path / "m.onnx")
    if name == "own":  # as in the other branch, which sees neither
        import_model(tmp_path / "m.onnx")
        return
    with pytest.raises(ModelError, match=f"constant '{name}' has the name of another value"):
        import_model(tmp_path / "m.onnx")
