"""Bring kernels into the forms that the rules match: each a rewrite of a kernel to an equal one."""
