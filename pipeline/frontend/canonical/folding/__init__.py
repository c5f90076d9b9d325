"""Fold constants: choose the nodes, compute them by the rules of their operator set."""
