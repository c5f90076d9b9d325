"""The strategies by name: ours, and those of the literature it is compared with.

Each starts from `tvm-default`, so none returns anything worse.
"""

from .annealing import annealing
from .beam import beam
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
    "explicit": explicit,
    "greedy": greedy,
    "opass": opass,
    "orchestrated": orchestrated,
    "random": random_walk,
    "tvm-default": tvm_default,
}

__all__ = ["STRATEGIES"]
