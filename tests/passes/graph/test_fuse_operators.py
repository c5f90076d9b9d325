"""Fusion ends: applied to its own result, it returns the same module."""

import pytest

pytest.importorskip("tvm")

from passfit.passes.sequence.catalogue import parse_spec

from ..graphs import EXAMPLES, applied

pytestmark = pytest.mark.tvm
#: depth=2 fuses pairs, and pairs of pairs the next time
_SPECS = ("fuse-operators", "fuse-operators{over=pooling}", "fuse-operators{over=reduction}", "fuse-operators{keep=1}")


@pytest.mark.parametrize("spec", _SPECS)
def test_the_second_application_returns_the_same_module(spec):
    module = applied(EXAMPLES[spec])
    once = parse_spec(spec).apply(module)
    assert len(once.functions) < len(module.functions)
    assert parse_spec(spec).apply(once).same_as(once)
