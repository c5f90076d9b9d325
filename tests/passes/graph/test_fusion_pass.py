"""Check that fusion does not tell one constant from several equal ones: a search takes their graphs for one state."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import relax

from passfit.passes.graph.fusion_pass import constants_once
from passfit.passes.sequence.catalogue import parse_spec
from passfit.search.evaluate.state_key import state_key

from ...kernels.programs import module_of

pytestmark = pytest.mark.tvm
BIAS = np.linspace(-1, 1, 6, dtype="float32").reshape(6, 1)


def graph(second):
    """Build two additions of constants, the second one a function of the first."""
    first = relax.const(BIAS)

    def body(x):
        emit = relax.BlockBuilder.current().emit
        return emit(relax.op.add(emit(relax.op.add(x, first)), second(first)))

    return parse_spec("legalize").apply(module_of([(6, 8)], body))


ONE, TWO = graph(lambda first: first), graph(lambda first: relax.const(BIAS.copy()))


@pytest.mark.parametrize("spec", ["fuse-by-mapping", "fuse-by-mapping{objective=latency}", "fuse-operators"])
def test_graphs_of_one_state_fuse_to_one_state(spec):
    assert state_key(ONE) == state_key(TWO)
    assert state_key(parse_spec(spec).apply(ONE)) == state_key(parse_spec(spec).apply(TWO))


@pytest.mark.parametrize("spec", ["fuse-by-mapping", "fuse-by-mapping{objective=latency}", "fuse-operators"])
def test_a_replay_groups_as_the_search_fuses(spec):
    each = parse_spec(spec)
    assert state_key(each.fused(TWO, each.group(TWO))) == state_key(each.apply(TWO))


def test_other_constants_stay():
    other = graph(lambda first: relax.const(BIAS + 1))
    assert constants_once(other) is other and constants_once(ONE) is ONE
    assert state_key(constants_once(TWO)) == state_key(TWO)
