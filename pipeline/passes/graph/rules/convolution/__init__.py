"""Rules of convolutions and dense layers: padding, scale, bias, batch norm, taps, partial sums."""
