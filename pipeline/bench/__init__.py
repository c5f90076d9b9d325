"""Compare all search strategies on a folder of graphs, next to published results: `rebench`, `rebench_table`."""
