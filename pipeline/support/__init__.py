"""Share helpers below all rooms: files, folders, sizes, limits, interrupts and progress; imported by module."""
