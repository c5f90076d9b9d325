"""Passes on the Relax module: `FoldConstant`, `FuseOperators`, `Legalize`, `ToMixedPrecision` and TVM's in `stock`."""
