"""Build the library of a program with loops, and compare its states and results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx

from passfit.memory.validation.checked_plan import checked_plan
from passfit.targets import Target

from ....models import run

if TYPE_CHECKING:
    from passfit.kernels.lower.lower import Lowered


def check_library(model: onnx.ModelProto, lowered: Lowered, workspace: int, target: Target, folder: Path) -> None:
    """Compare the outputs `h` and `y` of a library on random inputs with ONNX Runtime's; `workspace` is in bytes."""
    from passfit.codegen.build_library import build_library
    from passfit.verify.runner import link

    library = build_library("body", lowered, checked_plan(lowered.program, target), workspace, target, folder)
    random = np.random.default_rng(3)
    inputs = {
        port.name: random.standard_normal([each.dim_value for each in port.type.tensor_type.shape.dim]).astype(
            np.float32
        )
        for port in model.graph.input
    }
    _, (outputs,) = link(library, lowered.program, target, folder).run([inputs])
    for name, wanted in zip(("h", "y"), run(model, inputs), strict=True):
        np.testing.assert_allclose(outputs[name], wanted, rtol=1e-3, atol=1e-4)
