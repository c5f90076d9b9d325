"""Find the energy counters of the processor packages (RAPL), and compute the energy of a run from them.

    /sys/class/powercap/intel-rapl:0/name                   package-0
    /sys/class/powercap/intel-rapl:0/energy_uj              microjoules, back to 0 beyond the range
    /sys/class/powercap/intel-rapl:0/max_energy_range_uj    the range

Linux' power capping framework, Documentation/power/powercap; AMD's processors have the same files. Zones inside a
package (`intel-rapl:0:0`) and the whole platform (`psys`) count the same joules again, and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...memory.measured import Energy

ROOT = Path("/sys/class/powercap")

_ZONE = re.compile(r"intel-rapl:(\d+)")
#: updates of a counter are about a millisecond apart: below so many nanoseconds its steps show
LEAST_NANOSECONDS = 100_000_000


@dataclass(frozen=True)
class Counter:
    """Energy counter of a package; `file` holds microjoules, `range_uj` is the value it wraps at."""

    name: str
    file: Path
    range_uj: int

    def consumed(self, before: int, after: int) -> int:
        """Return the microjoules between two readings, less than a whole range apart."""
        return after - before if after >= before else after - before + self.range_uj


def rapl_counters(root: Path | None = None) -> tuple[tuple[Counter, ...], str]:
    """Return the counters of all packages; none, and the reason, if one of them cannot be read."""
    folder = root or ROOT
    zones = [each for each in folder.glob("intel-rapl:*") if _ZONE.fullmatch(each.name)] if folder.is_dir() else []
    found = []
    for zone in sorted(zones, key=lambda each: int(each.name.partition(":")[2])):
        try:
            name = (zone / "name").read_text(encoding="utf-8").strip()
            if not name.startswith("package"):
                continue
            counter = Counter(name, zone / "energy_uj", int((zone / "max_energy_range_uj").read_text(encoding="utf-8")))
            int(counter.file.read_text(encoding="utf-8"))
        except OSError as error:
            return (), f"absent: {error.filename} cannot be read: {error.strerror}"
        except ValueError:
            return (), f"absent: {zone} does not hold numbers"
        found.append(counter)
    return tuple(found), "" if found else f"absent: {folder} has no RAPL package"


def energy_of(
    counters: Sequence[Counter], readings: Sequence[Sequence[int]], runs: int, nanoseconds: int, why_none: str = ""
) -> Energy:
    """Compute the energy of one of `runs` from the counters before and after.

    `why_none` is the reason of `rapl_counters` for having none.
    """
    if not counters:
        return Energy(why_none)
    if len(readings) != len(counters) or any(value < 0 for pair in readings for value in pair) or not runs:
        return Energy("absent: a counter could not be read while the library ran")
    if nanoseconds < LEAST_NANOSECONDS:
        return Energy(f"absent: {runs} runs took {nanoseconds / 1e6:.0f} ms, too short for the counters")
    total = sum(counter.consumed(*pair) for counter, pair in zip(counters, readings, strict=True))
    if not total:
        return Energy("absent: the counters stood still")
    names = ", ".join(counter.name for counter in counters)
    return Energy(f"RAPL: {names}; all processes of the machine", total / runs / 1000)
