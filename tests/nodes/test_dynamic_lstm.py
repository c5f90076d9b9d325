"""DynamicQuantizeLSTM as an executed library: the numbers of ONNX Runtime on every target, weights once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passfit.frontend.canonicalise import import_model
from passfit.targets import get_target, how_to_run
from passfit.verify.equal_signs import equalise_signs

from ..frontend.contrib_ops.test_recurrent import CASES, HIDDEN, INPUTS, lstm
from ..frontend.onnx_nodes import NodeCase
from ..models import run, save
from .building import HOST, compile_and_run
from .test_integer_nodes import EMULATED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]

SEQUENCE = ("legalize", "fold-constant", "fuse-operators", "share")
NAMES = ("forward", "both", "states", "peepholes")


def _cases(folder: Path) -> list[NodeCase]:
    cases = []
    for name in NAMES:
        model, inputs = lstm(**CASES[name])
        expected = run(equalise_signs(import_model(save(model, folder))), inputs)
        cases.append(NodeCase(name, name, model, inputs, tuple(expected), 1e-5, 1e-5))
    return cases


@pytest.mark.parametrize("name", ["", EMULATED[0], EMULATED[1]])
def test_libraries_compute_what_onnx_runtime_does(name: str, tmp_path: Path) -> None:
    target = get_target(name) if name else HOST
    if name and not how_to_run(target).command:
        pytest.skip(how_to_run(target).how)
    cases = _cases(tmp_path)
    outcomes = compile_and_run(cases, SEQUENCE, tmp_path, target)
    for case in cases:
        assert outcomes[case.name].outputs, outcomes[case.name]
        for found, expected in zip(outcomes[case.name].outputs, case.outputs, strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-5, err_msg=case.name)


def test_weights_of_all_steps_are_those_of_the_file(tmp_path: Path) -> None:
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.sequence.replay import replay
    from passfit.passes.sequence.sequence import Sequence

    imported = import_model(save(lstm(steps=9)[0], tmp_path))
    lowered, _ = replay(Sequence.parse(SEQUENCE), to_relax(imported), imported, "lstm")
    narrow = sum(each.nbytes for each in lowered.weights if each.dtype == np.int8)
    assert narrow == (INPUTS + HIDDEN) * 4 * HIDDEN
    assert sum(each.nbytes for each in lowered.weights) <= narrow + 4 * 4 * HIDDEN + 4 * 64
