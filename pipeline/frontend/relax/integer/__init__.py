"""Compute quantised convolutions and products by integers: one kernel a node."""
