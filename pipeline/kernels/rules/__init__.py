"""Schedule rules, one per file, and their parts: tile_* with loop_peeling, sliding_* with line_buffer.

Windows of floats and products of rows are sums with an epilogue: fused_sum.

Rules (`rule.Rule`) for reductions: `register_tiles`, `sliding_windows`, `vector_sums`; `schedule/candidates.py` lists
them. Other public faces: `split_by_range`, `fuse_loops`, `flatten_axes`, `parallelise_loops`,
`unroll_and_jam`.
"""
