"""Run Python packages' own tests on compiled libraries, by one changed import; write results/packages.md.

    .venv/bin/python benchmarks/packages.py [--package NAME …]

Each package comes from PyPI: its wheel as installed, its tests from the source distribution. They run twice, with ONNX Runtime and
with `import onnxruntime` replaced by `import passfit.runtime as onnxruntime`; nothing else in the package changes.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse
import urllib.request
import xml.etree.ElementTree
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from head import HERE, head

_INDEX = "https://pypi.org/simple/{}/"
#: the index as JSON: PEP 691
_ACCEPTED = {"Accept": "application/vnd.pypi.simple.v1+json"}
#: names of archives with sources, and of wheels for this machine
_SOURCES, _WHEELS = r"\.tar\.gz", r"-(py3-none-any|cp\d+-abi3-manylinux\S*x86_64|py3-none-manylinux\S*x86_64)\.whl"
_REPLACED = (
    (re.compile(r"^(\s*)from onnxruntime import", re.M), r"\1from passfit.runtime import"),
    (re.compile(r"^(\s*)import onnxruntime as (\w+)", re.M), r"\1import passfit.runtime as \2"),
    (re.compile(r"^(\s*)import onnxruntime\b(?! as)", re.M), r"\1import passfit.runtime as onnxruntime"),
)
_PASSED = "passed"
#: seconds for the tests of one package
_SECONDS = 3600


@dataclass(frozen=True)
class Package:
    """Package of PyPI: the test files that run models, and the folder that imports onnxruntime, in the wheel or the sources."""

    name: str
    version: str
    tests: tuple[str, ...]
    changed: str


PACKAGES = (
    Package("scrfd", "0.3.0", ("tests",), "installed/scrfd"),
    Package("piper-tts", "1.8.0", ("tests/test_hebrew_phonemizer.py", "tests/test_tashkeel.py"), "installed/piper"),
    Package(
        "skl2onnx", "1.20.0",
        tuple(f"tests/test_sklearn_{each}_converter.py" for each in ("mlp", "polynomial_features", "pca")), "source/tests",
    ),
)  # fmt: skip


def download(package: Package, ending: str) -> bytes:
    """Return the bytes of the package's archive with such an ending."""
    page = _INDEX.format(package.name)
    with urllib.request.urlopen(urllib.request.Request(page, headers=_ACCEPTED), timeout=60) as answer:
        files = json.load(answer)["files"]
    name = re.compile(re.escape(f"{package.name}-{package.version}").replace(r"\-", "[-_]") + ending)
    (address, *_) = (each["url"] for each in files if name.fullmatch(each["filename"]))
    with urllib.request.urlopen(urllib.parse.urljoin(page, address), timeout=600) as answer:
        return answer.read()


def unpack(package: Package, folder: Path) -> None:
    """Unpack the sources to `folder`/source, without its `src`, and the wheel to `folder`/installed."""
    with tarfile.open(fileobj=io.BytesIO(download(package, _SOURCES))) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    unpacked.rename(folder / "source")
    shutil.rmtree(folder / "source" / "src", ignore_errors=True)
    zipfile.ZipFile(io.BytesIO(download(package, _WHEELS))).extractall(folder / "installed")


def replace_imports(folder: Path) -> int:
    """Replace the import of onnxruntime in all modules of a folder; return how many lines changed."""
    changed = 0
    for file in sorted(folder.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        for pattern, instead in _REPLACED:
            text, count = pattern.subn(instead, text)
            changed += count
        file.write_text(text, encoding="utf-8")
    return changed


def run_tests(package: Package, folder: Path) -> tuple[dict[str, str], float]:
    """Run the package's tests; return the outcome of each, and the seconds of all."""
    results = folder / "results.xml"
    results.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={results}", *package.tests]
    environment = {**os.environ, "PYTHONPATH": str(folder / "installed"), "PASSFIT_STORE": "off"}
    started = time.monotonic()
    subprocess.run(command, cwd=folder / "source", env=environment, timeout=_SECONDS, check=False, capture_output=True)
    seconds = time.monotonic() - started
    outcomes = {}
    for case in xml.etree.ElementTree.parse(results).iter("testcase"):
        failed = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        outcomes[f"{case.get('classname')}::{case.get('name')}"] = failed[0] if failed else _PASSED
    return outcomes, seconds


def measure(package: Package, folder: Path) -> str:
    """Run the tests of a package with both, and return its row."""
    unpack(package, folder)
    theirs, seconds = run_tests(package, folder)
    lines = replace_imports(folder / package.changed)
    ours, own_seconds = run_tests(package, folder)
    for name in theirs:
        if theirs[name] == _PASSED and ours.get(name) != _PASSED:
            print(f"{package.name}: {name} {ours.get(name, 'not run')}", file=sys.stderr)
    counts = [Counter(outcomes.values()) for outcomes in (theirs, ours)]
    both = sum(theirs[name] == ours.get(name) == _PASSED for name in theirs)
    return (
        f"| {package.name} {package.version} | {lines} | {len(theirs)} | {counts[0][_PASSED]} | {counts[1][_PASSED]} | {both} "
        f"| {seconds:.0f} | {own_seconds:.0f} |"
    )


def main() -> None:
    """Measure the packages asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", action="append", choices=[each.name for each in PACKAGES])
    asked = parser.parse_args().package
    begun, rows = head(), []
    for package in PACKAGES:
        if not asked or package.name in asked:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(measure(package, Path(folder)))
            print(rows[-1], flush=True)
    if not asked:
        text = "\n".join(
            [
                "# Python packages' own tests on compiled libraries\n",
                *begun.lines(".venv/bin/python benchmarks/packages.py"),
                "\nTests that fail with ONNX Runtime too lack files their distribution does not hold.\n",
                "| package | lines changed | tests | pass with ONNX Runtime | pass with passfit.runtime | pass with both | seconds | seconds with passfit |",
                "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
                *rows,
            ]
        )
        (HERE / "results" / "packages.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
