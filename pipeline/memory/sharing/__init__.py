"""Let buffers share memory, in place or without copies: `share`."""
