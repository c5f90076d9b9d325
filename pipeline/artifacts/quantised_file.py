"""Write a quantised model with the record and the picture of its curve; quantise what does not fit, under consent."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.samples import read_samples
from ..errors import ConfigError, ModelError, OutputError
from ..frontend.given_model import given_model
from ..frontend.input_forms import input_forms
from ..frontend.source.import_options import ImportKeywords, ImportOptions
from ..frontend.source.model_record import model_record
from ..frontend.source.source import resolve_source
from ..memory.footprint import FootprintReport
from ..quantise.prepare import write_model
from ..quantise.quantise_model import INT8, Quantised, QuantiseSettings, quantise_model
from ..quantise.samples import FileSamples, choose_metric
from ..report.pages.quantise_table import curve_picture
from ..search.settings import SearchSettings
from ..support.digests import digest_of
from ..support.progress import Progress, silent
from ..support.result_folder import result_folder
from ..support.text_files import json_lines, write_text
from ..targets import Target
from .places import CURVE, QUANTISATION

if TYPE_CHECKING:
    from typing_extensions import Unpack


def quantize(
    model: str | Path,
    data: str | None,
    out: Path,
    *,
    settings: QuantiseSettings = QuantiseSettings(),
    target: Target | None = None,
    metric: str | None = None,
    calibration: str | None = None,
    search: SearchSettings = SearchSettings(),
    progress: Progress = silent,
    **options: Unpack[ImportKeywords],
) -> Quantised:
    """Quantise a float model by samples, within a loss of accuracy; write it to `out`, quantize.json and curve.svg next to it.

    `data` is a source of samples, `calibration` another one for ranges alone. The curve has sizes if there is a `target`. Raises
    ConfigError without samples; ModelError where no layer is good enough in integers; OutputError.
    """
    if not data:
        raise ConfigError(
            f"There are no samples to quantise '{model}' by: ranges of random inputs would be wrong.",
            "Give --data, or `data:` of the model in params.yaml.",
        )
    if out.is_dir() or out.absolute() == Path(model).absolute():
        raise OutputError(f"'{out}' is {'a folder' if out.is_dir() else 'the model itself'}.", "Give another file.")
    chosen, path = ImportOptions(**options), resolve_source(str(model))
    asked = replace(chosen, inputs={}, outputs=tuple(chosen.outputs), io=None)
    given, ported = given_model(path, asked), given_model(path, replace(chosen, io=None))
    if given is None or ported is None:
        raise ModelError(f"'{model}' is the canonical model of an import.", "Give the file that it was made of.")
    forms = input_forms(ported)
    samples = FileSamples(read_samples(data, forms), ported)
    ranges = None if calibration is None else FileSamples(read_samples(calibration, forms), ported)
    from ..fit.predicted_remedies import quantised_sizes

    ports = replace(chosen, shapes={}, fix={}, io=settings.io)
    sizes = None if target is None else quantised_sizes(target, search, ports)
    found = quantise_model(
        given, samples, settings, choose_metric(metric), sizes, None if target is None else target.name, progress, ranges
    )  # fmt: skip
    with result_folder(out.parent) as folder:
        write_model(found.model, folder / out.name)
        record = found.to_json() | {
            "made_from": model_record(path, str(model), chosen),
            "file": digest_of(folder / out.name),
        }
        write_text(folder / QUANTISATION, json_lines(record))
        if target is not None:
            write_text(folder / CURVE, curve_picture(found))
    return found


def build_within(
    build: Callable[..., FootprintReport],
    model: str | Path,
    data: str | None,
    target: Target,
    out: Path,
    *,
    settings: QuantiseSettings = QuantiseSettings(),
    metric: str | None = None,
    progress: Progress = silent,
    name: str | None = None,
    **options: Unpack[ImportKeywords],
) -> FootprintReport:
    """Build a float model by `build`; where it does not fit `target`, quantise it by the samples `data`, say so, and build that.

    Samples are the consent to a loss: without them nothing is quantised. `build` takes a model and choices of an import, and writes to the folder `out`. The quantised file and quantize.json stay there, next
    to the sequence, which is replayed on that file. A model that loses too much, or gains nothing, stays float. Raises ConfigError for the samples.
    """
    if data is None:
        return build(model, name=name, **options)
    floats, log, file = ImportKeywords(**options | {"io": None}), logging.getLogger("passfit"), out / "quantised.onnx"
    report = build(model, name=name, **floats)
    for earlier in (file.name, QUANTISATION, CURVE):
        (out / earlier).unlink(missing_ok=True)
    if report.fits:
        return report
    if settings.form == INT8:
        settings = replace(settings, io=options.get("io") or settings.io)
    try:
        found = quantize(
            model, data, file, settings=settings, target=target, metric=metric, progress=progress, **floats
        )
    except ModelError as error:
        log.warning("the float model does not fit %s, and is not quantised: %s", target.name, error)
        return report
    taken = found.taken
    log.warning(
        "the float model does not fit %s: it is quantised to %s, which loses %.4f of %s on %d samples: see '%s'.",
        target.name, taken.name, taken.loss, found.metric, found.judged, file.with_name(QUANTISATION),
    )  # fmt: skip
    name = name or Path(str(model).rpartition("!")[2]).stem
    return build(file, name=name, **options | {"shapes": {}, "fix": {}})  # which are bound in it
