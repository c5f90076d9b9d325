"""Share memory between buffers, in place or without copies: `share`."""
