"""Complete the values of options in a shell: `passfit --install-completion`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import get_args, get_type_hints

from typer.models import ArgumentInfo, OptionInfo

from ..errors import PassfitError

#: names of STRATEGIES, whose modules load TVM for seconds
STRATEGY_NAMES = (
    "annealing", "beam", "by-architecture", "explicit", "greedy", "opass", "orchestrated", "random", "tvm-default",
)  # fmt: skip


def _targets() -> Iterable[str]:
    from ..targets.catalogue import load_catalogue

    return load_catalogue(Path()).readable()


def _facts(key: str) -> Iterable[str]:
    """Return what the targets name under a key, each once."""
    from ..targets.catalogue import load_catalogue

    return dict.fromkeys(getattr(each, key) for each in load_catalogue(Path()).readable().values())


def _models() -> Iterable[str]:
    from ..params.params import load_params

    return load_params(Path("params.yaml")).models


def _revisions() -> Iterable[str]:
    from ..artifacts.git import git_line

    return git_line(Path(), "for-each-ref", "--format=%(refname:short)").split()


def _words(module: str, name: str) -> Iterable[str]:
    """Return the words of a table, a tuple or a Literal of passfit."""
    found = getattr(import_module(f"..{module}", __package__), name)
    return get_args(found) or found


#: words for an option of any command, or for a parameter of one; others are completed as files
COMPLETERS: dict[str, Callable[[], Iterable[str]]] = {
    "--target": _targets,
    "--like": _targets,
    "--core": partial(_facts, "cpu"),
    "--family": partial(_facts, "family"),
    "--against": _revisions,
    "--kind": partial(_words, "package.kinds", "KINDS"),
    "--package": partial(_words, "package.kinds", "KINDS"),
    "--ci": partial(_words, "scaffold.ci", "SERVICES"),
    "--opt": partial(_words, "targets.target", "Optimisation"),
    "--index-checks": partial(_words, "targets.target", "IndexChecks"),
    "--objective": partial(_words, "search.settings", "OBJECTIVES"),
    "--until": partial(_words, "search.settings", "UNTIL"),
    "--strategy": lambda: STRATEGY_NAMES,
    "gate --format": partial(_words, "gate.formats", "FORMATS"),
    "remove model": _models,
    "compare before": _revisions,
    "compare after": _revisions,
}


def complete_values(command: Callable[..., None]) -> Callable[..., None]:
    """Give the options and arguments of a command their completers; return it."""
    command.__annotations__ = get_type_hints(command, include_extras=True)  # read by typer: these very objects
    for name, hint in command.__annotations__.items():
        infos = [each for each in get_args(hint)[1:] if isinstance(each, (ArgumentInfo, OptionInfo))]
        word = f"--{name.replace('_', '-')}" if infos and isinstance(infos[0], OptionInfo) else name
        words = COMPLETERS.get(f"{command.__name__} {word}") or COMPLETERS.get(word)
        if words:
            for info in infos:
                info.autocompletion = _completer(words)
    return command


def _completer(words: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a function that lists the words with a beginning; none in a repo whose files are wrong."""

    def complete(incomplete: str) -> list[str]:
        with suppress(PassfitError):
            return [word for word in words() if word.startswith(incomplete)]
        return []

    return complete
