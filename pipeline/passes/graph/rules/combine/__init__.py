"""Rules that compute parallel convolutions and products as one."""
