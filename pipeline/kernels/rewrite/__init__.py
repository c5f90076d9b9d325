"""Rewrite kernels: row windows, partial sums, streaming regions, split reductions, channels-last layouts.

Public faces: `stream_region`, `split_reductions`, `channels_last`, `splits_of`, `row_window`, `partial_sum`.
"""
