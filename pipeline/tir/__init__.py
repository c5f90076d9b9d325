"""Analyse and build TIR of one kernel: loop nests, stores, index arithmetic, inlining, workspace, in-place analysis.

Public faces: `analyse_sharing`, `workspace_bytes`, `inlined`, `memoise_by_structure`, `blocks_of`, `stores`.
"""
