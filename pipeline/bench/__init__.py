"""Compare all search strategies on a folder of graphs, beside published results: `rebench`, `rebench_table`."""
