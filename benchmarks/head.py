"""Write the head of every results file: command, commit, date, machine, versions, load."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
#: rows of the commit at hand, a folder a benchmark; ignored by git
RAW = HERE / ".raw"
#: files that can change a result
_SOURCES = ("pipeline", "stages", "benchmarks", "pyproject.toml", ":!benchmarks/results")
_PACKAGES = ("passfit", "apache-tvm", "onnx", "onnxruntime", "numpy")
#: load average below which a machine counts as quiet
_QUIET = 0.5
#: flags of Linux that each level of x86-64 adds
_LEVELS = (("x86-64-v2", "sse4_2"), ("x86-64-v3", "avx2"), ("x86-64-v4", "avx512vl"))


@dataclass(frozen=True)
class Head:
    """Origin of a results file. `changes` is a digest of uncommitted changes, "" without any; `load` is the load
    average over a minute, at the start."""

    commit: str
    changes: str
    date: str
    machine: str
    versions: str
    load: float

    @property
    def key(self) -> str:
        """Name the folder of rows that one table may hold: one commit, one machine, one set of versions."""
        rest = json.dumps([self.changes, self.machine, self.versions])
        return f"{self.commit[:12]}-{hashlib.sha256(rest.encode()).hexdigest()[:8]}"

    def lines(self, command: str) -> list[str]:
        """Return the head as Markdown, for results that `command` remakes."""
        quiet = "quiet" if self.load < _QUIET else "shared with other work"
        return [
            f"* command: `{command}`",
            f"* commit: {self.commit[:12]}{' + uncommitted changes' if self.changes else ''}, {self.date}",
            f"* machine: {self.machine}",
            f"* versions: {self.versions}",
            f"* load average at the start: {self.load:.2f}, {quiet}",
        ]


def head() -> Head:
    """Describe this checkout and this machine, now."""
    return Head(
        commit=_git("rev-parse", "HEAD").strip() or "unknown",
        changes=_changes(),
        date=datetime.now(UTC).date().isoformat(),
        machine=_machine(),
        versions=", ".join(
            [
                *(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES),
                f"python {platform.python_version()}",
            ]
        ),
        load=os.getloadavg()[0],
    )


def begin(benchmark: str, now: Head | None = None) -> tuple[Head, Path]:
    """Return the head of a benchmark and the folder of its rows; a run that goes on keeps the head it began with."""
    now = now or head()
    folder = RAW / now.key / benchmark
    file = folder / "head.json"
    if file.exists():
        return Head(**json.loads(file.read_text(encoding="utf-8"))), folder
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(now), indent=1) + "\n", encoding="utf-8")
    return now, folder


def publish(name: str, text: str, whole: bool) -> None:
    """Write a page as results/`name`.md if it is `whole`; print one of a part."""
    if whole:
        (HERE / "results" / f"{name}.md").write_text(text, encoding="utf-8")
    else:
        print(text)


def _changes() -> str:
    """Digest the uncommitted changes of all files that can change a result."""
    if not _git("status", "--porcelain", "--", *_SOURCES).strip():
        return ""
    digest = hashlib.sha256(_git("diff", "HEAD", "--", *_SOURCES).encode())
    for name in _git("ls-files", "--others", "--exclude-standard", "--", *_SOURCES).splitlines():
        digest.update(name.encode() + (HERE.parent / name).read_bytes())
    return digest.hexdigest()[:12]


def _git(*arguments: str) -> str:
    """Return the output of git in this checkout; "" outside a repository."""
    done = subprocess.run(["git", *arguments], cwd=HERE.parent, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def _machine() -> str:
    """Name the processor, its cores and its instruction set."""
    file = Path("/proc/cpuinfo")
    facts = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", file.read_text(), re.MULTILINE)) if file.exists() else {}
    name = facts.get("model name", platform.processor() or "unknown processor")
    if "cpu family" in facts:
        name += f" (family {facts['cpu family']}, model {facts.get('model', '?')})"
    flags = facts.get("flags", "").split()
    level = [level for level, flag in _LEVELS if flag in flags][-1:] or [platform.machine()]
    return f"{name}, {os.cpu_count()} cores, {level[0]}"
