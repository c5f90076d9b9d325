"""List the rows of instructions that sum integer products: see MicroKernel."""

from __future__ import annotations

from tvm.ir import Expr

from ....targets import Machine
from ....targets.dot_products import DOT_PRODUCTS, DotProduct
from ....tir.operators.pairs import fours, pairs
from ....tir.operators.quads import dots
from .channel_taps import ChannelTaps
from .channel_windows import ChannelWindows
from .micro_kernel import MicroKernel
from .nchw_pmaddwd import NchwPmaddwd
from .neon_c2s4 import NeonC2s4
from .neon_c16 import NeonC16
from .runs.channel_lines import ChannelLines
from .runs.nhwc_pmaddwd_blocked import NhwcPmaddwdBlocked
from .runs.nhwc_runs import NhwcRuns
from .runs.vector_runs import VectorRuns
from .runs.word_runs import WordRuns


def _pmaddwd(machine: Machine) -> bool:
    return machine.pmaddwd and not machine.compact


def _smull(machine: Machine) -> bool:
    return machine.smull_sadalp and "sdot" not in machine.dots and not machine.compact


def _smlad(machine: Machine) -> bool:
    return "smlad" in machine.dots


def _add_pairs(sum_: Expr, weights: Expr, values: Expr) -> Expr:
    return sum_ + pairs(weights, values)


def dot_rule(dot: DotProduct) -> MicroKernel:
    """Return the rule for an instruction, on vectors if code may be long."""
    return MicroKernel(
        dot.name,
        lambda machine: dot.name in machine.dots and not (machine.compact and machine.lanes > 1),
        NhwcRuns,
        multiply=dots if dot.values == "int8" else fours,
        group=4,
        values=dot.values,
        fill_lanes=32,
    )


channel_windows = MicroKernel(
    "channel_windows", lambda machine: machine.lanes > 1 and not machine.compact, ChannelWindows, depthwise=True
)
channel_lines = MicroKernel(
    "channel_lines", lambda machine: machine.vmlava, ChannelLines, depthwise=True, values="int8", vectors=True
)
channel_taps = MicroKernel("channel_taps", _smlad, ChannelTaps, depthwise=True)
vector_runs = MicroKernel(
    "vector_runs", lambda machine: machine.vmlava, VectorRuns, multiply=dots, group=16, values="int8", vectors=True
)
word_runs = MicroKernel("word_runs", _smlad, WordRuns, group=4, fill_lanes=0)
DOT_RULES = tuple(map(dot_rule, (row for row in DOT_PRODUCTS if row.rule)))
nhwc_pmaddwd_blocked = MicroKernel(
    "nhwc_pmaddwd_blocked", _pmaddwd, NhwcPmaddwdBlocked, multiply=_add_pairs, group=2, values="int16", others=2
)
nhwc_pmaddwd = MicroKernel("nhwc_pmaddwd", _pmaddwd, NhwcRuns, multiply=_add_pairs, group=2, values="int16", others=2)
nchw_pmaddwd = MicroKernel(
    "nchw_pmaddwd", _pmaddwd, NchwPmaddwd, multiply=_add_pairs, group=2, values="int32", others=2
)
neon_c16 = MicroKernel("neon_c16", _smull, NeonC16)
neon_c2s4 = MicroKernel("neon_c2s4", lambda machine: machine.smull_sadalp and not machine.compact, NeonC2s4)

#: all rows, the best first
ROWS = (
    channel_windows, channel_lines, channel_taps,
    vector_runs, word_runs, *DOT_RULES, nhwc_pmaddwd_blocked, nhwc_pmaddwd, nchw_pmaddwd, neon_c16, neon_c2s4,
)  # fmt: skip
