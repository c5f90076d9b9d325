"""Passes on graphs and programs, each with a spec string and its own `apply`.

Public faces: `base` (pass kinds), `sequence.catalogue` (find, parse), `sequence.sequence` (files), `sequence.replay`.
"""
