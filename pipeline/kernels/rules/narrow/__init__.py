"""Schedule windows over planes of few columns."""
