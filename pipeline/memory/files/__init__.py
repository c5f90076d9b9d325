"""Write and read footprint.json, plan.json and MiniMalloc's CSV: `write_report`, `write_plan`, `write_minimalloc`."""
