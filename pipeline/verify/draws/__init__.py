"""Draw seeded inputs that fit the operators of a model."""
