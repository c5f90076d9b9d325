import numpy as np
import pytest
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.verify.draws.input_constraints import input_constraints
from passfit.verify.inputs import make_input

from ..models import model_of


def make_inputs(graph, seed, cases):
    return [make_input(graph, seed, case) for case in range(cases)]


def model(inputs: dict[str, tuple[int, list]], nodes=(), outputs=("y",)):
    dtypes = {name: dtype for name, (dtype, _) in inputs.items()}
    return model_of(nodes, {name: shape for name, (_, shape) in inputs.items()}, outputs, dtypes=dtypes)


def embedding(dtype=TensorProto.INT64):
    """Make ids → Cast → Reshape → Gather from a table of 5 rows, and from another of 3."""
    return model(
        {"ids": (dtype, [200]), "table": (TensorProto.FLOAT, [5, 2]), "small": (TensorProto.FLOAT, [2, 3])},
        [
            helper.make_node("Cast", ["ids"], ["wide"], to=TensorProto.INT64),
            helper.make_node("Gather", ["table", "wide"], ["y"]),
            helper.make_node("Gather", ["small", "wide"], ["z"], axis=1),
        ],
    )


def test_the_same_seed_gives_the_same_inputs_and_another_seed_others():
    graph = model({"x": (TensorProto.FLOAT, [3, 4]), "n": (TensorProto.INT64, [8])})
    first, again, other = (make_inputs(graph, seed, 3) for seed in (0, 0, 1))
    for a, b, c in zip(first, again, other, strict=True):
        assert all(np.array_equal(a[name], b[name]) for name in a)
        assert not np.array_equal(a["x"], c["x"])
    assert not np.array_equal(first[0]["x"], first[2]["x"])


def test_an_inputs_values_do_not_depend_on_other_inputs():
    alone = make_inputs(model({"x": (TensorProto.FLOAT, [5])}), 0, 1)[0]["x"]
    beside = make_inputs(model({"w": (TensorProto.FLOAT, [9]), "x": (TensorProto.FLOAT, [5])}), 0, 1)[0]["x"]
    assert np.array_equal(alone, beside)


@pytest.mark.parametrize("dtype", [TensorProto.INT64, TensorProto.INT32])
def test_indices_stay_within_the_smallest_axis_they_index(dtype):
    graph = embedding(dtype)
    found = input_constraints(graph)["ids"]
    assert (found.low, found.high) == (-3, 2)
    assert set(np.unique(make_inputs(graph, 0, 1)[0]["ids"])) == set(range(-3, 3))


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (TensorProto.BOOL, 0, 1),
        (TensorProto.UINT8, 0, 255),
        (TensorProto.INT8, -128, 127),
        (TensorProto.INT64, 0, 1),
        (TensorProto.INT32, 0, 1),
    ],
)
def test_integers_are_plausible(dtype, low, high):
    values = make_inputs(model({"x": (dtype, [4000])}), 0, 1)[0]["x"]
    assert values.dtype == helper.tensor_dtype_to_np_dtype(dtype)
    assert (values.min(), values.max()) == (low, high)


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16])
def test_floats_are_normal_uniform_and_patches_in_turn(dtype):
    cases = make_inputs(model({"x": (dtype, [2, 1000])}), 0, 3)
    normal, uniform, patches = (case["x"].astype(np.float64) for case in cases)
    assert normal.min() < -1 and abs(normal.mean()) < 0.2
    assert uniform.min() >= 0 and uniform.max() <= 1
    assert set(np.unique(patches)) == {0, 1} and np.mean(np.diff(patches[0]) == 0) > 0.5


def test_scalars_and_empty_tensors():
    case = make_inputs(model({"x": (TensorProto.FLOAT, []), "y": (TensorProto.INT64, [0, 3])}), 0, 1)[0]
    assert case["x"].shape == () and case["y"].shape == (0, 3)
    assert isinstance(case["x"], np.ndarray)


def test_a_scalar_is_an_array_in_every_case():
    for inputs in make_inputs(model({"x": (TensorProto.FLOAT, []), "n": (TensorProto.INT64, [])}), 0, 3):
        assert all(isinstance(value, np.ndarray) and value.shape == () for value in inputs.values())


def test_a_dynamic_shape_or_a_string_is_refused():
    with pytest.raises(ModelError, match="'x'.*static shape"):
        make_inputs(model({"x": (TensorProto.FLOAT, ["n"])}), 0, 1)
    with pytest.raises(ModelError, match="'x'"):
        make_inputs(model({"x": (TensorProto.STRING, [1])}), 0, 1)


@pytest.mark.parametrize("case", range(3))
def test_scales_of_integers_are_positive(case):
    names = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"]
    kinds = {name: TensorProto.FLOAT if "scale" in name else TensorProto.INT8 for name in names}
    shapes = {"a": [2, 3], "b": [3, 4]}
    graph = model(
        {name: (kinds[name], shapes.get(name, [])) for name in names}, [helper.make_node("QLinearMatMul", names, ["y"])]
    )
    made = make_input(graph, 0, case)
    assert all(made[name] > 0 and made[name].shape == () for name in names if "scale" in name)
