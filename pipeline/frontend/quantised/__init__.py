"""Keep quantised models quantised: integer layers, integer moves."""
