"""Mutate JSON, YAML and TOML: values of the tree, words of the text, bytes of the file."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

NUMBERS = (-1, 0, 1, 2, 255, 2**31 - 1, 2**31, 2**62, 2**63, 10**40, 0.5, 1e308)
WORDS = (
    "", " ", ".", "..", "../../escape", "/etc/passwd", "~", "$HOME", "*", "none", "null", "true", "nan", "1e999", "0x10",
    "x" * 5000, "a\nb", "\x1b[31m", "\0", "é", "\u202e", "${models}", "%s", "{0}", "- 1", "a: b", "#", "'", '"', "sub/net", "net", "x86-64",
)  # fmt: skip
#: lines of YAML that parsers have fallen for
_LINES = (
    "<<: *nowhere", "x: !!python/object/apply:os.system ['touch escape']", "? [a, b]\n: c", "\t- tab", "%YAML 9.9", "---", "...", "&a [*a]",
    "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]",
    "[" * 3000, "{a: " * 500, "2020-13-45", "[tool]", "[[tool.passfit]]", "a.b.c = 1", "x = 1979-05-27", "x = inf",
)  # fmt: skip
_SCALAR = re.compile(r"""(?<![\w.])(?:-?\d+(?:\.\d+)?|"[^"\n]*"|'[^'\n]*'|[A-Za-z_][\w./-]*)""")
Tree = Any


def mutate_text(content: bytes, suffix: str, random: Random) -> bytes:
    """Return the file with one to three mutations; half of those of JSON and YAML are of values of the tree."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        how = random.random()
        tree = _tree(content, suffix) if how < 0.5 else None
        if tree is not None:
            with suppress(RecursionError):  # of a tree that was made deep before
                content = json.dumps(_mutate_tree(tree, random)).encode(errors="surrogatepass")
        elif how < 0.75:
            content = _mutate_words(content.decode(errors="replace"), random).encode(errors="replace")
        elif how < 0.85:
            lines = content.decode(errors="replace").split("\n")
            _mutate_lines(lines, random)
            content = "\n".join(lines).encode(errors="replace")
        else:
            content = damage(content, random)
    return content


def damage(content: bytes, random: Random) -> bytes:
    """Return bytes that are cut, flipped, doubled, moved, or have others put in."""
    at, to = sorted(random.randrange(len(content) + 1) for _ in range(2))
    extra = random.choice((b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\x80" * 9, b"\x7f" * 64, random.randbytes(8)))
    return random.choice(
        (
            content[:at],
            content[at:],
            content[:at] + content[to:],
            content[:to] + content[at:to] + content[to:],
            content[:at] + extra + content[at:],
            content[:at] + bytes(byte ^ 1 << random.randrange(8) for byte in content[at : at + 2]) + content[at + 2 :],
        )
    )


def _tree(content: bytes, suffix: str) -> Tree:
    """Return the values of the file, if it is well-formed and has a tree that JSON holds."""
    try:
        if suffix == ".json":
            return json.loads(content)
        if suffix in (".yaml", ".lock"):
            from ruamel.yaml import YAML

            return json.loads(json.dumps(YAML(typ="safe", pure=True).load(content)))
    except Exception:  # a mutation before this one
        return None
    return None


def _mutate_tree(tree: Tree, random: Random) -> Tree:
    root = [tree]
    holder, key = random.choice(list(_places(root)))
    value = holder[key]
    how = random.choice(("odd", "odd", "odd", "near", "drop", "name", "swap", "many"))
    if how == "drop" and holder is not root:
        del holder[key]
    elif how == "name" and isinstance(holder, dict):
        holder[random.choice((*WORDS, str(key) + "x"))] = holder.pop(key)
    elif how == "swap":
        other, place = random.choice(list(_places(root)))
        other[place], holder[key] = copy.deepcopy(value), copy.deepcopy(other[place])
    elif how == "many":
        holder[key] = [copy.deepcopy(value)] * random.choice((0, 2, 300))
    elif how == "near" and isinstance(value, (int, float)):
        holder[key] = random.choice((value + 1, value - 1, -value, value * 2, float(value), str(value), value == 1))
    else:
        holder[key] = random.choice((None, True, [], {}, [None], {"a": 1}, *NUMBERS, *WORDS))
    return root[0]


def _places(holder: Tree) -> Iterator[tuple[Tree, Any]]:
    for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
        yield holder, key
        if isinstance(value, (dict, list)):
            yield from _places(value)


def _mutate_words(text: str, random: Random) -> str:
    words = list(_SCALAR.finditer(text))
    if not words:
        return text
    word = random.choice(words)
    deep = random.choice((3, 500, 100_000))
    other, number, near = random.choice(WORDS), random.choice(NUMBERS), random.choice(words)[0]
    nested = ("[" * deep + word[0] + "]" * deep, '{"a":' * deep + word[0] + "}" * deep)
    odd = random.choice((str(number), other, f'"{other}"', near, *nested))
    return text[: word.start()] + odd + text[word.end() :]


def _mutate_lines(lines: list[str], random: Random) -> None:
    at = random.randrange(len(lines))
    how = random.randrange(5)
    if how == 0:
        del lines[at]
    elif how == 1:
        lines.insert(at, lines[at])
    elif how == 2:
        lines.insert(at, random.choice(_LINES))
    elif how == 3:
        lines[at] = " " * random.randrange(5) + lines[at].strip()
    else:
        other = random.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
