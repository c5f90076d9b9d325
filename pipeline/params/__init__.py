"""Read params.yaml into typed, frozen objects: `load_params`, `Params`, `declared`, `check_targets`."""
