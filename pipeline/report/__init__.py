"""Tables, a page and progress for people: explanations, footprints, searches, comparisons."""
