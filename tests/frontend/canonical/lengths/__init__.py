"""Check results whose length the data decide."""
