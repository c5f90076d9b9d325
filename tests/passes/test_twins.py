"""A pass that finds nothing to change says so: the module it returns has the structure of the one it got.

Passes on steps given by number refuse a program they do not fit, since a sequence that names them was made for another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from passfit.errors import SequenceError
from passfit.passes.base import ModulePass
from passfit.passes.graph.rules.rule import Rule
from passfit.passes.sequence.catalogue import CATALOGUE, parse_spec

pytestmark = pytest.mark.tvm


#: rules have twins of their own, in tests/passes/rules
PASSES = [name for name, kind in CATALOGUE.items() if not issubclass(kind, Rule)]


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_leaves_its_twin_as_it_is(name: str):
    from passfit.search.evaluate.state_key import state_key

    from ..kernels.programs import lowered
    from .graphs import applied
    from .twins import PROGRAM_TWINS, REFUSED, TWINS

    if issubclass(CATALOGUE[name], ModulePass):
        module = applied(TWINS[name])
        assert state_key(parse_spec(name).apply(module)) == state_key(module)
    elif name in PROGRAM_TWINS:
        twin = PROGRAM_TWINS[name]
        before = lowered(twin.shapes, twin.body, twin.before)
        after = parse_spec(name).apply(before)
        assert after.program == before.program
        assert _keys(after.kernels) == _keys(before.kernels)
    else:
        ((spec, (twin, words)),) = ((spec, each) for spec, each in REFUSED.items() if spec.startswith(f"{name}{{"))
        with pytest.raises(SequenceError, match=re.escape(words)):
            parse_spec(spec).apply(lowered(twin.shapes, twin.body, twin.before))


def _keys(kernels: Mapping[str, object]) -> dict[str, int]:
    import tvm_ffi

    return {name: tvm_ffi.structural_hash(kernel) for name, kernel in kernels.items()}


def test_every_twin_is_of_a_pass():
    from .twins import PROGRAM_TWINS, REFUSED, TWINS

    named = [*TWINS, *PROGRAM_TWINS, *(spec.split("{")[0] for spec in REFUSED)]
    assert sorted(named) == sorted(PASSES)
