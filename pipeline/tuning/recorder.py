"""The kernels a program is made of, as they are about to be scheduled: a replay of its sequence notes them down."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ..kernels.schedule.candidates import Schedule, is_scheduled
from ..kernels.schedule.tuned import ScheduleRequest, Tuning


@dataclass(frozen=True)
class ScheduleRecorder(Tuning):
    """A tuning that leaves every kernel to the rules, and notes it: by fingerprint, the first request for it and how
    often a run calls it."""

    requests: dict[str, ScheduleRequest] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)

    def schedule(self, request: ScheduleRequest) -> Schedule:
        if not is_scheduled(request.kernel):
            fingerprint = request.fingerprint
            self.requests.setdefault(fingerprint, request)
            self.calls[fingerprint] += request.calls
        return request.rules
