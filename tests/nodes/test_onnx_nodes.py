"""ONNX's operator tests through the whole path: import, passes, plan, C library, run, compare.

All cases are steps of one library: building one for each would take minutes.
"""

from __future__ import annotations

import onnx
import pytest

from passfit.targets import how_to_run

from ..frontend.onnx_nodes import NodeCase, all_cases, cases_of
from ..verify.one_output import compare_output
from .building import HOST, Outcome, compile_and_run
from .refused import LISTED_FOR, OPERATORS, REFUSED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]

#: TVM's own way down, and the one furthest from it
SEQUENCES = {
    "tvm-default": ("legalize", "fold-constant", "fuse-operators"),
    "furthest": (
        "canonicalize-bindings", "decompose-ops-for-inference", "fold-batchnorm-to-conv2d", "eliminate-common-subexpr",
        "legalize", "fold-constant{grow=0}", "fuse-operators{over=reduction}", "share", "order",
    ),
}  # fmt: skip
#: relative to the range of an output, as everywhere
TOLERANCE = {"float16": 5e-3, "float32": 1e-4, "float64": 1e-4}
#: cases whose expected values ONNX gives with four digits
FOUR_DIGITS = {"test_averagepool_2d_ceil_last_window_starts_on_pad", "test_roialign_aligned_false"}


#: by sequence, the most cases of an operator: what depends on its form happens before passes, so the second has fewer by day
WAYS = [("tvm-default", 3), ("furthest", 1), pytest.param(("furthest", 3), marks=pytest.mark.nightly)]


def sample(most: int = 3) -> list[NodeCase]:
    return [case for op in OPERATORS for case in cases_of(op, most)]


@pytest.fixture(scope="module", params=WAYS, ids=lambda way: "-".join(map(str, way)))
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    name, most = request.param
    return compile_and_run(sample(most), SEQUENCES[name], tmp_path_factory.mktemp("nodes"))


@pytest.mark.parametrize("op", OPERATORS)
def test_the_library_computes_what_onnx_expects(op: str, outcomes: dict[str, Outcome]) -> None:
    cases = [case for case in cases_of(op) if case.name in outcomes]
    assert cases and [f"{case}: {outcomes[case.name].failure}" for case in cases if outcomes[case.name].failure] == []
    for case in cases:
        if outcomes[case.name].refusal:
            continue
        for result, expected in zip(outcomes[case.name].outputs, case.outputs, strict=True):
            tolerance = 1e-3 if case.name in FOUR_DIGITS else TOLERANCE.get(expected.dtype.name, 0)
            compare_output(case.name, result, expected, tolerance)


@pytest.mark.parametrize("outcomes", WAYS[:1], indirect=True)
def test_the_sample_is_broad(outcomes: dict[str, Outcome]) -> None:
    ran = [case for case in sample() if not outcomes[case.name].refusal]
    assert len(ran) >= 300 and len({case.op for case in ran}) >= 140


@pytest.mark.skipif(onnx.__version__ != LISTED_FOR, reason=f"the cases are those of onnx {LISTED_FOR}")
def test_exactly_the_listed_cases_are_refused(outcomes: dict[str, Outcome]) -> None:
    assert {case.name for case in sample()} >= REFUSED
    assert set(OPERATORS) == {case.op for case in all_cases() if "expanded" not in case.name}
    assert sorted(name for name, outcome in outcomes.items() if outcome.refusal) == sorted(REFUSED & set(outcomes))


def test_a_refusal_is_one_sentence_and_a_next_step(outcomes: dict[str, Outcome]) -> None:
    for outcome in outcomes.values():
        assert "\n" not in outcome.refusal and "Traceback" not in outcome.refusal
        assert not outcome.refusal or outcome.refusal.count(". ") >= 1, outcome.refusal
