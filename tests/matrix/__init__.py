"""Matrix of files: small networks in every kind of numbers, operator set, file version and place of constants."""
