"""Gather the examples of all rules: by rule, graphs it changes, twins it leaves, and the reason it exists."""

from __future__ import annotations

from . import arithmetic, convolution, layout

_GROUPS = (arithmetic, convolution, layout)

EXAMPLES = {name: each for group in _GROUPS for name, each in group.EXAMPLES.items()}
TWINS = {name: each for group in _GROUPS for name, each in group.TWINS.items()}
#: graphs on which the rule fires, as `rebench/NN.onnx` or words, and why it exists
REASONS = {name: each for group in _GROUPS for name, each in group.REASONS.items()}
