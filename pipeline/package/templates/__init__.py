"""Hold the templates of packages, for every kind and for one."""
