"""Import every network of benchmarks/exported, as today's exporters write it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import onnx
import pytest

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model
from passfit.frontend.source.import_options import ImportOptions

from .test_exporting import find_python

pytestmark = pytest.mark.slow
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
#: networks that are refused, by a word of the reason; of these ONNX Runtime runs the last three, and texts where it has a locale
REFUSED = {
    "istft-mask.dynamo": "takes no int32",
    "patch-tst.torchscript": "MatMul",
    "bfloat16.dynamo": "operator set 22",
    "bfloat16.torchscript": "operator set 22",
    "keras-exact-gelu.tf2onnx": "Erfc",
    **dict.fromkeys(("keras-exact-gelu.tflite", "keras-segmenter.tflite", "keras-attention.tflite"), "TFL_GELU"),
    "keras-segmenter.tflite-int8": "TFL_GELU",
    "tfidf.skl2onnx": "Tokenizer",
    "svc-rbf.skl2onnx": "SVMClassifier",
    "fastspeech-repeat.dynamo": "Range",
    "fastspeech-repeat.torchscript": "Expand",
}


@pytest.mark.parametrize(
    "modules", [("torch", "torchvision", "onnxscript"), ("tensorflow", "tf2onnx"), ("sklearn", "skl2onnx")]
)
def test_networks_are_imported_or_refused_with_their_node(modules: tuple[str, ...], tmp_path: Path) -> None:
    python = find_python(modules)
    command = [python, "-W", "ignore", "-m", "exported", "--out", str(tmp_path), "--needs", modules[0]]
    done = subprocess.run(command, cwd=BENCHMARKS, stdout=subprocess.PIPE, text=True, check=True)
    reported = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"model"')]
    written = [row["model"] for row in reported if not row["reason"]]
    assert len(written) > len(reported) / 2, reported
    refused = {}
    for name in written:
        try:
            import_model(tmp_path / f"{name}.onnx", ImportOptions(shapes=closed(tmp_path / f"{name}.onnx")))
        except ModelError as error:
            refused[name] = str(error)
    assert refused.keys() == REFUSED.keys() & set(written)
    assert all(REFUSED[name] in reason for name, reason in refused.items())


def closed(file: Path) -> dict[str, list[int]]:
    """Return the shapes of a model's inputs with 1 for each open size."""
    inputs = onnx.load(file, load_external_data=False).graph.input
    return {each.name: [size.dim_value or 1 for size in each.type.tensor_type.shape.dim] for each in inputs}
