"""Compare regions of random networks, and recurrent layers, with the same kernels outside of loops; benchmarks/unsplit.py reads the times."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from passfit.support.temporary_folder import scratch_folder
from passfit.targets.native import native_target

from ..profiles import examples
from .regions import Timed, loop_timed, regions_timed

pytestmark = [
    pytest.mark.tvm,
    pytest.mark.skipif(native_target() is None, reason="no target of the catalogue runs natively on this machine"),
]


def _check(found: list[Timed]) -> None:
    assert all(each.whole > 0 and each.split > 0 and each.calls > 0 for each in found)


@settings(max_examples=examples(1), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 9_999))
def test_kernels_compute_the_same_in_regions_and_outside(seed: int) -> None:
    with scratch_folder() as folder:
        _check(regions_timed(seed, folder))


@settings(max_examples=examples(1), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 9_999))
def test_recurrent_layers_compute_the_same_as_their_steps_alone(seed: int) -> None:
    with scratch_folder() as folder:
        _check(loop_timed(seed, folder))


@pytest.mark.nightly
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 9_999))
def test_kernels_compute_the_same_in_regions_and_outside_at_length(seed: int) -> None:
    with scratch_folder() as folder:
        _check([*regions_timed(seed, folder), *loop_timed(seed, folder)])
