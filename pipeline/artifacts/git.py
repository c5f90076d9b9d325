"""Ask git; folders may lie below the top of a repository."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from ..errors import ConfigError, did_you_mean


def git(repo: Path, *arguments: str) -> str | None:
    """Run git in `repo` and return its output; None if it fails. Raises ConfigError if git is not installed."""
    done = _run(repo, arguments)
    return done.stdout.decode("utf-8", errors="replace") if done.returncode == 0 else None


def git_line(repo: Path, *arguments: str) -> str:
    """Run git in `repo` and return its output without spaces around; empty if it fails, or is not installed."""
    try:
        return (git(repo, *arguments) or "").strip()
    except ConfigError:
        return ""


def git_files(repo: Path, places: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the text of files at revisions, by (revision, path below `repo`), in one call; missing ones are left out."""
    wanted = [(revision, path) for revision, path in places if "\n" not in path]
    asked = "".join(f"{revision}:./{path}\n" for revision, path in wanted)
    output = _run(repo, ("cat-file", "--batch"), asked.encode()).stdout
    found, at = {}, 0
    for place in wanted:
        end = output.index(b"\n", at)
        words = output[at:end].split(b" ")
        at = end + 1
        if words[-2:-1] == [b"blob"]:
            size = int(words[-1])
            found[place] = output[at : at + size].decode("utf-8", errors="replace")
            at += size + 1
    return found


def check_revision(repo: Path, revision: str, option: str) -> str:
    """Return why git has no such revision, with the next step; empty if it has. `option` is how messages call it.

    Raises ConfigError for a revision that git would parse as an option, and outside of a git repository.
    """
    if not revision or revision.startswith("-"):
        raise ConfigError(f"{option} {revision!r} is not a git revision.", "Name a branch, a tag or a commit.")
    if git(repo, "rev-parse", "--git-dir") is None:
        given, hint = (
            (f"{option} {revision}: ", f"Omit {option}.") if option else ("", "Run this in one, or give a folder.")
        )
        raise ConfigError(f"{given}'{repo}' is not in a git repository.", hint)
    if git(repo, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}") is not None:
        return ""
    kinds = ("refs/heads", "refs/remotes", "refs/tags")
    branches = (git(repo, "for-each-ref", "--format=%(refname:short)", *kinds) or "").split()
    fetch = "In a shallow clone, fetch it first: `git fetch origin REVISION`, or `fetch-depth: 0` in actions/checkout."
    return f"git has no revision {revision} here. " + " ".join(
        filter(None, (did_you_mean(revision, branches[:20]), fetch))
    )


def _run(repo: Path, arguments: Iterable[str], given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", *arguments], cwd=repo, input=given, capture_output=True, check=False)
    except FileNotFoundError:
        raise ConfigError("git is needed for this, and there is none on the PATH.", "Install git.") from None
