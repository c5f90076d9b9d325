"""Record the kernels of a program before scheduling, while its sequence is replayed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ..kernels.schedule.candidates import Schedule, is_scheduled
from ..kernels.schedule.tuned import ScheduleRequest, Tuning


@dataclass(frozen=True)
class ScheduleRecorder(Tuning):
    """Tuning that leaves every kernel to the rules, and records it.

    By fingerprint: the first request, and the calls per run.
    """

    requests: dict[str, ScheduleRequest] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)

    def schedule(self, request: ScheduleRequest) -> Schedule:
        if not is_scheduled(request.kernel):
            fingerprint = request.fingerprint
            self.requests.setdefault(fingerprint, request)
            self.calls[fingerprint] += request.calls
        return request.rules
