"""Splits read from the store are those found."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")

from tvm import relax

from passfit.errors import SequenceError
from passfit.kernels.rewrite import splittable
from passfit.passes.sequence.catalogue import parse_spec
from passfit.support.result_store import ResultStore

from ..programs import lowered, weight

pytestmark = pytest.mark.tvm


def _network(x):
    hidden = relax.op.nn.relu(relax.op.nn.conv2d(x, weight(16, 3, 3, 3), padding=1, strides=2))
    return relax.op.mean(relax.op.nn.max_pool2d(hidden, (2, 2), (2, 2)), [2, 3])


def test_splits_are_read_back(tmp_path, monkeypatch):
    found = []
    for _ in range(2):
        monkeypatch.setattr(splittable, "shared_store", lambda: ResultStore(tmp_path / "a.jsonl"))
        # no kernel object is the same, and memoised functions know none of them
        program = lowered([(1, 3, 12, 12)], _network, ("legalize", "fuse-operators"))
        found.append({name: splittable._splits.__wrapped__(kernel, 1) for name, kernel in program.kernels.items()})
        monkeypatch.setattr(splittable, "_find_splits", None)
    assert found[0] == found[1]
    assert any(each.rows for each in found[0].values())
    assert any(each.taps for splits in found[0].values() for each in splits.rows)


def test_a_region_that_streams_is_not_split_again():
    """A region of one kernel has one result, as a plain kernel: it is scheduled by then, and has no rows."""
    streamed = parse_spec("split-rows{steps=0-0}").apply(
        lowered([(1, 3, 12, 12)], _network, ("legalize", "fuse-operators"))
    )
    with pytest.raises(SequenceError, match="does not fit"):
        parse_spec("split-rows{steps=0-0}").apply(streamed)
