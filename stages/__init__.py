"""One short module per DVC stage: read params.yaml, call passfit, write files."""
