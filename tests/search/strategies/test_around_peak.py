"""Fusion barriers around the peak end lifetimes that the fused kernel extended."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

pytest.importorskip("tvm")

from passfit.errors import SequenceError
from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.passes.graph.fuse_operators import FuseOperators
from passfit.passes.graph.fusion_barriers import groups, kernel_calls
from passfit.passes.sequence.catalogue import parse_spec
from passfit.search.evaluate.candidates import Candidate
from passfit.search.evaluate.evaluation import Evaluator
from passfit.search.strategies.around_peak import around_peak
from passfit.targets import get_target

from ...models import model_of

pytestmark = pytest.mark.tvm


def held_by_its_last_reader():
    """A large tensor of which a slice is all that is needed late, in a kernel that fusion makes of five operators."""
    generator = np.random.default_rng(0)

    def weight(name: str, outer: int, inner: int):
        return numpy_helper.from_array(generator.standard_normal((outer, inner, 3, 3)).astype("float32") / 6, name)

    def conv(source: str, weights: str, result: str, stride: int = 1):
        return helper.make_node("Conv", [source, weights], [result], pads=[1] * 4, strides=[stride] * 2)

    nodes = [
        conv("x", "grow", "large"),
        helper.make_node("Slice", ["large", "first", "last", "axis"], ["part"]),
        conv("large", "shrink", "small", stride=2),
        helper.make_node("Resize", ["small", "", "scales"], ["up"], mode="nearest"),
        conv("up", "grow", "large again"),
        conv("large again", "shrink", "late"),
        helper.make_node("MaxPool", ["late"], ["pooled"], kernel_shape=[3, 3], pads=[1] * 4),
        helper.make_node("Exp", ["part"], ["e"]),
        helper.make_node("Add", ["pooled", "e"], ["sum"]),
        helper.make_node("Mul", ["sum", "pooled"], ["y"]),
    ]
    numbers = {"first": np.array([0]), "last": np.array([4]), "axis": np.array([1])}
    constants = [numpy_helper.from_array(value, name) for name, value in numbers.items()]
    constants += [weight("grow", 16, 4), weight("shrink", 4, 16)]
    constants.append(numpy_helper.from_array(np.array([1, 1, 2, 2], "float32"), "scales"))
    return canonicalize(model_of(nodes, {"x": [1, 4, 16, 16]}, ["y"], constants))


@pytest.fixture(scope="module")
def evaluator():
    model = held_by_its_last_reader()
    return Evaluator(to_relax(model), "held", get_target("x86-64"), *port_names(model))


def test_some_proposal_lowers_the_peak_and_what_is_hopeless_is_not_evaluated(evaluator):
    found = evaluator.evaluate(Candidate().passes)
    children = list(around_peak(evaluator.scorer, Candidate(), found))
    before = evaluator.count
    below = [evaluator.evaluate(child.passes, found.footprint.arena) for child in children]
    known = evaluator.count
    every = [evaluator.evaluate(child.passes) for child in children]
    assert min(each.footprint.ram for each in every) < found.footprint.ram
    assert [each.footprint is None for each in below] == [
        each.footprint.floor >= found.footprint.arena for each in every
    ]
    assert known - before == len({each.key for each in below if each.footprint})


def test_every_call_is_in_one_group_and_kept_calls_are_alone(evaluator):
    module = evaluator.scorer.module(("legalize", "fold-constant"))
    calls = len(list(kernel_calls(module["main"])))
    together = groups(module, FuseOperators().group)
    assert sorted(call for group in together for call in group) == list(range(calls))
    largest = max(together, key=len)
    assert len(largest) > 2
    apart = groups(module, FuseOperators(keep=f"{largest[0]}+{largest[1]}").group)
    assert {(largest[0],), (largest[1],)} <= set(apart)


def test_a_call_that_is_not_there_is_refused(evaluator):
    module = evaluator.scorer.module(("legalize",))
    with pytest.raises(SequenceError, match="no kernel call 999"):
        parse_spec("fuse-operators{keep=999}").apply(module)
