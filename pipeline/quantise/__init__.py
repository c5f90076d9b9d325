"""Quantise models by samples: in integers or halves, with layers left in float until a loss of accuracy holds."""
