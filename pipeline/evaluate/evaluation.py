"""Evaluate a model's file over samples once, and the libraries of any number of targets on the same ones.

    file ─► ONNX Runtime, all samples            ─► reference ─┐
    original of a quantised file ─► the same     ─► original  ─┼─► metric, decisions that agree, bound of verification
    library ─► native: all; emulator, desk: some ─► outputs   ─┘

Samples that only some are run of are evenly spread over all. Decisions are the largest score of a class, a score above its
threshold, the class and place of the surest box; numbers agree where they are within the tolerance of verification, relative
to the range of the output, or a unit of a quantised one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.accuracy import AccuracyReport, ClassScore, DataRecord, LibraryScore, Score
from ..data.boxes import read_detections, same_top_box
from ..data.decisions import DECIDING, Task, find_task
from ..data.metrics import Metric, check_metric, find_metric, pick
from ..data.samples import Samples, spread
from ..data.user_function import is_function
from ..errors import ConfigError
from ..frontend.quantised.port_scales import port_scales
from ..support.progress import Progress
from ..support.temporary_folder import scratch_folder
from ..targets import Target, emulated_board, how_to_run
from ..verify.error_bounds import distances, largest_difference, output_range
from ..verify.integers.exact_integers import is_quantised
from ..verify.integers.given_outputs import unit_of
from ..verify.runner import link
from .bound import outside_bound
from .open_result import REMAKE, OpenedResult
from .run_samples import Tensors, run_library, run_model
from .settings import EvaluateSettings
from .worst import worst_samples

if TYPE_CHECKING:
    import onnx

#: most classes that are told one by one
_MOST_CLASSES = 1000


class Evaluation:
    """Outputs of a model's file on samples, and all that libraries are compared with.

    `model` is canonical; `given` that of its file, None where there is none.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        given: onnx.ModelProto | None,
        samples: Samples,
        settings: EvaluateSettings,
        progress: Progress,
        original: tuple[onnx.ModelProto, Samples] | None = None,
    ):
        """Run the file, and the original of a quantised one, on the samples. Raises ConfigError, ModelError."""
        check_metric(settings.metric)
        self._model, self._given, self._samples = model, given, samples
        self._settings, self._progress = settings, progress
        self.numbers = spread(samples.count, settings.samples)
        self._file = given or model
        self._outputs, self._labels = run_model(self._file, samples, self.numbers, "running the file", progress)
        lacking = sum(label is None for label in self._labels)
        self._labelled = len(self._labels) - lacking
        if lacking and self._labelled:
            raise ConfigError(
                f"'{samples.source}': {lacking} of {len(self._labels)} samples have no label.",
                "Add them, or leave these samples out.",
            )
        if settings.metric is not None and not self._labelled:
            raise ConfigError(
                f"'{samples.source}' has no labels, which the metric '{settings.metric}' needs.",
                "Add labels, or leave the metric out: then decisions are compared with the file's alone.",
            )
        self._task = self._find_task(self._outputs, self._file)
        self._task.check_names(self._outputs, samples.classes if self._labelled else ())
        self._metric = find_metric(settings.metric, self._task)
        self.reference = self._score(self._outputs, self._file, self._metric)
        self.original: Score | None = None
        if original is not None:
            outputs, _ = run_model(*original, self.numbers, "running the original", progress)
            metric = self._metric
            if not is_function(metric.name):  # its outputs may have another form
                metric = find_metric(metric.name, self._find_task(outputs, original[0]))
            self.original = self._score(outputs, original[0], metric)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return remarks on casts of the samples, and on the output that is judged, if there are several."""
        judged = f"judged by the output '{self._task.output}': --output names another"
        return (*self._samples.remarks, *([judged] if len(self._outputs) > 1 and self._task.boxes is None else []))

    def report(
        self, opened: OpenedResult, name: str, target: Target, remark: Callable[[str], None] = lambda text: None
    ) -> AccuracyReport:
        """Run a library on its samples and compare it; `remark` is told why one is beyond the bound of verification.

        Raises ToolchainError, NumericError. A library that cannot run here has no samples.
        """
        if opened.manifest.get("target") != target.name:
            raise ConfigError(f"The library is for {opened.manifest.get('target')}, not {target.name}.", REMAKE)
        runner, numbers, outputs = how_to_run(emulated_board(target)), [], Tensors()
        if runner.command is not None:
            with scratch_folder() as folder:
                linked = link(opened.library, opened.program, target, folder)
                runner = linked.runner  # of an image too large for its board there is none
                most = None if runner.native else self._settings.emulated
                places = [] if runner.command is None else spread(len(self.numbers), most)
                numbers = [self.numbers[place] for place in places]
                outputs = run_library(linked, self._samples, numbers, self._progress) if numbers else {}
        record = DataRecord(self._samples.source, self._samples.digest, len(self.numbers), self._labelled)
        library = LibraryScore(runner.how, 0, None, None, 0.0, 0.0, False)
        found = AccuracyReport(
            name, target.name, self._metric.name, self._metric.higher_is_better, record, self.reference, library,
            self.original,
        )  # fmt: skip
        if not numbers:
            return found
        expected = pick(self._outputs, places)
        exact = bool(opened.manifest.get("exact", True))
        tolerance = max(self._settings.tolerance, 0.0 if exact else self._settings.max_error)
        truths = pick(self._truths, places)
        beyond = outside_bound(self._model, self._given, self._samples, numbers, outputs, truths, tolerance)
        if beyond:
            remark(beyond)
        errors = (largest_difference(outputs[each], value) / output_range([value]) for each, value in expected.items())
        farthest = max(errors)
        outputs, expected = (real_numbers(each, self._file) for each in (outputs, expected))
        library = LibraryScore(
            how=runner.how,
            samples=len(numbers),
            value=self._value(outputs, places, self._metric),
            reference=self._value(expected, places, self._metric),
            agreement=float(np.mean(self._agreeing(expected, outputs, tolerance))),
            max_rel_error=rounded(farthest),
            within=not beyond,
        )
        labels = [self._labels[place] for place in places]
        worst = worst_samples(self._task, self._samples, numbers, labels, expected, outputs)
        return replace(found, library=library, classes=self._classes(expected, outputs, labels), worst=worst)

    @cached_property
    def _truths(self) -> Tensors:
        """Return what libraries are held to: outputs of the file, of a quantised one those of its canonical model."""
        if self._given is None or not is_quantised(self._model):
            return self._outputs
        return run_model(self._model, self._samples, self.numbers, "running the canonical model", self._progress)[0]

    def _find_task(self, outputs: Tensors, model: onnx.ModelProto) -> Task:
        try:
            return find_task(real_numbers(outputs, model), self._labels if self._labelled else ())
        except ConfigError:
            if self._settings.metric is None or not is_function(self._settings.metric):
                raise
            return Task("value", next(iter(self._outputs)))  # the user's function knows the form

    def _score(self, outputs: Tensors, model: onnx.ModelProto, metric: Metric) -> Score:
        """Return the metric of a model on all samples."""
        places = range(len(self.numbers))
        return Score(len(places), self._value(real_numbers(outputs, model), places, metric))

    def _value(self, outputs: Tensors, places: Sequence[int], metric: Metric) -> float | None:
        """Return the metric over outputs, those of the samples at `places`; None without labels."""
        if not self._labelled:
            return None
        return rounded(metric.compute(outputs, [self._labels[place] for place in places]))

    def _agreeing(self, expected: Tensors, outputs: Tensors, tolerance: float) -> np.ndarray:
        """Return which decisions are the reference's."""
        task = self._task
        if task.boxes is not None:
            pairs = zip(read_detections(expected, task.boxes), read_detections(outputs, task.boxes), strict=True)
            return np.array([same_top_box(*pair) for pair in pairs])
        if task.kind != "value":
            return task.decisions(expected) == task.decisions(outputs)
        truth, found = expected[task.output], outputs[task.output]
        scale = port_scales(self._file).get(task.output)
        unit = scale[0] if scale is not None else unit_of(self._model, task.output, truth.dtype) or 0.0
        limit = max(tolerance * output_range([truth]), unit * (1 + tolerance))
        return distances(truth, found).reshape(len(truth), -1).max(1) <= limit

    def _classes(self, expected: Tensors, outputs: Tensors, labels: Sequence[Any]) -> tuple[ClassScore, ...]:
        """Return how many of each class are right, of decisions that are classes."""
        if not self._labelled or self._task.kind not in DECIDING:
            return ()
        truths = self._task.truths(labels)
        ours, theirs = (self._task.decisions(each) for each in (outputs, expected))
        classes = np.unique(truths)
        if len(classes) > _MOST_CLASSES:
            return ()
        named = self._samples.classes
        return tuple(
            ClassScore(
                named[kind] if 0 <= kind < len(named) else str(kind),
                int((truths == kind).sum()),
                rounded(float(np.mean(theirs[truths == kind] == kind))),
                rounded(float(np.mean(ours[truths == kind] == kind))),
            )
            for kind in classes.tolist()
        )


def real_numbers(outputs: Tensors, model: onnx.ModelProto) -> Tensors:
    """Return outputs with quantised ones dequantised, as labels are real numbers, and thresholds too."""
    scales = port_scales(model)

    def real(name: str, value: np.ndarray) -> np.ndarray:
        if name not in scales or value.dtype.kind not in "iu":
            return value
        scale, zero_point = scales[name]
        return (value.astype(np.float64) - zero_point) * scale

    return {name: real(name, value) for name, value in outputs.items()}


def rounded(value: float) -> float:
    """Return a figure with the digits that every machine repeats."""
    return float(f"{value:.12g}")
