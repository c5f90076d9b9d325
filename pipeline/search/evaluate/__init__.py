"""Evaluate candidates without compiling: `evaluation.Evaluator` over `workers`, `scoring.Scorer` in each process.

`candidates` holds the search space, `tvm_default` the baseline.
"""
