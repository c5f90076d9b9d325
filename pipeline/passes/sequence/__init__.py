"""List, parse, store and replay pass sequences: `catalogue`, `sequence`, `replay`, `apply_program_passes`."""
