"""Compare the import of a model whose data decide lengths with ONNX Runtime on its file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from passfit.frontend.canonical.lengths.fixed_outputs import bound_results, fix_outputs
from passfit.frontend.canonical.ports.apply import port_forms
from passfit.frontend.canonicalise import import_model
from passfit.frontend.source.import_options import ImportOptions

from ....models import run, save, shape_of

Tensors = Mapping[str, np.ndarray]


def imported(model: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    """Return the canonical form of a model."""
    with tempfile.TemporaryDirectory() as folder:
        return import_model(save(model, Path(folder)), ImportOptions(**options))


def check(model: onnx.ModelProto, cases: Iterable[Tensors], rtol: float = 0.0, **options: Any) -> onnx.ModelProto:
    """Check the import: outputs up to their lengths are those of the file, zeros are behind; return the import.

    `rtol` is allowed where sums over more rows are rounded in another order.
    """
    canonical = imported(model, **options)
    lengths = {name: form["length"] for name, form in port_forms(canonical)["outputs"].items()}
    names = [value.name for value in canonical.graph.output]
    given = deepcopy(model)
    bound_results(given, options.get("bounds", {}))
    fixed = fix_outputs(given, canonical)
    assert [value.name for value in fixed.graph.output] == names
    for inputs in cases:
        found = dict(zip(names, run(canonical, inputs), strict=True))
        reference = dict(zip(names, run(fixed, inputs), strict=True))
        for value in canonical.graph.output:
            assert found[value.name].shape == shape_of(value)
            np.testing.assert_allclose(found[value.name], reference[value.name], rtol, err_msg=value.name)
            assert found[value.name].dtype == reference[value.name].dtype
        for value, whole in zip(model.graph.output, run(given, inputs), strict=True):
            result = found[value.name]
            if value.name in lengths:
                axis, count = lengths[value.name]["axis"], int(found[lengths[value.name]["output"]].item())
                assert not result.take(range(count, result.shape[axis]), axis).any()
                assert count == whole.shape[axis]
                result = result.take(range(count), axis)
            np.testing.assert_allclose(result, whole, rtol, err_msg=value.name)
    return canonical
