"""Compile results whose length the data decide: tensors of their bound, with the length as a value of its own."""
