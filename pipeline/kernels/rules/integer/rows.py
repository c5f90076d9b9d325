"""List the rows of instructions that sum integer products: see MicroKernel, and schedule/candidates.py for their order."""

from __future__ import annotations

from tvm.ir import Expr

from ....targets import Machine
from ....tir.operators.pairs import fours, pairs
from ....tir.operators.quads import dots
from ....tir.operators.runs import SUMS
from .byte_groups import ByteGroups
from .byte_runs import ByteRuns
from .channel_taps import ChannelTaps
from .channel_windows import ChannelWindows
from .micro_kernel import MicroKernel
from .pair_products import PairProducts
from .quad_products import QuadProducts
from .runs.channel_lines import ChannelLines
from .runs.dot_runs import DotRuns
from .runs.long_runs import LongRuns
from .runs.run_products import RunProducts
from .runs.vector_runs import VectorRuns
from .runs.word_runs import WordRuns

#: least registers for byte_groups
_REGISTERS = 32


def _pmaddwd(machine: Machine) -> bool:
    return machine.pairs and not machine.compact


def _vpdpbusd(machine: Machine) -> bool:
    return machine.dots and _pmaddwd(machine)


def _smull(machine: Machine) -> bool:
    return machine.quads and not machine.dots and not machine.compact


def _smlad(machine: Machine) -> bool:
    return machine.dots and machine.lanes == 1


def _add_pairs(sum_: Expr, weights: Expr, values: Expr) -> Expr:
    return sum_ + pairs(weights, values)


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
word_runs = MicroKernel("word_runs", _smlad, WordRuns, group=4)
dot_runs = MicroKernel("dot_runs", _vpdpbusd, DotRuns, multiply=fours, group=4, values="uint8", fill_lanes=32)
long_runs = MicroKernel("long_runs", _pmaddwd, LongRuns, multiply=_add_pairs, group=2, values="int16", others=2)
run_products = MicroKernel(
    "run_products", _pmaddwd, RunProducts, multiply=_add_pairs, group=2, values="int16", others=2
)
pair_products = MicroKernel("pair_products", _pmaddwd, PairProducts, multiply=_add_pairs, group=2, values="int16")
byte_groups = MicroKernel(
    "byte_groups",
    lambda machine: _smull(machine) and machine.registers * machine.lanes // SUMS >= _REGISTERS,
    ByteGroups,
)
byte_runs = MicroKernel("byte_runs", _smull, ByteRuns)
quad_products = MicroKernel("quad_products", lambda machine: machine.quads and not machine.compact, QuadProducts)
