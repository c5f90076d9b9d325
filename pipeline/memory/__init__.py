"""Liveness, arena planning, the independent validator and the footprint: pure Python, knows neither TVM nor ONNX."""

from .account import account, fits, sum_of_tensors
from .alias import share
from .arena import ArenaPlan, plan_arena
from .dependencies import check_order
from .footprint import Budget, Footprint, FootprintReport, Measured, Start
from .liveness import ALIGNMENT, Lifetime, Parts, alive_bytes, bound, floor, lifetimes, ports_floor, shared_floor
from .planfile import SavedPlan, read_plan, write_plan
from .reportfile import read_report, write_report
from .schedule import CHEAP_ORDERS, Schedule, best_order, orders
from .validator import validate_plan

__all__ = [
    "ALIGNMENT",
    "CHEAP_ORDERS",
    "ArenaPlan",
    "Budget",
    "Footprint",
    "FootprintReport",
    "Lifetime",
    "Measured",
    "Parts",
    "SavedPlan",
    "Schedule",
    "Start",
    "account",
    "alive_bytes",
    "best_order",
    "bound",
    "check_order",
    "fits",
    "floor",
    "lifetimes",
    "orders",
    "plan_arena",
    "ports_floor",
    "read_plan",
    "read_report",
    "share",
    "shared_floor",
    "sum_of_tensors",
    "validate_plan",
    "write_plan",
    "write_report",
]
