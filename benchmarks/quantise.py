"""Quantise the convolutional models of the benchmarks by photographs, and compile both forms; write results/quantise.md.

    .venv/bin/python benchmarks/quantise.py [--model NAME …]

Calibrated on crops of the two photographs that scikit-learn ships, from −1 to 1, by `passfit quantize` with its defaults and
every layer in int8. Both libraries are compiled with the same cheap search; integers are the inputs and outputs of the quantised one.
The last columns compare the executed library with ONNX Runtime on the quantised file, on crops that did not calibrate.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from head import HERE, head
from models import Model, geometric_mean, models

from passfit import api
from passfit.data.samples import read_samples
from passfit.errors import PassfitError
from passfit.fit.predicted_remedies import quantised_sizes
from passfit.frontend.given_model import given_model
from passfit.frontend.input_forms import input_forms
from passfit.frontend.source.import_options import ImportOptions
from passfit.quantise.judge import Judge
from passfit.targets import get_target

#: models of pictures that take minutes, not hours; ocr-det-640 is ocr-det-320 with four times the pixels
MODELS = ("ocr-det-320", "ocr-cls", "ocr-rec", "mtcnn-onet", "mtcnn-rnet", "mtcnn-pnet", "face-scrfd", "tinyocr-det")
#: those of them whose libraries are built and run; sizes of the others are predicted by quick plans, as `passfit fit` does
BUILT = ("mtcnn-onet", "mtcnn-rnet", "mtcnn-pnet")
TARGET = get_target("mps2-an386")
#: crops that calibrate, and others that judge
CALIBRATED, JUDGED = 24, 8
CHEAP = api.SearchSettings(evaluations=1)


def crops(shape: tuple[int, ...], count: int, seed: int) -> np.ndarray:
    """Cut pictures of a model's input out of the photographs, from −1 to 1, channels where the input has them."""
    from sklearn.datasets import load_sample_images

    random, photographs = np.random.default_rng(seed), load_sample_images().images
    last = shape[-1] in (1, 3)
    height, width = shape[1:3] if last else shape[2:4]
    found = []
    for number in range(count):
        picture = photographs[number % len(photographs)]
        scale = max(1, min(picture.shape[0] // height, picture.shape[1] // width, int(random.integers(1, 5))))
        rows, columns = scale * height, scale * width
        while picture.shape[0] < rows or picture.shape[1] < columns:
            picture = np.concatenate([np.concatenate([picture, picture[:, ::-1]], 1)] * 2)
        top, left = (
            int(random.integers(0, most + 1)) for most in (picture.shape[0] - rows, picture.shape[1] - columns)
        )
        cut = picture[top : top + rows : scale, left : left + columns : scale].astype(np.float32) / 127.5 - 1
        found.append(cut if last else cut.transpose(2, 0, 1))
    return np.stack(found)


def measure(model: Model, folder: Path, predicted: bool) -> dict[str, float]:
    """Quantise and compile a model, or predict its sizes; return its row. Raises PassfitError."""
    options = {"shapes": model.shapes, "fix": model.fix}
    given = given_model(model.file(), ImportOptions(**options))
    assert given is not None
    (port,) = given.graph.input
    shape = tuple(dim.dim_value for dim in port.type.tensor_type.shape.dim)
    for name, count, seed in (("calibrate", CALIBRATED, 0), ("judge", JUDGED, 1)):
        np.savez(folder / f"{name}.npz", **{port.name: crops(shape, count, seed)})
    data, quantised = str(folder / "judge.npz"), folder / "int8.onnx"
    settings = api.QuantiseSettings(max_loss=1e9, io="int8")
    found = api.quantize(
        model.file(), data, quantised, settings=settings, calibration=str(folder / "calibrate.npz"), **options
    )
    row: dict[str, float] = {"error": Judge(given, read_samples(data, input_forms(given))).error(found.model, JUDGED)}
    row["in float"] = len(found.floats)
    if predicted:
        sizes = quantised_sizes(TARGET, api.SearchSettings(seconds=2.0), ImportOptions(io="int8"))
        for kind, each in (("float", given), ("int8", found.model)):
            row |= {f"{kind} {name}": nbytes for name, nbytes in zip(("ram", "flash"), sizes(each) or (0, 0))}
        return row
    for kind, file, keywords in (("float", model.file(), options), ("int8", quantised, {"io": "int8"})):
        report = api.compile_model(file, TARGET, out=folder / kind, name=model.name, search=CHEAP, **keywords)
        row |= {f"{kind} {name}": getattr(report.best, name) for name in ("ram", "flash")}
    for accuracy in api.evaluate(quantised, [get_target("x86-64")], data, name=model.name, search=CHEAP):
        row["agreement"] = accuracy.library.agreement
    return row


def table(rows: dict[str, dict[str, float]]) -> list[str]:
    """Return the rows as Markdown, with the geometric means of the ratios."""
    lines = [
        "| model | float ram | int8 ram | ratio | float flash | int8 flash | ratio | layers in float | error | agreement |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    ratios = {name: [row[f"int8 {name}"] / row[f"float {name}"] for row in rows.values()] for name in ("ram", "flash")}
    for number, (model, row) in enumerate(rows.items()):
        agreed = f"{100 * row['agreement']:.1f} %" if "agreement" in row else "predicted"
        sizes = (f"{row[f'float {name}']:,} | {row[f'int8 {name}']:,} | {ratios[name][number]:.2f}" for name in ratios)
        lines.append(f"| {model} | {' | '.join(sizes)} | {row['in float']} | {row['error']:.3f} | {agreed} |")
    means = " | ".join(f" |  | **{geometric_mean(each):.2f}**" for each in ratios.values())
    return [*lines, f"| geometric mean |{means} |  |  |  |"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=MODELS, help="measure this model alone; repeatable")
    asked = parser.parse_args().model or MODELS
    start, rows, failed = head(), {}, []
    for model in models():
        if model.name not in asked:
            continue
        with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
            try:
                rows[model.name] = measure(model, Path(scratch), model.name not in BUILT)
            except PassfitError as error:
                failed.append(f"{model.name}: {error}")
        print(*table(rows)[-2:], *failed, sep="\n", flush=True)
        said = " ".join(__doc__.split("\n\n")[2].split())
        text = [
            "# Quantised to int8",
            "",
            *start.lines(".venv/bin/python benchmarks/quantise.py"),
            "",
            said,
            "",
            NOTE,
            "",
            *table(rows),
        ]
        (HERE / "results" / "quantise.md").write_text(
            "\n".join([*text, *["", *failed][: 2 * bool(failed)]]) + "\n", encoding="utf-8"
        )


#: what the columns say
NOTE = (
    f"Bytes on {TARGET.name}, stack included. Error: of the quantised file's outputs, relative to the deviation of the float file's. "
    "Agreement: decisions of the executed library, on x86-64, with the quantised file in ONNX Runtime; else sizes are predicted."
)

if __name__ == "__main__":
    main()
