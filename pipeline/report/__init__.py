"""What people look at: sizes at the peak, the arena over time."""
