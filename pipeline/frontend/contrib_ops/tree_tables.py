"""Read the trees of `ai.onnx.ml` as tables by node: siblings side by side, deep trees first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..canonical.graph_context import NodeView
from ..canonical.node_form import UnsupportedForm

#: tests of a branch as ONNX's operators, in the order of their numbers in operator set 5
TESTS = {
    "BRANCH_LEQ": "LessOrEqual", "BRANCH_LT": "Less", "BRANCH_GTE": "GreaterOrEqual", "BRANCH_GT": "Greater",
    "BRANCH_EQ": "Equal",
}  # fmt: skip
#: the test that fails where it holds
_OPPOSITE = "BRANCH_NEQ"
#: modes of operator set 5 by number; a value is a member if it equals one of a list
_MODES = (*TESTS, _OPPOSITE, "BRANCH_MEMBER")
AGAIN = "Export the model again."


@dataclass(frozen=True)
class Trees:
    """Tables by node of all trees; the first rows are the roots of trees of these depths.

    `missing` tells the nodes at which NaN goes where the test holds, `given` the number of a node in the file.
    """

    modes: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    holds: np.ndarray
    missing: np.ndarray
    given: np.ndarray
    depths: np.ndarray


def tables(
    roots: Sequence[int] | None,
    modes: Sequence[str],
    feature: Any,
    threshold: Any,
    holds: Any,
    fails: Any,
    missing: Any,
) -> Trees:
    """Put siblings side by side, deep trees first. Raises UnsupportedForm if there is no such form."""
    kinds, itself = np.asarray(modes), np.arange(len(modes))
    opposite = kinds == _OPPOSITE  # NaN equals nothing: it goes where this test holds, whatever `missing` says
    kinds, missing = (
        np.where(opposite, "BRANCH_EQ", kinds),
        None if missing is None else np.asarray(missing, bool) & ~opposite,
    )
    holds, fails = np.where(opposite, fails, holds), np.where(opposite, holds, fails)
    if strange := sorted(set(kinds) - TESTS.keys() - {"LEAF"}):
        raise UnsupportedForm(f"its branches are {', '.join(strange)}", AGAIN)
    leaf = kinds == "LEAF"
    holds, fails = (np.where(leaf, itself, np.asarray(each, np.int64)) for each in (holds, fails))
    if roots is None:
        roots = np.setdiff1d(itself, np.concatenate([holds[~leaf], fails[~leaf]]))
    depth = _depths(leaf, holds, fails)
    heads = np.asarray(roots, np.int64)
    level = heads[np.argsort(-depth[heads], kind="stable")]
    depths, given, rows, following = depth[level], [level], len(level), np.zeros(len(modes), np.int64)
    seen = leaf.copy()
    while len(level):  # a node that branches from several lead to is laid out once
        _, first = np.unique(level, return_index=True)
        new = level[np.sort(first)]
        new = new[~seen[new]]
        seen[new], following[new] = True, rows + 2 * np.arange(len(new))
        level = np.stack([holds[new], fails[new]], axis=1).reshape(-1)
        given.append(level)
        rows += len(level)
    of = np.concatenate(given)
    numbers = np.asarray(threshold)
    return Trees(
        modes=kinds[of],
        feature=np.where(leaf[of], 0, np.asarray(feature, np.int64)[of]),
        threshold=np.where(leaf[of], np.asarray(np.nan, numbers.dtype), numbers[of]),
        holds=np.where(leaf[of], np.arange(rows) - 1, following[of]),
        missing=missing[of] & ~leaf[of] if missing is not None else np.zeros(rows, bool),
        given=of,
        depths=depths,
    )


def _depths(leaf: np.ndarray, holds: np.ndarray, fails: np.ndarray) -> np.ndarray:
    """Count the branches on the longest way from each node to a leaf. Raises UnsupportedForm for a way without end."""
    inner = np.flatnonzero(~leaf)
    below, above = np.concatenate([holds[inner], fails[inner]]), np.tile(inner, 2)
    above = above[np.argsort(below, kind="stable")]
    count = np.zeros(len(leaf), np.int64)
    np.add.at(count, below, 1)
    ends = np.cumsum(count)
    waits, depth = np.where(leaf, 0, 2), np.zeros(len(leaf), np.int64)
    ready, level = np.flatnonzero(leaf), 0
    while len(ready):
        depth[ready], level = level, level + 1
        many = count[ready]
        parents = above[np.arange(many.sum()) + np.repeat(ends[ready] - np.cumsum(many), many)]
        np.subtract.at(waits, parents, 1)
        ready, _ = np.unique(parents[waits[parents] == 0], return_index=True)  # sorts, which takes less than hashes
    if waits.any():
        raise UnsupportedForm("its branches go round in a circle", AGAIN)
    return depth


def numbers_of(node: NodeView, name: str) -> np.ndarray | None:
    """Return an attribute that is a list of floats or, as doubles, a tensor; None if it is neither."""
    from onnx import numpy_helper

    if tensor := node.get(f"{name}_as_tensor"):
        return numpy_helper.to_array(tensor)
    return np.asarray(node.get(name), np.float32) if node.get(name) else None


def tables_by_tree(node: NodeView) -> tuple[Trees, dict[tuple[int, int], int]]:
    """Read the tables of an ensemble, and the rows of nodes by tree and number. Raises UnsupportedForm as `tables` does."""
    attributes = node.attributes
    keys = list(zip(attributes["nodes_treeids"], attributes["nodes_nodeids"]))
    number = {key: index for index, key in enumerate(keys)}
    holds, fails = (
        [number.get((tree, to), 0) for (tree, _), to in zip(keys, attributes[f"nodes_{side}nodeids"])]
        for side in ("true", "false")
    )
    missing = attributes.get("nodes_missing_value_tracks_true")
    values = numbers_of(node, "nodes_values")
    modes, feature = attributes["nodes_modes"], attributes["nodes_featureids"]
    return tables(None, modes, feature, values, holds, fails, missing or None), number


def branches_then_leaves(node: NodeView, leaves: int) -> list[list[Any]]:
    """Return a row of `tables` for each branch and leaf of operator set 5, which numbers them apart.

    A test for members of a set halves the set until one is left. The members of all sets are a list, with NaN after each.
    """
    from onnx import numpy_helper

    attributes = node.attributes
    modes, thresholds = (numpy_helper.to_array(attributes[f"nodes_{name}"]) for name in ("modes", "splits"))
    count = len(modes)
    holds, fails = (
        [
            to + count * bool(leaf)
            for to, leaf in zip(attributes[f"nodes_{side}nodeids"], attributes[f"nodes_{side}leafs"])
        ]
        for side in ("true", "false")
    )
    missing = attributes.get("nodes_missing_value_tracks_true") or [0] * count
    rows = [
        list(row)
        for row in zip(
            (_MODES[mode] for mode in modes), attributes["nodes_featureids"], thresholds, holds, fails, missing
        )
    ]
    rows += [["LEAF", 0, 0.0, 0, 0, 0] for _ in range(leaves)]
    members = numpy_helper.to_array(attributes["membership_values"]) if "membership_values" in attributes else []
    ends = np.flatnonzero(np.isnan(members))
    sets = iter(np.split(members, ends))
    halves = [
        (row, sorted({value for value in next(sets) if value == value}) or [np.nan])
        for row in rows
        if row[0] == "BRANCH_MEMBER"
    ]
    for row, values in halves:  # which grow
        low, high = values[: len(values) // 2], values[len(values) // 2 :]
        if low:
            parts = [[*row], [*row]]
            row[:] = ["BRANCH_LEQ", row[1], low[-1], len(rows), len(rows) + 1, row[5]]
            rows += parts
            halves += zip(parts, (low, high))
        else:
            row[0], row[2] = "BRANCH_EQ", values[0]
    return rows
