"""Show `passfit profile --kernels`: the time of each kernel beside its roofline, the most lost time first."""

from __future__ import annotations

from rich.console import RenderableType

from .fit import Nodes, fitted, table
from .kernel_names import kernel_label

#: kernels listed; the rest is in kernels.json
ROWS = 25


def kernels_table(profile: dict) -> RenderableType:
    """Show the object of kernels.json."""
    kernels = sorted(profile["kernels"], key=lambda each: (each["least_ns"] - each["ns"], each["step"]))
    total = max(1, profile["run_ns"])
    peak = profile["peak"]["multiply_adds_per_s"] / 1e9
    title = f"kernels of {profile['model']} on {profile['target']}: {total / 1e6:,.3f} ms a run"
    columns = "<kernel", "<nodes", ">µs", ">share", ">Mop", ">Gop/s", ">roofline"
    made = table(title, *columns)
    for each in kernels[:ROWS]:
        ns = max(1, each["ns"])
        made.add_row(
            kernel_label(each["step"], each["kernel"]), Nodes(each["nodes"]), f"{ns / 1e3:,.1f}", f"{ns / total:.0%}",
            f"{each['operations'] / 1e6:,.3f}", f"{each['operations'] / ns:.1f}", f"{each['least_ns'] / ns:.2f}",
        )  # fmt: skip
    least = sum(each["least_ns"] for each in kernels)
    rest = f"{len(kernels) - ROWS} more kernels are in the file; " if len(kernels) > ROWS else ""
    return fitted(
        made,
        f"{rest}first the most time above the roofline, which is {least / total:.0%} of the whole",
        f"op: a multiply-add of floats, or any other operation on an element; this core: {peak:.1f} Gop/s",
        "roofline: least time for the operations, and for the bytes read and written, ÷ time",
    )
