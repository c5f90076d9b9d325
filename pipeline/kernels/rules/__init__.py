"""Schedule rules, one per file, and their parts: tile_* with loop_peeling, sliding_* with line_buffer, and others.

Public faces: `tile_reduction`, `sliding_window`, `vector_reduction`, `split_by_range`, `fuse_loops`, `flatten_axes`,
`parallelise_loops`, `jam_loops`, `vector_loops`.
"""
