"""Check arena plans with code the planner does not share: `validate_plan`, `checked_plan`."""
