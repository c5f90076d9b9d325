"""Drawn inputs are legal: ONNX Runtime runs models of every constrained operator on them."""

import itertools

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.frontend.canonical.graph_context import NodeView
from passfit.verify.draws.arithmetic_rows import multiply
from passfit.verify.draws.constraint import Constraint, Strength, domain, index, meet, telling
from passfit.verify.draws.draw_values import GENTLE
from passfit.verify.draws.input_constraints import input_constraints
from passfit.verify.draws.known_values import known_values
from passfit.verify.inputs import InputDraws, make_input
from passfit.verify.reference import Reference

from ..models import model_of

node = helper.make_node
F, S, L, B = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL
CASES = range(6)


def graph(nodes, inputs, outputs=("y",), constants=(), opset=17, domain=""):
    """Return a model whose inputs are given as (dtype, shape); outputs are named, or of a dtype by name."""
    dtypes = {name: dtype for name, (dtype, _) in inputs.items()}
    if not isinstance(outputs, tuple):
        dtypes |= outputs
    shapes = {name: shape for name, (_, shape) in inputs.items()}
    return model_of(nodes, shapes, list(outputs), constants, opset=opset, dtypes=dtypes, domain=domain)


def run(model, cases=CASES, finite=True):
    """Run a model on its draws; return inputs and outputs by case."""
    reference, draws = Reference(model), InputDraws(model)
    done = []
    for case in cases:
        inputs = draws.draw(0, case)
        outputs = reference(inputs)
        for name, value in outputs.items() if finite else ():
            assert np.isfinite(value.astype(np.float64)).all(), (name, inputs)
        done.append((inputs, outputs))
    return done


def one(op, inputs, dtype=F, opset=17, outputs=1, at=None, domain="", **attributes):
    """Return a model of one node with its inputs in order; `at` places them, with gaps."""
    places = at or list(range(len(inputs)))
    names = [""] * (max(places) + 1)
    for place, name in zip(places, inputs, strict=True):
        names[place] = name
    results = {name: dtype for name in ["y", *[f"y{number}" for number in range(1, outputs)]]}
    return graph(
        [node(op, names, list(results), domain=domain, **attributes)], inputs, results, opset=opset, domain=domain
    )


NODES = {
    "gather": one("Gather", {"x": (F, [5, 3]), "i": (L, [9])}),
    "gather along 1": one("Gather", {"x": (F, [5, 3]), "i": (S, [2, 4])}, axis=-1),
    "gather 7": one("Gather", {"x": (F, [5, 3]), "i": (L, [9])}, opset=9),
    "gather elements": one("GatherElements", {"x": (F, [5, 3]), "i": (L, [4, 3])}, axis=0),
    "gather nd": one("GatherND", {"x": (F, [2, 5, 3]), "i": (L, [7, 3])}),
    "gather nd by batch": one("GatherND", {"x": (F, [2, 9, 4]), "i": (L, [2, 7, 2])}, batch_dims=1),
    "scatter elements": one("ScatterElements", {"x": (F, [5, 3]), "i": (L, [4, 2]), "u": (F, [4, 2])}, axis=0),
    "scatter elements add": one(
        "ScatterElements", {"x": (F, [5, 3]), "i": (L, [5, 9]), "u": (F, [5, 9])}, axis=1, reduction="add"
    ),
    "scatter nd": one("ScatterND", {"x": (F, [4, 5, 3]), "i": (L, [6, 2]), "u": (F, [6, 3])}),
    "unpool": one("MaxUnpool", {"x": (F, [1, 2, 3, 3]), "i": (L, [1, 2, 3, 3])}, kernel_shape=[2, 2], strides=[2, 2]),
    "one hot": one("OneHot", {"i": (L, [4]), "d": (L, [1]), "v": (F, [2])}),
    "lstm": one("LSTM", {"x": (F, [6, 3, 2]), "w": (F, [1, 8, 2]), "r": (F, [1, 8, 2]), "n": (S, [3])}, at=[0, 1, 2, 4], hidden_size=2),
    "gru": one("GRU", {"x": (F, [6, 3, 2]), "w": (F, [1, 6, 2]), "r": (F, [1, 6, 2]), "n": (S, [3])}, at=[0, 1, 2, 4], hidden_size=2),
    "reverse": one("ReverseSequence", {"x": (F, [6, 3]), "n": (L, [3])}),
    "reverse along 1": one("ReverseSequence", {"x": (F, [3, 6]), "n": (L, [3])}, time_axis=1, batch_axis=0),
    "top k": graph([node("TopK", ["x", "k"], ["y", "at"])], {"x": (F, [3, 6]), "k": (L, [1])}),
    "roi align": one("RoiAlign", {"x": (F, [2, 1, 8, 9]), "r": (F, [5, 4]), "i": (L, [5])}, spatial_scale=0.5),
    "roi pool": one("MaxRoiPool", {"x": (F, [2, 1, 8, 9]), "r": (F, [5, 5])}, pooled_shape=[2, 2]),
    "suppression": one(
        "NonMaxSuppression",
        {"b": (F, [1, 6, 4]), "s": (F, [1, 1, 6]), "k": (L, [1]), "o": (F, [1]), "t": (F, [1])}, dtype=L,
    ),
    "grid": one("GridSample", {"x": (F, [1, 1, 5, 5]), "g": (F, [1, 3, 3, 2])}),
    "divide": one("Div", {"x": (S, [20]), "z": (S, [20])}, dtype=S),
    "remainder": one("Mod", {"x": (L, [20]), "z": (L, [20])}, dtype=L),
    "divide bytes": one("Div", {"x": (TensorProto.INT8, [40]), "z": (TensorProto.INT8, [40])}, dtype=TensorProto.INT8),
    "divide floats": one("Div", {"x": (F, [200]), "z": (F, [200])}),
    "shift": one("BitShift", {"x": (TensorProto.UINT32, [20]), "z": (TensorProto.UINT32, [20])}, dtype=TensorProto.UINT32, direction="LEFT"),
    "power": one("Pow", {"x": (F, [200]), "z": (F, [200])}),
    "integer power": one("Pow", {"x": (S, [20]), "z": (S, [20])}, dtype=S),
    **{op: one(op, {"x": (F, [200])}) for op in "Log Sqrt Acos Asin Acosh Atanh Reciprocal ReduceLogSum".split()},
    "variance": one("BatchNormalization", {name: (F, [2, 3] if name == "x" else [3]) for name in "xsbmv"}),
    "cumulative": one("CumSum", {"x": (F, [3, 6]), "a": (S, [])}),
    "expand": one("Expand", {"x": (F, [3, 1]), "s": (L, [2])}),
    "tile": one("Tile", {"x": (F, [3, 1]), "s": (L, [2])}),
    "reshape": one("Reshape", {"x": (F, [3, 4]), "s": (L, [3])}),
    "pad": one("Pad", {"x": (F, [3, 4]), "p": (L, [4])}),
    "slice": one("Slice", {"x": (F, [3, 4]), "b": (L, [2]), "e": (L, [2]), "a": (L, [2]), "s": (L, [2])}),
    "unsqueeze": one("Unsqueeze", {"x": (F, [3, 4]), "a": (L, [2])}),
    "reduce": one("ReduceSum", {"x": (F, [3, 4]), "a": (L, [2])}),
    "resize": one("Resize", {"x": (F, [1, 1, 3, 4]), "s": (F, [4])}, at=[0, 2]),
    "loss": one("NegativeLogLikelihoodLoss", {"x": (F, [3, 5]), "t": (L, [3])}),
    "cast": one("Cast", {"x": (F, [50])}, dtype=TensorProto.UINT8, to=TensorProto.UINT8),
    "embedding": graph(
        [node("EmbedLayerNormalization", list("iswpgabmq"), ["y", "n"], domain="com.microsoft")],
        {"i": (S, [2, 4]), "s": (S, [2, 4]), "w": (F, [30, 8]), "p": (F, [6, 8]), "g": (F, [2, 8]),
         "a": (F, [8]), "b": (F, [8]), "m": (S, [2, 4]), "q": (S, [2, 4])}, {"y": F, "n": S}, domain="com.microsoft",
    ),
    **{
        f"attention {shape}": one(
            "Attention", {"x": (F, [2, 4, 8]), "w": (F, [8, 24]), "b": (F, [24]), "m": (S, shape)}, domain="com.microsoft", num_heads=2
        )
        for shape in ([2], [4], [8], [2, 4], [2, 4, 4])
    },
    "heads": one(
        "MultiHeadAttention", {"q": (F, [2, 4, 8]), "k": (F, [2, 5, 8]), "v": (F, [2, 5, 8]), "m": (S, [2, 5])},
        at=[0, 1, 2, 4], domain="com.microsoft", num_heads=2,
    ),
    "groups": one(
        "GroupQueryAttention",
        {"q": (F, [2, 4, 16]), "k": (F, [2, 4, 8]), "v": (F, [2, 4, 8]), "n": (S, [2]), "t": (S, [])},
        at=[0, 1, 2, 5, 6], outputs=3, domain="com.microsoft", num_heads=2, kv_num_heads=1,
    ),
    "rotary": one(
        "RotaryEmbedding", {"x": (F, [2, 4, 8]), "p": (L, [1]), "c": (F, [9, 4]), "s": (F, [9, 4])}, domain="com.microsoft"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
def test_a_node_runs_on_every_draw(name):
    run(NODES[name])


@pytest.mark.parametrize("case", CASES)
def test_positions_are_drawn_from_both_ends_of_the_axis(case):
    drawn = make_input(one("Gather", {"x": (F, [50, 3]), "i": (L, [2000])}), 0, case)["i"]
    assert set(np.unique(drawn)) == set(range(-50, 50))


def test_coordinates_reach_the_end_of_each_axis():
    drawn = make_input(one("GatherND", {"x": (F, [2, 5, 30]), "i": (L, [2000, 3])}), 0, 0)["i"]
    assert drawn.min(0).tolist() == [-2, -5, -30] and drawn.max(0).tolist() == [1, 4, 29]


@pytest.mark.parametrize("name, axis", [("scatter elements", 0), ("scatter nd", None), ("unpool", None)])
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_written_twice(name, axis, case):
    model = NODES[name]
    drawn, sizes = (
        make_input(model, 0, case)["i"],
        {"scatter elements": [5], "scatter nd": [4, 5], "unpool": [72]}[name],
    )
    places = drawn % np.asarray(sizes)
    lines = places.T if axis == 0 else [[tuple(row) for row in places] if name == "scatter nd" else places.reshape(-1)]
    for line in lines:
        line = [each if isinstance(each, tuple) else int(each) for each in line]
        assert len(set(line)) == len(line)


BEFORE = {
    "Cast": lambda x: [node("Cast", [x], ["n"], to=S)],
    "Reshape": lambda x: [node("Reshape", [x, "flat"], ["n"])],
    "Add": lambda x: [node("Add", [x, "three"], ["n"])],
    "Sub": lambda x: [node("Sub", ["three", x], ["n"])],
    "Mul": lambda x: [node("Mul", [x, "three"], ["n"])],
    "Div": lambda x: [node("Div", [x, "three"], ["n"])],
    "Neg": lambda x: [node("Neg", [x], ["n"])],
    "Abs": lambda x: [node("Abs", [x], ["n"])],
    "Concat": lambda x: [node("Concat", [x, x], ["n"], axis=0)],
    "Sum of both": lambda x: [node("Add", [x, "other"], ["n"])],
    "Difference": lambda x: [node("Sub", [x, "other"], ["n"])],
    "Product": lambda x: [node("Mul", [x, "other"], ["n"])],
    "Slice": lambda x: [node("Slice", [x, "zero", "two"], ["n"])],
    "Clip": lambda x: [node("Min", [x, "three"], ["n"])],
}


@pytest.mark.parametrize("kinds", list(itertools.combinations(BEFORE, 2)), ids="-".join)
def test_positions_are_legal_after_moves_and_arithmetic(kinds):
    first, second = (BEFORE[kind] for kind in kinds)
    nodes = [*first("i"), node("Cast", ["n"], ["i2"], to=L)]
    rest = second("i2")
    for each in rest:
        each.output[0] = "m"
    model = graph(
        [*nodes, *rest, node("Gather", ["table", "m"], ["y"])], {"i": (L, [6]), "other": (L, [1])},
        constants={"table": np.arange(40, dtype=np.float32), "three": np.asarray(3), "flat": np.asarray([-1]),
                   "zero": np.asarray([0]), "two": np.asarray([2])},
    )  # fmt: skip
    if "Cast" in kinds:
        for each in model.graph.node:
            if each.op_type == "Cast":
                each.attribute[0].i = L
    run(model)


@pytest.mark.parametrize("op, low", [("Log", 0.01), ("Sqrt", 0), ("Acosh", 1)])
@pytest.mark.parametrize("before", ["Add", "Sub", "Neg", "Mul", "Relu", "Clip", "Mean"])
def test_arguments_lie_in_the_domain_after_arithmetic(op, low, before):
    nodes = {
        "Add": [node("Add", ["x", "c"], ["n"])], "Sub": [node("Sub", ["c", "x"], ["n"])], "Neg": [node("Neg", ["x"], ["n"])],
        "Mul": [node("Mul", ["x", "c"], ["n"])], "Relu": [node("Relu", ["x"], ["n"])],
        "Clip": [node("Max", ["x", "c"], ["n"])], "Mean": [node("ReduceMean", ["x"], ["n"])],
    }[before]  # fmt: skip
    run(
        graph(
            [*nodes, node(op, ["n"], ["y"])],
            {"x": (F, [2, 30])},
            constants={"c": np.float32(-1.5) if before != "Clip" else np.float32(low)},
        )
    )


def _body(name, nodes, inputs, outputs):
    values = [helper.make_tensor_value_info(*value) for value in inputs]
    return helper.make_graph(nodes, name, values, [helper.make_tensor_value_info(*value) for value in outputs])


@given(st.lists(st.sampled_from([-np.inf, *np.arange(-6, 7) / 2.0, np.inf]), min_size=2, max_size=2, unique=True))
def test_a_product_of_two_inputs_is_in_the_interval(sides):
    low, high = sorted(sides)
    model = graph([node("Mul", ["x", "z"], ["y"])], {"x": (F, []), "z": (F, [])})
    product, wanted = NodeView(model.graph.node[0], known_values(model)[1]), Constraint(low, high, Strength.UNDEFINED)
    x, z = (multiply(product, wanted, number) for number in (0, 1))
    corners = [a * b for a in np.clip([x.low, x.high], -1e9, 1e9) for b in np.clip([z.low, z.high], -1e9, 1e9)]
    assert low - 1e-9 <= min(corners) and max(corners) <= high + 1e-9


def test_positions_in_branches_and_loops_are_legal():
    then = _body("then", [node("Gather", ["table", "i"], ["a"])], [], [("a", F, [6])])
    other = _body("else", [node("Gather", ["small", "i"], ["b"])], [], [("b", F, [6])])
    step = _body(
        "step", [node("Gather", ["small", "at"], ["s"]), node("Identity", ["keep"], ["kept"]), node("Identity", ["at"], ["next"])],
        [("trip", L, []), ("keep", B, []), ("at", L, [2])], [("kept", B, []), ("next", L, [2]), ("s", F, [2])],
    )  # fmt: skip
    scan = _body(
        "scan", [node("Gather", ["table", "j"], ["t"]), node("Add", ["sum", "t"], ["more"])],
        [("sum", F, [2]), ("j", L, [2])], [("more", F, [2])],
    )  # fmt: skip
    model = graph(
        [
            node("If", ["c"], ["y"], then_branch=then, else_branch=other),
            node("Loop", ["m", "go", "k"], ["last", "z"], body=step),
            node("Scan", ["start", "js"], ["w"], body=scan, num_scan_inputs=1),
        ],
        {"i": (L, [6]), "c": (B, []), "m": (L, []), "go": (B, []), "k": (L, [2]), "start": (F, [2]), "js": (L, [5, 2])},
        ("y", "w"), {"table": np.arange(9, dtype=np.float32), "small": np.arange(4, dtype=np.float32)},
    )  # fmt: skip
    found = input_constraints(model)
    assert {name: (found[name].low, found[name].high) for name in "ik"} == {"i": (-4, 3), "k": (-4, 3)}
    assert (found["js"].low, found["js"].high) == (-9, 8)
    run(model, range(12))


def test_positions_in_a_function_of_the_model_are_legal():
    inner = helper.make_function(
        "own", "Look", ["a", "b"], ["c"], [node("Gather", ["a", "b"], ["c"])], [helper.make_opsetid("", 17)]
    )
    model = graph(
        [node("Look", ["table", "i"], ["y"], domain="own")],
        {"i": (L, [6])},
        constants={"table": np.ones(7, np.float32)},
        domain="own",
    )
    model.functions.append(inner)
    found = input_constraints(model)["i"]
    assert (found.low, found.high) == (-7, 6)


def test_an_unknown_operator_stops_nothing():
    model = graph(
        [node("Mystery", ["x"], ["h"], domain="vendor"), node("Gather", ["h", "i"], ["y"]), node("Log", ["z"], ["w"])],
        {"x": (F, [3]), "i": (L, [4]), "z": (F, [4])}, ("y", "w"), domain="vendor",
    )  # fmt: skip
    drawn = make_input(model, 0, 0)
    assert set(np.unique(drawn["i"])) <= {-1, 0} and (drawn["z"] > 0).all()


def test_integers_that_only_move_take_the_whole_range_and_others_stay_small():
    moved = graph([node("Transpose", ["x"], ["y"])], {"x": (S, [30, 30])}, {"y": S})
    summed = graph([node("MatMul", ["x", "w"], ["y"])], {"x": (S, [30, 30]), "w": (S, [30, 30])}, {"y": S})
    assert max(np.abs(make_input(moved, 0, 2)["x"].astype(np.int64)).max() for _ in CASES) > 1 << 29
    assert np.abs(make_input(summed, 0, 2)["x"]).max() == 1000
    assert set(np.unique(make_input(summed, 0, 0)["x"])) == {0, 1}
    assert set(np.unique(make_input(summed, 0, 1)["x"])) == set(range(-9, 10))


@pytest.mark.parametrize("dtype", ["INT4", "UINT4", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64", "BOOL",
                                   "FLOAT16", "BFLOAT16", "FLOAT", "DOUBLE"])  # fmt: skip
def test_every_dtype_can_be_drawn(dtype):
    number = getattr(TensorProto, dtype)
    model = graph([node("Identity", ["x"], ["y"])], {"x": (number, [3000])}, {"y": number}, opset=21)
    for case in CASES:
        drawn = make_input(model, 0, case)["x"]
        assert drawn.dtype == helper.tensor_dtype_to_np_dtype(number)
        if dtype in ("INT4", "UINT4", "INT8", "UINT8"):
            limits = ml_dtypes.iinfo(drawn.dtype)
            assert (int(drawn.astype(int).min()), int(drawn.astype(int).max())) == (limits.min, limits.max)


def test_a_sequence_or_a_string_is_refused_by_name():
    model = graph([], {"x": (F, [1])})
    model.graph.input[0].CopyFrom(helper.make_tensor_sequence_value_info("x", F, [1]))
    for each in (model, graph([], {"x": (TensorProto.STRING, [1])})):
        with pytest.raises(ModelError, match="'x'"):
            make_input(each, 0, 0)


def test_an_additive_mask_hides_some_positions_never_the_first():
    model = graph(
        [node("MatMul", ["q", "k"], ["s"]), node("Add", ["s", "mask"], ["t"]), node("Softmax", ["t"], ["y"])],
        {"q": (F, [2, 3, 4, 5]), "k": (F, [2, 3, 5, 6]), "mask": (F, [2, 1, 4, 6])},
    )
    drawn = make_input(model, 0, 2)["mask"]
    assert set(np.unique(drawn)) == {-1e4, 0} and (drawn[..., 0] == 0).all()
    assert not set(np.unique(make_input(model, 0, 0)["mask"])) & {-1e4, 0}


def test_a_mask_that_is_inverted_is_0_or_1():
    model = graph(
        [node("Cast", ["m"], ["f"], to=F), node("Sub", ["one", "f"], ["n"]), node("Mul", ["n", "low"], ["y"])],
        {"m": (L, [4, 50])}, constants={"one": np.float32(1), "low": np.float32(-1e4)},
    )  # fmt: skip
    assert all(set(np.unique(make_input(model, 0, case)["m"])) == {0, 1} for case in CASES)


def test_gentle_draws_are_finite_and_differ():
    model = graph([node("Identity", ["x"], ["y"])], {"x": (F, [30])})
    drawn = [make_input(model, 0, GENTLE + case)["x"] for case in range(3)]
    assert (drawn[0] > 0).all() and np.abs(drawn[1]).max() < 0.1 and set(drawn[2]) == {1.0}


LIMITS = st.one_of(st.integers(-1000, 1000), st.just(-np.inf), st.just(np.inf))


@st.composite
def constraints(draw):
    low, high = sorted((draw(LIMITS), draw(LIMITS)))
    return Constraint(
        min(low, 1000),
        max(high, -1000),
        draw(st.sampled_from(Strength)),
        frozenset(draw(st.sets(st.integers(-3, 3), max_size=2))),
    )


@given(constraints(), constraints())
def test_a_meeting_is_symmetric_and_keeps_the_stronger_one(one, other):
    both = meet(one, other)
    if one.strength != other.strength:
        assert both == meet(other, one)
        stronger = max(one, other, key=lambda each: each.strength)
        if stronger.strength >= Strength.UNDEFINED:
            assert stronger.low <= both.low <= both.high <= stronger.high
    assert both.strength == max(one.strength, other.strength) and both.avoid == one.avoid | other.avoid


@given(
    constraints(), st.sampled_from([np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64]), st.integers(0, 5)
)
def test_integers_lie_in_the_interval_and_differ_from_values_to_avoid(wanted, dtype, case):
    from passfit.verify.draws.draw_values import draw_integers

    drawn, again = (draw_integers(np.random.default_rng(0), (50,), np.dtype(dtype), case, wanted) for _ in range(2))
    assert np.array_equal(drawn, again)
    limits = np.iinfo(dtype)
    low, high = max(wanted.low, limits.min), min(wanted.high, limits.max)
    if low + len(wanted.avoid) <= high and wanted.strength > Strength.ANY:
        assert (drawn >= low).all() and (drawn <= high).all()
        assert not set(drawn.tolist()) & wanted.avoid


@given(constraints(), st.integers(0, 5))
def test_floats_lie_in_the_interval(wanted, case):
    from passfit.verify.draws.draw_values import draw_floats

    drawn = draw_floats(np.random.default_rng(0), (50,), case, wanted)
    if not wanted.avoid:
        assert (drawn >= wanted.low).all() and (drawn <= wanted.high).all()


def test_constraints_meet_as_the_model_needs():
    assert meet(index(10), telling(0, 1)) == index(10)
    assert meet(domain(0), index(10)).low == 0
    assert meet(telling(0, 5), telling(0, 90)).high == 90
    assert meet(index(10), domain(50)).high == 9


def test_a_models_weights_are_not_copied():
    weights = np.zeros((4096, 1024), np.float32)
    model = graph([node("Gather", ["w", "i"], ["y"])], {"i": (L, [4])}, constants={"w": weights})
    import tracemalloc

    tracemalloc.start()
    try:
        make_input(model, 0, 0)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()  # it would slow every later test of this process down
    assert most < weights.nbytes // 8
    assert isinstance(model, onnx.ModelProto)


@pytest.mark.parametrize("inverted", [False, True])
def test_a_condition_never_hides_all_logits(inverted):
    model = graph(
        [
            node("Not" if inverted else "Identity", ["m"], ["c"]),
            node("Where", ["c", "low", "s"], ["t"]), node("Softmax", ["t"], ["y"]),
        ],
        {"m": (B, [30, 2]), "s": (F, [30, 2])}, constants={"low": np.float32(-np.inf)},
    )  # fmt: skip
    run(model)


def test_arguments_lie_in_the_domain_through_quantisation():
    model = graph(
        [
            node("QuantizeLinear", ["x", "scale", "zero"], ["q"]), node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
            node("Log", ["d"], ["y"]),
            node("DequantizeLinear", ["b", "scale", "zero"], ["e"]), node("Sqrt", ["e"], ["z"]),
        ],
        {"x": (F, [60]), "b": (TensorProto.UINT8, [60])}, ("y", "z"), {"scale": np.float32(0.02), "zero": np.uint8(100)},
    )  # fmt: skip
    run(model)


def test_categories_are_drawn_from_those_that_an_encoder_knows():
    encoder = one("OneHotEncoder", {"x": (L, [9, 1])}, domain="ai.onnx.ml", cats_int64s=[7, 8, 9])
    assert {int(each) for inputs, _ in run(encoder) for each in inputs["x"].flat} == {7, 8, 9}


@pytest.mark.parametrize(
    "before",
    [
        [node("Identity", ["x"], ["flags"])],
        [node("Greater", ["x", "half"], ["flags"])],
        [node("LessOrEqual", ["x", "half"], ["flags"])],
    ],
    ids=["itself", "greater", "less"],
)
def test_lengths_that_the_data_decide_are_0_and_1_and_others(before):
    nodes = [*before, node("NonZero", ["flags"], ["y"])]
    model = graph(nodes, {"x": (F, [4, 5])}, {"y": L}, {"half": np.array(0.5, np.float32)})
    counts = [outputs["y"].shape[1] for _, outputs in run(model, range(3))]
    assert counts[1:] == [0, 1] and 1 < counts[0] < 20
    flags = graph([node("Compress", ["x", "c"], ["y"], axis=0)], {"x": (F, [9]), "c": (B, [9])})
    assert [outputs["y"].size for _, outputs in run(flags, range(3))][1:] == [0, 1]
