"""Rules for loops that a kernel marks itself, as recurrent layers do: unroll-and-jam, vectors."""
