"""Hold one line of the gate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

#: ram, flash, a memory of the device by name, latency, instructions, stack, sum of ram, sum of flash, accuracy, accuracy loss,
#: agreement, or result
Quantity = str
LimitKind = Literal["budget", "capacity", "growth", "measured", "data", "stale", "altered"]
Pair = tuple[str, str]
#: quantities on the samples of a model, by the keys of their limits in a budget
ACCURACIES = {"accuracy": "accuracy", "accuracy loss": "max-accuracy-loss", "agreement": "min-agreement"}


@dataclass(frozen=True)
class Verdict:
    """Hold one line of the gate. `used`, `limit` and `margin` are bytes, instructions, or milliseconds of latency.

    margin = limit - used; of a limit that is the `least`, used - limit. Accuracies are fractions, or in the metric's unit. `used` is None if the check was impossible: no data, stale or altered data, no earlier figure, no
    measurement. Such a verdict is an error, not a failure. `why` is the cause in one line, with the distance to the limit. `base` is the
    earlier figure that growth is relative to. `note` is worth a remark though the limit holds. `line` is that of params.yaml,
    from 1, for failures.
    """

    model: str
    target: str
    quantity: Quantity
    limit_kind: LimitKind
    used: int | float | None
    limit: int | float | None
    ok: bool
    why: str
    base: int | float | None = None
    note: str = ""
    line: int | None = None
    least: bool = False

    @property
    def checked(self) -> bool:
        return self.used is not None

    @property
    def margin(self) -> int | float | None:
        if self.used is None or self.limit is None:
            return None
        return self.used - self.limit if self.least else self.limit - self.used

    @property
    def strain(self) -> float:
        """Return the part of the limit in use; above 1 if it does not hold.

        Growth counts from its base, a fraction to be reached by the errors allowed. Measured ram that holds is 0: nobody set that limit.
        """
        if self.used is None or self.limit is None:
            return math.inf
        if self.limit_kind == "measured" and self.ok:
            return 0.0
        used, limit = self.used - (self.base or 0), self.limit - (self.base or 0)
        if self.least:
            fraction = self.limit <= 1 and self.used <= 1
            used, limit = (1 - self.used, 1 - self.limit) if fraction else (self.limit, self.used)
        return used / limit if limit > 0 else float(used >= limit)


def unchecked_verdict(model: str, target: str, kind: LimitKind, why: str) -> Verdict:
    """Return the verdict on an unchecked pair, with the reason."""
    return Verdict(model, target, "result", kind, None, None, False, why)
