"""Judge footprints by budgets, capacities and growth. Public faces: `run_gate`, `GateResult`."""

from .run import GateResult, run_gate

__all__ = ["GateResult", "run_gate"]
