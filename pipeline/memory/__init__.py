"""Plan memory: liveness, order, sharing, streaming, placement, validation and the footprint, without TVM or ONNX.

Public faces: the names in `__all__`; `streaming` is imported by its modules.
"""

from .files.footprint_file import read_report, write_report
from .files.plan_file import SavedPlan, read_plan, write_plan
from .footprint import Baseline, Budget, Footprint, FootprintReport, Measured, Start, fits
from .liveness import ALIGNMENT, BufferParts, Lifetime, bound, floor, lifetimes, live_bytes, ports_floor, shared_floor
from .order.best_order import CHEAP_ORDERS, FoundOrder, best_order, orders
from .order.step_graph import check_order
from .placement.account import account, sum_of_tensors
from .placement.plan_arena import ArenaPlan, Bank, plan_arena
from .sharing.share import share
from .validation.validate_plan import validate_plan

__all__ = [
    "ALIGNMENT",
    "CHEAP_ORDERS",
    "ArenaPlan",
    "Bank",
    "Baseline",
    "Budget",
    "BufferParts",
    "Footprint",
    "FootprintReport",
    "FoundOrder",
    "Lifetime",
    "Measured",
    "SavedPlan",
    "Start",
    "account",
    "best_order",
    "bound",
    "check_order",
    "fits",
    "floor",
    "lifetimes",
    "live_bytes",
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
