"""Turn a Relax module into scheduled TIR kernels: lower, rewrite, schedule, rules, weights.

Public faces: `lower.lower.lower`, `lower.schedule_program.schedule_program`, `schedule.candidates.schedules`.
"""
