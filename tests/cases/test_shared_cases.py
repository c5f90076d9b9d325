"""Models rebuilt from public bug reports, in onnx's own test format: the library computes what each file means.

    shared/cases/NAME/model.onnx, test_data_set_N/input_M.pb, output_M.pb

All data sets are steps of one library: building one for each would take minutes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from passfit.backend.built import LoadedLibrary, build
from passfit.frontend.given_model import given_model
from passfit.frontend.source.import_options import ImportOptions
from passfit.targets import how_to_run

from ..frontend.onnx_nodes import NodeCase
from ..models import run
from ..nodes.building import HOST, Outcome, compile_and_run
from ..verify.one_output import compare_output

SHARED = next((found for each in Path(__file__).parents if (found := each / "shared" / "cases").is_dir()), None)
FOLDERS = sorted(each.parent.name for each in SHARED.glob("*/model.onnx")) if SHARED else []
SEQUENCE = ("legalize", "fold-constant", "fuse-operators")
TOLERANCE = {"float16": 5e-3, "float32": 1e-4, "float64": 1e-4}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SHARED is None, reason="shared/cases is not there"),
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]


def tensors(folder: Path, kind: str) -> list[onnx.TensorProto]:
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda file: int(file.stem.rpartition("_")[2]))
    return [onnx.TensorProto.FromString(file.read_bytes()) for file in files]


def data_sets(name: str) -> list[NodeCase]:
    model = onnx.load(str(SHARED / name / "model.onnx"))
    op = model.graph.node[0].op_type
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in model.graph.input}
    found = []
    for folder in sorted((SHARED / name).glob("test_data_set_*")):
        # one set writes a scalar as a vector
        inputs = {
            tensor.name: numpy_helper.to_array(tensor).reshape(shapes[tensor.name])
            for tensor in tensors(folder, "input")
        }
        outputs = tuple(map(numpy_helper.to_array, tensors(folder, "output")))
        found.append(NodeCase(f"{name}/{folder.name}", op, model, inputs, outputs, 0, 0))
    return found


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    return compile_and_run(
        [case for name in FOLDERS for case in data_sets(name)], SEQUENCE, tmp_path_factory.mktemp("cases")
    )


@pytest.mark.parametrize("name", FOLDERS or ["none"])
def test_the_library_computes_what_the_file_means(name: str, outcomes: dict[str, Outcome]) -> None:
    cases = data_sets(name)
    assert cases
    for case in cases:
        outcome = outcomes[case.name]
        assert not outcome.failure and not outcome.refusal, outcome
        for result, expected in zip(outcome.outputs, case.outputs, strict=True):
            compare_output(case.name, np.asarray(result), expected, TOLERANCE.get(expected.dtype.name, 0))


#: a region of rows between layers of integers and one left in floats, right and wrong before, and none
SPLITS = ([], ["order{by=given}", "split-rows{steps=0-9}"], ["order{by=given}", "split-rows{steps=9-12}"])


@pytest.mark.parametrize("splits", SPLITS, ids=lambda specs: "".join(specs[1:]) or "whole")
def test_a_region_between_integers_and_floats_computes_what_the_file_means(splits: list[str], tmp_path: Path) -> None:
    assert SHARED is not None
    file, shapes = SHARED / "int8-mobilenet-prefix.onnx", {"style_image": [1, 256, 256, 3]}
    x = {"style_image": np.random.default_rng(0).uniform(0, 1, shapes["style_image"]).astype(np.float32)}
    found = LoadedLibrary(
        build(onnx.load(str(file)), shapes, {}, tmp_path, [*SEQUENCE, *splits, "order{by=given}"])
    ).run(x)
    given = given_model(file, ImportOptions(shapes))
    assert given is not None
    for (name, value), expected in zip(found.items(), run(given, x), strict=True):
        compare_output(name, value, expected, 0.02)
