"""Place buffers in one arena and add up the footprint: `plan_arena`, `account`."""
