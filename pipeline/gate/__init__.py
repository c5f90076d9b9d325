"""Judge footprints by budgets, capacities and growth. Public faces: `run_gate`, `GateResult`, `judge_repo`, `why_refused`."""

from .run import GateResult, judge_repo, run_gate, why_refused

__all__ = ["GateResult", "judge_repo", "run_gate", "why_refused"]
