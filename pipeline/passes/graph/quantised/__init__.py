"""Legalize quantised graphs: dequantisation inside readers, quantisation without a library function."""
