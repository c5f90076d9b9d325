"""Give inputs and outputs of a model the form that a device has."""
