"""Analyse and build TIR of one kernel: loop nests, stores, index arithmetic, inlining, workspace, in-place analysis.

Public faces: `analyse_sharing`, `workspace_bytes`, `inlined`, `memoise_by_structure`, `blocks_of`, `stores`.
"""

#: target that graphs are lowered for; details of a device matter only when objects are built
HOST = {"kind": "llvm"}
