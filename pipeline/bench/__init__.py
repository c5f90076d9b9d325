"""The comparisons in the README: every search strategy on a folder of graphs, beside what was published."""
