"""Repack weights at compile time into the layout their kernel reads.

Public faces: `Repack`, `repackable_parameters`, `repack_weights`, `read_all_repacked`.
"""
