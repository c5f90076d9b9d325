"""Budgets, capacities and growth against footprints: the command that says no."""

from .run import GateResult, run_gate

__all__ = ["GateResult", "run_gate"]
