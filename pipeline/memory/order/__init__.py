"""Order the steps for the least peak: `best_order`, `orders`; dependencies in `step_graph`."""
