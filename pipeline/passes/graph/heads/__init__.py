"""Divide attention into its heads: the pass, the rewrite, and the restriction of values to a part of an axis."""
