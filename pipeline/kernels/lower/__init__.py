"""Lower a Relax module to a Program and its kernels; schedule and specialise these.

Public faces: `lower.lower`, `lower.Lowered`, `schedule_program.schedule_program`, `specialise.specialise_kernels`.
"""
