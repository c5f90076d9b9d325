"""Leave no If, Loop, Scan or sequence: branches are selected, loops unrolled, sequences replaced by their elements."""
