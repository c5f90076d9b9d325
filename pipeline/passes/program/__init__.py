"""Passes on the lowered program: `CutSums`, `Layout`, `Order`, `Rematerialise`, `Share`, `SplitRows` and
`SplitChannels`."""
