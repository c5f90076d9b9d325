"""Judge footprints by budgets, capacities and growth. Public faces: `run_gate`, `GateResult`, `why_refused`."""

from .run import GateResult, run_gate, why_refused

__all__ = ["GateResult", "run_gate", "why_refused"]
