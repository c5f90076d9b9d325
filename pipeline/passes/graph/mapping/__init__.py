"""Plan fusion by mapping types: what a fused kernel costs, the best plan, and the groups it becomes."""
