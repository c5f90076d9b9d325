"""Refuse models by name that cannot be compiled: sizes, operators, and forms TVM reads wrongly (`refuse_…`)."""
