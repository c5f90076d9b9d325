"""Check the values from which kernels compute addresses and divisors: no input makes a library leave its memory."""
