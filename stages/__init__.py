"""Run one DVC stage per module: read params.yaml, call passfit, write files."""
