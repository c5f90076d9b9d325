"""Memoised rules give the kernels of TVM's own rules, whatever was legalized before."""

import pytest

pytest.importorskip("tvm")

import tvm_ffi
from tvm import relax

from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.relax.to_relax import to_relax
from passfit.passes.graph.memoised_legalize import _MADE, memoised_rules
from passfit.passes.sequence.catalogue import parse_spec

from ...kernels.programs import module_of
from ..models import MODELS

pytestmark = pytest.mark.tvm


def _legal(module):
    return relax.transform.LegalizeOps(memoised_rules(module))(module)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_kernels_are_those_of_tvm_and_hang_on_nothing_that_was_made_before(name):
    graph = to_relax(canonicalize(MODELS[name]()))
    _MADE.clear()
    first = _legal(graph)
    assert tvm_ffi.structural_equal(first, relax.transform.LegalizeOps()(graph))
    assert _MADE
    for other in sorted(MODELS):
        _legal(parse_spec("decompose-ops-for-inference").apply(to_relax(canonicalize(MODELS[other]()))))
    assert _legal(graph).script() == first.script()


@pytest.mark.parametrize("first, second", [((1, 1, 63), (1, 4, 2)), ((1, 1, 65), (1, 4, 4))])
def test_calls_of_one_hash_are_told_apart(first, second):
    types = [relax.TensorType((1, *shape), "float32") for shape in (first, second)]
    assert tvm_ffi.structural_hash(types[0]) == tvm_ffi.structural_hash(types[1]), "another example is needed"
    for shape in (first, second):
        module = _legal(module_of([(1, *shape)], relax.op.exp))
        (kernel,) = [each for name, each in module.functions.items() if name.name_hint != "main"]
        assert [int(extent) for extent in kernel.params[0].ty.shape] == [1, *shape]
