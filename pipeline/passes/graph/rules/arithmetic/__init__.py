"""Rules of arithmetic and logic: identities, sums, factors, broadcasts."""
