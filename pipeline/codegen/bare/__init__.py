"""Generate code for targets without an operating system."""
