"""Predict in seconds which targets a model fits: quick plans, their memory and code on each target, verdicts, remedies."""
