"""The catalogue: named transformations with a spec string, from the imported graph to the order of the kernels.

Import what you need from the modules: `registry` (find, parse), `sequence` (read, write, replay).
"""
