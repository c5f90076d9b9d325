"""Models quantised in part return the same bytes whatever passes of a program are applied: regions, repeats, sums, orders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("tvm")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from passfit.frontend.canonicalise import import_model
from passfit.passes.sequence.sequence import Sequence
from passfit.support.temporary_folder import scratch_folder
from passfit.targets import Target, get_target, how_to_run

from ..frontend.onnx_nodes import NodeCase
from ..models import save
from ..profiles import examples
from ..search.quantised_models import Choose, quantised_model
from ..search.random_splits import random_splits
from .building import HOST, run_lowered
from .integer_oracle import evaluate

BOARD = get_target("rpi4")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]

WHOLE = (
    ("legalize", "fold-constant", "fuse-operators"), ("legalize", "fold-constant"), ("legalize", "fold-constant", "fuse-by-mapping"),
)  # fmt: skip
ENDS = (("share", "order"), ("order{by=given}",))


def input_of(model: onnx.ModelProto, random: np.random.Generator) -> np.ndarray:
    """Return any bytes; floats that are whole steps of a quantisation, and some beyond its range."""
    (port,) = model.graph.input
    shape = [each.dim_value for each in port.type.tensor_type.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type)
    if dtype == np.float32:
        return (random.integers(-160, 160, shape) / 16).astype(dtype)
    return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def differing(choose: Choose, target: Target, folder: Path, sequences: int = 4) -> list[str]:
    """Build a model whole and by several sequences, in one library; return the sequences whose results differ.

    The whole one is compared with the model as given.
    """
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.sequence.replay import lower_by_sequence, replay

    given = quantised_model(choose)
    model = import_model(save(given, folder))
    module, kernels = to_relax(model), choose(WHOLE)
    lowered = lower_by_sequence(Sequence.parse(kernels), module, model, "random", target.machine)
    names = [(*kernels, *ENDS[0])]
    names += [(*kernels, *random_splits(choose, lowered), *choose(ENDS)) for _ in range(sequences)]
    values = {"x": input_of(given, np.random.default_rng(1))}
    expected = tuple(evaluate(given, values))
    cases, workspace = [], 0
    for name in dict.fromkeys(names):
        part, needed = replay(Sequence.parse(name), module, model, "random", target.machine)
        cases.append((NodeCase(";".join(name), "random", given, values, expected, 0, 0), part))
        workspace = max(workspace, needed)
    outcomes = run_lowered(cases, workspace, folder, target)
    same = (
        all(np.array_equal(*pair) for pair in zip(each.outputs, expected, strict=True)) for each in outcomes.values()
    )
    return [name for name, equal in zip(outcomes, same) if not equal]


def check(data: st.DataObject, target: Target) -> None:
    with scratch_folder() as folder:
        assert differing(lambda options: data.draw(st.sampled_from(options)), target, folder) == []


@settings(max_examples=examples(2), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_program_passes_change_no_byte(data):
    check(data, HOST)


@settings(max_examples=examples(1), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_program_passes_change_no_byte_on_a_board(data):
    check(data, BOARD)


@pytest.mark.nightly
@pytest.mark.parametrize("target", [HOST, BOARD], ids=lambda target: target.name)
@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_program_passes_change_no_byte_at_length(target, data):
    check(data, target)
