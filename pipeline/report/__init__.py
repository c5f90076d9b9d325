"""Tables, pictures and progress for people: explanations, footprints, searches, the arena over time."""
