"""A program read from the store is the one that was lowered, and its weights are those of the module."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm_ffi
from hypothesis import given, settings

from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.kernels.lower.lower import lower
from passfit.kernels.lower.stored_program import StoredPrograms
from passfit.passes.sequence.catalogue import parse_spec
from passfit.support.result_store import ResultStore
from passfit.targets import get_target

from ...profiles import examples
from ...search.test_search import BLOCKS, network

pytestmark = pytest.mark.tvm
MACHINE = get_target("rpi4").machine


def lowered(model, *specs):
    module = to_relax(model)
    for spec in specs:
        module = parse_spec(spec).apply(module)
    return lower(module, "small", *port_names(model), machine=MACHINE)


def never():
    raise AssertionError("lowered again")


@settings(max_examples=examples(5))
@given(BLOCKS)
def test_a_program_read_back_equals_the_one_lowered(tmp_path_factory, blocks):
    path = tmp_path_factory.mktemp("stores") / "a.jsonl"
    made = {specs: lowered(network(blocks), *specs) for specs in (("legalize",), ("legalize", "fuse-operators"))}
    writer, reader = (StoredPrograms(ResultStore(path), MACHINE) for _ in range(2))
    for specs, each in made.items():
        assert writer.get_or_make(str(specs), lambda each=each: each) is each
    for specs, each in made.items():
        found = reader.get_or_make(str(specs), never)
        assert (found.program, list(found.kernels), found.machine) == (each.program, list(each.kernels), each.machine)
        assert all(tvm_ffi.structural_equal(found.kernels[name], kernel) for name, kernel in each.kernels.items())
        assert len(found.weights) == len(each.weights)


def test_weights_are_lowered_where_they_are_asked_for(tmp_path):
    calls, model = [], network(["conv", "bn", "Relu"])

    def make():
        calls.append(model)
        return lowered(model, "legalize")

    StoredPrograms(ResultStore(tmp_path / "a.jsonl"), MACHINE).get_or_make("1", make)
    found = StoredPrograms(ResultStore(tmp_path / "a.jsonl"), MACHINE).get_or_make("1", make)
    assert len(calls) == 1
    for one, other in zip(found.weights, make().weights, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(calls) == 3


def test_a_program_without_its_kernels_is_lowered_again(tmp_path):
    path, each = tmp_path / "a.jsonl", lowered(network(["conv", "Relu"]), "legalize")
    StoredPrograms(ResultStore(path), MACHINE).get_or_make("1", lambda: each)
    lines = [line for line in path.read_text().splitlines() if not line.startswith('["kernel')]
    path.write_text("\n".join(lines) + "\n")
    assert StoredPrograms(ResultStore(path), MACHINE).get_or_make("1", lambda: each) is each
