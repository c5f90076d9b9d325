"""Print the code lines of every room beside those of a base: `make ledger BASE=main`.

A code line holds a token other than a comment, and is no part of a docstring or an import. Rooms of kernels/ and frontend/
are counted one by one.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
import tokenize
from collections import Counter
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
TOPS = ("pipeline", "stages", "tests", "benchmarks")
#: rooms with rooms inside
_DIVIDED = ("kernels", "frontend")
_BLANK = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(source: str) -> int:
    """Count the code lines of a module."""
    rows: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _BLANK:
            rows.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if text or isinstance(node, (ast.Import, ast.ImportFrom)):
            rows.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(rows)


def room(path: str) -> str:
    """Return the room of a module: its folder below pipeline/, or the top folder."""
    top, *inside = PurePosixPath(path).parent.parts
    depth = (2 if inside and inside[0] in _DIVIDED else 1) if top == "pipeline" else 0
    return "/".join((top, *inside[:depth]))


def count(revision: str) -> Counter[str]:
    """Count the code lines of each room at a revision. Raises CalledProcessError for an unknown one."""
    command = ["git", "archive", revision, "--", *TOPS]
    packed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    rooms: Counter[str] = Counter()
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        for member in files:
            if member.name.endswith(".py"):
                rooms[room(member.name)] += code_lines(files.extractfile(member).read().decode())
    return rooms


def table(before: Counter[str], after: Counter[str]) -> str:
    """Return a row for each room, the ones that shrank first, then the sums."""
    rooms = sorted(before | after, key=lambda each: (after[each] - before[each], each))
    rows = [(each, before[each], after[each]) for each in rooms]
    for top in TOPS:
        own = [each for each in rows if each[0].split("/")[0] == top]
        rows.append((f"{top}, all", sum(each[1] for each in own), sum(each[2] for each in own)))
    return "\n".join(f"{new - old:+7,} {old:8,} → {new:7,}  {name}" for name, old, new in rows)


def main(base: str) -> int:
    """Print the table of HEAD beside `base`. Returns the exit code."""
    try:
        before = count(base)
    except subprocess.CalledProcessError as error:
        print(
            f"'{base}' is not a revision here: {error.stderr.decode().strip()}. Name one: make ledger BASE=main",
            file=sys.stderr,
        )
        return 2
    print(f"Code lines by room, {base} → HEAD (without blanks, comments, docstrings, imports):")
    print(table(before, count("HEAD")))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
