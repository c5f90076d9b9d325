"""Search strategies by name, in STRATEGIES: ours, and the literature's for comparison.

Each starts from `tvm-default`, so none returns anything worse. `trace.Trace` keeps the best state of a search.
"""

from .annealing import annealing
from .beam import beam
from .by_architecture import by_architecture
from .default import tvm_default
from .explicit import explicit
from .greedy import greedy
from .opass import opass
from .orchestrated import orchestrated
from .random_walk import random_walk
from .trace import Strategy

STRATEGIES: dict[str, Strategy] = {
    "annealing": annealing,
    "beam": beam,
    "by-architecture": by_architecture,
    "explicit": explicit,
    "greedy": greedy,
    "opass": opass,
    "orchestrated": orchestrated,
    "random": random_walk,
    "tvm-default": tvm_default,
}

__all__ = ["STRATEGIES"]
