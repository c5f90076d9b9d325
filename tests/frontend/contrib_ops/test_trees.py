"""Ensembles of trees of `ai.onnx.ml` compute the same in ONNX's own operators; ONNX Runtime runs both."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from skl2onnx import to_onnx
from sklearn.ensemble import RandomForestRegressor

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model
from passfit.frontend.source.import_options import ImportOptions

from ...models import model_of, run, save
from ...profiles import examples
from .same_results import same

TESTS = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def grow_trees(random: np.random.Generator, tests: list[str]) -> tuple[dict[str, list], list[tuple[int, int]]]:
    """Return the tables of random trees as attributes have them, and tree and node of each leaf.

    Trees are unbalanced. Numbers on both sides of the tests are equal at times.
    """
    rows: dict[str, list] = {key: [] for key in ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")}  # fmt: skip
    leaves: list[tuple[int, int]] = []

    def grow(tree: int, number: int, depth: int) -> int:
        """Add the node `number` and all below; return the next free number."""
        leaf = depth == 0 or random.random() < 0.3
        index = len(rows["modes"])
        mode = "LEAF" if leaf else random.choice(tests)
        for key, value in zip(rows, [tree, number, mode, random.integers(3), random.integers(-2, 3), 0, 0, random.integers(2)]):  # fmt: skip
            rows[key].append(value)
        if leaf:
            leaves.append((tree, number))
            return number + 1
        rows["truenodeids"][index] = number + 1
        rows["falsenodeids"][index] = grow(tree, number + 1, depth - 1)
        return grow(tree, rows["falsenodeids"][index], depth - 1)

    for tree in range(random.integers(1, 4)):
        grow(tree, 0, random.integers(4))
    return rows, leaves


def ensemble(
    seed: int, tests: list[str], dtype: type, positive: bool, classes: int, used: tuple[int, ...] = (0,)
) -> onnx.ModelProto:
    """Build a classifier of random trees; that of doubles has numbers that no float32 is."""
    random = np.random.default_rng(seed)
    rows, leaves = grow_trees(random, tests)
    columns = range(classes) if classes > 2 else used
    given = [(tree, leaf, column, random.integers(0 if positive else -8, 9) / 8) for tree, leaf in leaves for column in columns]  # fmt: skip
    attributes = {f"nodes_{key}": values for key, values in rows.items()}
    attributes |= {f"class_{key}": values for key, values in zip(("treeids", "nodeids", "ids", "weights"), zip(*given))}
    if seed % 5 == 0:
        attributes["base_values"] = random.integers(-2, 3, len(columns) if classes > 2 else 1) / 4.0
    for name in ("nodes_values", "class_weights", "base_values"):
        if name in attributes:
            values = np.asarray(attributes.pop(name), np.float64)
            if dtype == np.float64:
                attributes[f"{name}_as_tensor"] = numpy_helper.from_array(values * 1.1)
            else:
                attributes[name] = values.astype(np.float32)
    node = helper.make_node(
        "TreeEnsembleClassifier", ["X"], ["label", "scores"], domain="ai.onnx.ml",
        classlabels_int64s=range(10, 10 + classes), post_transform=("NONE", "LOGISTIC")[seed % 3 == 0], **attributes,
    )  # fmt: skip
    dtypes = {"label": 7, "X": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}
    model = model_of([node], {"X": ["n", 3]}, ["label", "scores"], dtypes=dtypes, domain="ai.onnx.ml", opset=18)
    model.opset_import[1].version = 3
    return model


@settings(max_examples=examples(50))
@given(
    st.integers(0, 2**31),
    st.lists(st.sampled_from(TESTS), min_size=1, max_size=3),
    st.sampled_from([np.float32, np.float64, np.int64]),
    st.booleans(),
    st.integers(2, 4),
    st.sampled_from([(0,), (1,), (0, 1)]),
)
def test_random_trees_take_the_same_branches(tmp_path_factory, seed, tests, dtype, positive, classes, used) -> None:
    rows = np.random.default_rng(seed).integers(-2, 3, (20, 3)).astype(dtype)
    if dtype == np.float64:
        rows *= 1.1
    if dtype != np.int64:
        rows[::3, 1] = np.nan
    same(ensemble(seed, tests, dtype, positive, classes, used), tmp_path_factory.mktemp("trees"), rows)


def numbered(seed: int, dtype: type, targets: int) -> onnx.ModelProto:
    """Build a TreeEnsemble of operator set 5: tests of all kinds, mixed, in trees of branches and leaves."""
    random = np.random.default_rng(seed)
    branches: list[list] = []  # feature, test, split, true, true is a leaf, false, false is a leaf, NaN goes to true
    leaves: list[list] = []
    members: list[float] = []

    def grow(depth: int) -> tuple[int, int]:
        """Add a leaf, or a branch and all below; return its number, and 1 for a leaf."""
        if depth == 0:
            leaves.append([random.integers(targets), random.integers(-8, 9) / 8])
            return len(leaves) - 1, 1
        row = len(branches)
        branches.append(
            [random.integers(3), random.integers(7), random.integers(-2, 3), 0, 0, 0, 0, random.integers(2)]
        )
        if branches[row][1] == 6:
            members.extend([*random.choice(range(5), random.integers(1, 4), replace=False), np.nan])
        branches[row][3:7] = [*grow(random.integers(depth)), *grow(random.integers(depth))]
        return row, 0

    roots = [grow(4)[0] for _ in range(random.integers(1, 4))]
    names = ("featureids", "modes", "splits", "truenodeids", "trueleafs", "falsenodeids", "falseleafs", "missing_value_tracks_true")  # fmt: skip
    table = {f"nodes_{name}": list(column) for name, column in zip(names, zip(*branches))}
    table["nodes_modes"] = numpy_helper.from_array(np.array(table["nodes_modes"], np.uint8))
    ids, weights = zip(*leaves)
    tensors = {"nodes_splits": table["nodes_splits"], "leaf_weights": weights, "membership_values": members}
    attributes = table | {name: numpy_helper.from_array(np.array(values, dtype)) for name, values in tensors.items()}
    how = random.integers(4 if targets == 1 else 2)
    node = helper.make_node(
        "TreeEnsemble", ["X"], ["scores"], domain="ai.onnx.ml", n_targets=targets, leaf_targetids=ids, tree_roots=roots,
        aggregate_function=how, post_transform=random.integers(3), **attributes,
    )  # fmt: skip
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return model_of(
        [node],
        {"X": ["n", 3]},
        ["scores"],
        dtypes={"scores": kind, "X": kind},
        domain="ai.onnx.ml",
        domain_opset=5,
        opset=21,
    )


@settings(max_examples=examples(50))
@given(st.integers(0, 2**31), st.sampled_from([np.float32, np.float64]), st.integers(1, 3))
def test_numbered_branches_and_leaves_are_the_same_trees(tmp_path_factory, seed, dtype, targets) -> None:
    rows = np.random.default_rng(seed).integers(-2, 5, (20, 3)).astype(dtype)
    rows[::3, 1] = np.nan
    same(numbered(seed, dtype, targets), tmp_path_factory.mktemp("trees"), rows)


def stumps(operator: str, columns: int, weights: list[dict[int, float]], **attributes: Any) -> onnx.ModelProto:
    """Build trees of one branch each, whose leaves weigh columns, two after two."""
    trees, kind = len(weights) // 2, "class" if operator.endswith("Classifier") else "target"
    nodes = {
        "modes": ["BRANCH_LEQ", "LEAF", "LEAF"] * trees, "treeids": np.repeat(range(trees), 3), "nodeids": [0, 1, 2] * trees,
        "featureids": [0] * 3 * trees, "values": [0.5] * 3 * trees, "truenodeids": [1, 0, 0] * trees, "falsenodeids": [2, 0, 0] * trees,
    }  # fmt: skip
    entries = [(leaf // 2, 1 + leaf % 2, *entry) for leaf, given in enumerate(weights) for entry in given.items()]
    attributes |= {f"nodes_{key}": each for key, each in nodes.items()}
    attributes |= {f"{kind}_{key}": each for key, each in zip(("treeids", "nodeids", "ids", "weights"), zip(*entries))}
    attributes |= {"classlabels_int64s": range(columns)} if kind == "class" else {"n_targets": columns}
    results = ["label", "y"] if kind == "class" else ["y"]
    node = helper.make_node(operator, ["X"], results, domain="ai.onnx.ml", **attributes)
    return model_of([node], {"X": [2, 1]}, results, dtypes={"label": 7}, domain="ai.onnx.ml", opset=18)


CLASSIFIER, REGRESSOR = "TreeEnsembleClassifier", "TreeEnsembleRegressor"
#: of three classes each tree weighs one; weights above 0 decide by themselves; base values weigh all
WEIGHED = [
    stumps(CLASSIFIER, 3, [{0: -3.0}, {0: -1.0}, {1: -2.0}, {1: -2.0}, {2: -4.0}, {2: -0.5}]),
    stumps(CLASSIFIER, 3, [{1: 2.0}, {2: 1.0}]),
    stumps(CLASSIFIER, 3, [{1: -2.0}, {2: -1.0}], base_values=[-1.0, -2.0, 0.5]),
    stumps(CLASSIFIER, 2, [{0: -2.0}, {0: 1.0, 1: 3.0}, {1: 2.0}, {1: 1.0}]),
    stumps(REGRESSOR, 2, [{0: -2.0}, {1: 1.0}]),
    stumps(REGRESSOR, 2, [{0: -2.0}, {0: 1.0}, {1: 2.0}, {1: 1.0}], base_values=[1.0, 2.0]),
]
#: ONNX Runtime chooses among the classes that are weighed, and adds base values to these alone
UNWEIGHED = [
    (stumps(CLASSIFIER, 3, [{1: -2.0, 2: -1.0}, {0: 1.0, 1: 2.0, 2: 3.0}]), "a part of its classes"),
    (stumps(CLASSIFIER, 3, [{0: -2.0, 1: -1.0}, {0: -1.0, 1: -2.0}]), "a part of its classes"),
    (stumps(CLASSIFIER, 2, [{0: -2.0}, {0: 1.0, 1: 3.0}]), "a part of its two classes"),
    (stumps(CLASSIFIER, 2, [{1: -2.0}, {0: 1.0, 1: 3.0}], base_values=[0.5]), "a part of its two classes"),
    (stumps(REGRESSOR, 2, [{0: -2.0}, {1: 1.0}], base_values=[1.0, 2.0]), "a part of its targets"),
    (stumps(REGRESSOR, 2, [{0: 1.0, 1: 1.0}] * 2, base_values=[1.0]), "1 base_values for 2 scores"),
]


@pytest.mark.parametrize("model", WEIGHED)
def test_leaves_may_weigh_a_part_where_the_rest_is_0(tmp_path: Path, model: onnx.ModelProto) -> None:
    same(model, tmp_path, np.float32([[0.0], [1.0]]))


@pytest.mark.parametrize(("model", "said"), UNWEIGHED)
def test_leaves_that_weigh_a_part_are_refused(tmp_path: Path, model: onnx.ModelProto, said: str) -> None:
    with pytest.raises(ModelError, match=said) as refused:
        import_model(save(model, tmp_path))
    assert refused.value.hint.startswith("Export" if "base_values" in said else "Write a weight at each leaf")


def test_what_leaves_of_a_part_are_advised_to_weigh_compiles(tmp_path: Path) -> None:
    model = stumps(CLASSIFIER, 3, [{0: 0.0, 1: -2.0, 2: -1.0}, {0: 1.0, 1: 2.0, 2: 3.0}])
    same(model, tmp_path, np.float32([[0.0], [1.0]]))


#: attribute, value, and a model that is refused for it
WAYS = [
    *[("post_transform", how, stumps(CLASSIFIER, 3, [{0: 1.0, 1: 2.0, 2: 3.0}] * 2)) for how in ("PROBIT", "SOFTMAX_ZERO")],
    *[("post_transform", "PROBIT", stumps(CLASSIFIER, 2, [given] * 2)) for given in ({0: 1.0}, {1: 1.0}, {0: -1.0, 1: 1.0})],
    ("post_transform", "SOFTMAX", stumps(CLASSIFIER, 2, [{0: -1.0}, {0: 1.0}])),
    ("post_transform", "PROBIT", stumps(REGRESSOR, 1, [{0: 0.3}, {0: 0.5}])),
    ("aggregate_function", "MAX", stumps(REGRESSOR, 2, [{0: 1.0, 1: 2.0}] * 4)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "refused", "model"), WAYS)
def test_the_ways_that_a_refused_one_is_advised_to_be_compile(tmp_path: Path, name, refused, model) -> None:
    for how in _advised(model, name, refused, tmp_path):
        same(_change(model, name, how), tmp_path, np.float32([[0.0], [1.0]]))


def _advised(model: onnx.ModelProto, name: str, refused: str, folder: Path) -> list[str]:
    """Return the ways that the refusal of another names."""
    with pytest.raises(ModelError, match=f"its {name} is {refused}") as said:
        import_model(save(_change(model, name, refused), folder))
    assert said.value.hint.startswith(f"Choose another {name}: ")
    return said.value.hint.rstrip(".").split(": ")[1].split(", ")


def _change(model: onnx.ModelProto, name: str, how: str) -> onnx.ModelProto:
    changed = deepcopy(model)
    changed.graph.node[0].attribute.append(helper.make_attribute(name, how))
    return changed


def test_scores_alone_need_no_weight_for_each_class(tmp_path: Path) -> None:
    path, rows = save(UNWEIGHED[0][0], tmp_path), np.float32([[0.0], [1.0]])
    (found,) = run(import_model(path, ImportOptions(outputs=["y"])), {"X": rows})
    np.testing.assert_array_equal(found, run(onnx.load(path), {"X": rows})[1])


def diamonds(count: int) -> onnx.ModelProto:
    """Build branches of which both sides lead to the next one; the last one decides."""
    to, last = [*range(1, count), count, 0, 0], [*range(1, count), count + 1, 0, 0]
    nodes = {
        "modes": ["BRANCH_LEQ"] * count + ["LEAF"] * 2, "treeids": [0] * (count + 2), "nodeids": range(count + 2),
        "featureids": [0] * (count + 2), "values": [0.5] * (count + 2), "truenodeids": to, "falsenodeids": last,
    }  # fmt: skip
    leaves = {"treeids": [0, 0], "nodeids": [count, count + 1], "ids": [0, 0], "weights": [1.0, 2.0]}
    attributes = {f"nodes_{key}": each for key, each in nodes.items()} | {
        f"target_{key}": each for key, each in leaves.items()
    }
    node = helper.make_node("TreeEnsembleRegressor", ["X"], ["y"], domain="ai.onnx.ml", n_targets=1, **attributes)
    return model_of([node], {"X": ["n", 1]}, ["y"], domain="ai.onnx.ml", opset=18)


def sets_of_members(depth: int, members: int) -> onnx.ModelProto:
    """Build a full tree of operator set 5, each branch of which asks for members of a set."""
    count = 2**depth - 1
    sides = {"true": 2 * np.arange(count) + 1, "false": 2 * np.arange(count) + 2}
    attributes = {f"nodes_{side}leafs": (to >= count).astype(int).tolist() for side, to in sides.items()}
    attributes |= {f"nodes_{side}nodeids": (to - count * (to >= count)).tolist() for side, to in sides.items()}
    sets = np.tile([*np.random.default_rng(0).permutation(members), np.nan], count)
    tensors = {"nodes_splits": np.zeros(count), "leaf_weights": np.arange(count + 1), "membership_values": sets}
    attributes |= {name: numpy_helper.from_array(each.astype(np.float32)) for name, each in tensors.items()}
    attributes["nodes_modes"] = numpy_helper.from_array(np.full(count, 6, np.uint8))
    node = helper.make_node(
        "TreeEnsemble", ["X"], ["y"], domain="ai.onnx.ml", nodes_featureids=(np.arange(count) % 3).tolist(), n_targets=1,
        leaf_targetids=[0] * (count + 1), tree_roots=[0], **attributes,
    )  # fmt: skip
    return model_of([node], {"X": ["n", 3]}, ["y"], domain="ai.onnx.ml", domain_opset=5, opset=21)


@pytest.mark.parametrize(
    ("model", "rows", "levels"), [(diamonds(16), 33, 16), (sets_of_members(3, 20), 7 * 2 * 39 + 1, 3 * 6)]
)
def test_a_branch_that_several_lead_to_is_stored_once(tmp_path: Path, model, rows: int, levels: int) -> None:
    features = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    same(model, tmp_path, np.random.default_rng(1).integers(-1, 60, (20, features)).astype(np.float32))
    imported = import_model(save(model, tmp_path), ImportOptions({"X": (20, features)}))
    sizes = {tensor.name: tensor.dims[0] for tensor in imported.graph.initializer if tensor.dims}
    trips = [sizes[node.input[-1]] for node in imported.graph.node if node.op_type == "Scan"]
    assert max(sizes.values()) <= rows and sum(trips) == levels


def test_levels_of_trees_are_loops_of_those_that_go_on(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(2000, 8)).astype(np.float32)
    forest = RandomForestRegressor(40, max_leaf_nodes=31, random_state=0).fit(rows, rows[:, 0] * rows[:, 1])
    imported = import_model(save(to_onnx(forest, rows[:1]), tmp_path), ImportOptions({"X": (1, 8)}))
    shapes = {value.name: [each.dim_value for each in value.type.tensor_type.shape.dim] for value in imported.graph.value_info}  # fmt: skip
    trips = {tensor.name: tensor.dims[0] for tensor in imported.graph.initializer if tensor.dims}
    loops = [node for node in imported.graph.node if node.op_type == "Scan"]
    levels, trees = [trips[node.input[-1]] for node in loops], [shapes[node.output[0]][1] for node in loops]
    depths = [tree.get_depth() for tree in forest.estimators_]
    assert sum(levels) == max(depths) and trees == sorted(trees, reverse=True) and trees[0] > trees[-1]
    assert np.dot(levels, trees) < 0.9 * max(depths) * len(depths)
    assert len(imported.graph.node) < 6 * len(loops) + 12  # and not a kernel for each level
