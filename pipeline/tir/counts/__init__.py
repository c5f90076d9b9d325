"""Count the instructions of scheduled kernels: `operation_counts.kernel_work`."""
