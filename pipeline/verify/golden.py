"""Keep golden vectors next to a library: inputs of its comparison, and the outputs that a device has to reproduce.

    inputs.bin     32 bits that count the cases, and all inputs of all cases
    outputs.bin    all outputs of all cases, in the same order
    golden.json    number of cases, source of the outputs, and the largest difference of each

The outputs are those of the library where it ran: a device runs the same code. Else they are the reference's.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..program import Program
from ..support.text_files import json_lines, write_text
from .compare import Case, Tensors
from .error_bounds import eps_of, is_float, largest_magnitude, output_range

INPUTS, OUTPUTS, GOLDEN = "inputs.bin", "outputs.bin", "golden.json"
#: difference of a float from the library's own, as a fraction of the output's range: another order of sums, no other model
_TOLERANCE = 1e-4
#: bytes of inputs and outputs that are kept, one case at least
_MOST_BYTES = 1 << 20


def keep_golden(
    folder: Path, program: Program, cases: Sequence[Case], how: str, outputs: Sequence[Tensors] | None, tolerance: float
) -> None:
    """Write the vectors of the first cases to `folder`; nothing where there are no outputs.

    `outputs` are the library's, run by `how`, or None: then the reference's, with its `tolerance`.
    """
    expected = [case.expected for case in cases] if outputs is None else outputs
    names = [[port.name for port in group] for group in (program.inputs, program.outputs)]
    if not all(name in each for each in expected for name in names[1]):
        return
    sizes = [
        sum(value.nbytes for value in (*case.inputs.values(), *each.values())) for case, each in zip(cases, expected)
    ]
    kept = max(1, sum(total <= _MOST_BYTES for total in np.cumsum(sizes)))
    chosen, results = [case.inputs for case in cases[:kept]], expected[:kept]
    header = len(chosen).to_bytes(4, "little")
    (folder / INPUTS).write_bytes(header + b"".join(each[name].tobytes() for each in chosen for name in names[0]))
    (folder / OUTPUTS).write_bytes(b"".join(each[name].tobytes() for each in results for name in names[1]))
    units = max(case.units for case in cases) if outputs is None else 0
    share = tolerance if outputs is None else _TOLERANCE
    tolerances = [_tolerance([each[name] for each in results], share, units) for name in names[1]]
    source = cases[0].reference if outputs is None else f"the library ({how})"
    write_text(folder / GOLDEN, json_lines({"cases": len(chosen), "outputs_of": source, "tolerances": tolerances}))


def _tolerance(values: list[np.ndarray], share: float, units: int) -> float:
    """Return the largest difference of an output: a share of the range of floats, or a unit in their last place."""
    if not is_float(values[0]):
        return units if values[0].dtype.itemsize == 1 and values[0].dtype != bool else 0
    return max(share * output_range(values), eps_of(values[0]) * largest_magnitude(values))
