"""Evaluate a network of digits on every sample, in floats and quantised, on three targets; write results/accuracy.md.

    .venv/bin/python benchmarks/accuracy.py

The digits are the 1,797 that scikit-learn ships; `tests/digits.py` trains the network on the first 1,200 of them, and
onnxruntime's quantiser calibrates it on a hundred of these. Each library is the one that `passfit evaluate` compiles.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import onnx
from head import HERE, head

sys.path.insert(0, str(HERE.parent))

from passfit import api
from passfit.data.accuracy import AccuracyReport
from passfit.targets import get_target
from tests.digits import LEARNT, load_digits, quantised_model, save_digits, train_network

TARGETS = ("x86-64", "rpi4", "mps2-an386")
PAGE = HERE / "results" / "accuracy.md"


def evaluations(folder: Path) -> Iterable[tuple[str, AccuracyReport]]:
    """Yield the reports of both networks on all digits, by the name of the network."""
    data, count = save_digits(folder, first=0), len(load_digits()[0])
    for name, model in (("float", train_network()), ("int8", quantised_model())):
        onnx.save(model, folder / f"{name}.onnx")
    for name, original in (("float", None), ("int8", folder / "float.onnx")):
        settings = api.EvaluateSettings(emulated=count)
        targets = [get_target(each) for each in TARGETS]
        for report in api.evaluate(folder / f"{name}.onnx", targets, data, original=original, settings=settings):
            yield name, report


def page(reports: Iterable[tuple[str, AccuracyReport]], command: list[str]) -> str:
    """Return accuracy.md."""
    lines = [
        "# Accuracy of executed libraries", "", *command, "",
        f"A network of two convolutions on scikit-learn's digits, of which it has learnt the first {LEARNT:,}. File: in ONNX Runtime;",
        "of the int8 network, that of onnxruntime's quantiser (QDQ). Library: executed, on every sample. Agree: decisions that are",
        "the file's. Error: the largest difference of an output, relative to its range.", "",
        "| network | target | run by | samples | accuracy of the float file | of the file | of the library | agree | error |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for name, report in reports:
        library, before = report.library, report.original or report.reference
        scores = " | ".join(f"{each.value:.4f}" for each in (before, report.reference, library))
        shares = f"{library.agreement:.2%} | {library.max_rel_error:.1e}"
        lines.append(f"| {name} | {report.target} | {library.how} | {library.samples:,} | {scores} | {shares} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    started = head()
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
        PAGE.write_text(page(evaluations(Path(scratch)), started.lines(".venv/bin/python benchmarks/accuracy.py")))
