"""Lower a Relax module to a Program and its TIR kernels, schedule them together, specialise them in place.

Public faces: `lower.lower`, `lower.Lowered`, `schedule_program.schedule_program`, `specialise.specialise_kernels`.
"""
