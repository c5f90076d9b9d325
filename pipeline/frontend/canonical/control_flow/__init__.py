"""Leave no If, Loop or Scan: branches are selected, loops unrolled."""
