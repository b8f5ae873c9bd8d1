"""The prose of the project, held against the rules of `styles/Nodeprint/` (Vale's format), offline.

    python -m tests.support.prose [FILE ...]    print the alerts, of all files or of these
    python -m tests.support.prose --count       write the counts that tests/house/test_english.py keeps

Vale is not called: its package fetches a program when it is first used.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import yaml

from tests.support.real_parts import ROOT

RULES = ROOT / "styles/Nodeprint"
#: The number of alerts of each file that has some. A merge keeps both sides (.gitattributes), and `--count` settles it.
COUNTS = ROOT / "tests/house/english.yaml"
COMMAND = "python -m tests.support.prose --count"
#: Pages made from docstrings, which are read where they stand.
GENERATED = {"nodeprint/README.md"}
#: Calls whose first argument people read, and arguments of any call that they read.
_SPOKEN = re.compile(r"(?:Error|Refused|Option|Argument)$")
_SPOKEN_ARGUMENTS = {"advice", "help", "description"}
_PROSE = [
    "*.md",
    "*texts.yaml",
    "kernels/*/measurements.yaml",
    "nodeprint*/*.py",
    "workflow/*.py",
]
_SUBJECT = re.compile(r"[a-z][\w/, -]*: \S")
_LONGEST_SUBJECT = 72
_CODE = re.compile(r"`+[^`\n]*`+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z{*])")


class Text(NamedTuple):
    """A paragraph, list item, cell or heading on one line; code in it is an X."""

    words: str
    heading: bool = False


class Alert(NamedTuple):
    """What a rule finds in a text."""

    rule: str
    message: str
    text: str


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule in Vale's format. Another key of Vale is an error: nothing here would heed it."""

    extends: Literal["existence", "substitution", "occurrence"]
    message: str
    level: Literal["suggestion", "warning", "error"]
    scope: Literal["text", "sentence", "heading"] = "text"
    ignorecase: bool = False
    nonword: bool = False
    tokens: list[str] = []
    swap: dict[str, str] = {}
    token: str = ""
    max: int = 0


class Check(NamedTuple):
    """A rule ready to be applied: all its patterns as one, a group each, with their better words."""

    name: str
    rule: Rule
    pattern: re.Pattern[str]
    better: list[str]


@cache
def checks() -> list[Check]:
    """The rules of `styles/Nodeprint/`."""
    return [check_of(path.stem, path.read_bytes()) for path in sorted(RULES.glob("*.yml"))]


def check_of(name: str, source: bytes) -> Check:
    """A rule as its file has it; its patterns have no groups of their own, as with Vale."""
    rule = msgspec.yaml.decode(source, type=Rule)
    edge = "" if rule.nonword else r"\b"
    groups = [f"({pattern})" for pattern in [*rule.tokens, *rule.swap, rule.token] if pattern]
    flags = re.IGNORECASE if rule.ignorecase else re.NOFLAG
    pattern = re.compile(f"{edge}(?:{'|'.join(groups)}){edge}", flags)
    if pattern.groups != len(groups):
        raise ValueError(f"{name}: a pattern has a group of its own; write (?:...)")
    return Check(name, rule, pattern, list(rule.swap.values()))


def alerts(text: Text) -> Iterator[Alert]:
    """What the rules find in a text."""
    sentences = _SENTENCE_END.split(text.words)
    for name, rule, pattern, better in checks():
        if rule.scope == "heading" and not text.heading:
            continue
        for unit in sentences if rule.scope == "sentence" else [text.words]:
            if rule.extends == "occurrence":
                if len(unit) > 2 * rule.max and len(pattern.findall(unit)) > rule.max:
                    yield Alert(name, rule.message, unit)
                continue
            for match in pattern.finditer(unit):
                word = match.group().strip()
                values = (better[(match.lastindex or 1) - 1], word) if better else (word,)
                yield Alert(name, rule.message % values, unit)


def alerts_of(path: Path) -> list[Alert]:
    """What the rules find in a file."""
    return [alert for text in texts(path) for alert in alerts(text)]


def files() -> list[Path]:
    """Files with prose: pages, texts and help, and modules with docstrings and errors."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *_PROSE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [ROOT / name for name in sorted(set(listed) - GENERATED) if (ROOT / name).is_file()]


def counts() -> dict[str, int]:
    """The number of alerts of each file that has some."""
    found = {str(path.relative_to(ROOT)): len(alerts_of(path)) for path in files()}
    return {name: count for name, count in found.items() if count}


def texts(path: Path) -> Iterator[Text]:
    """The prose of a file, by its kind."""
    kinds = {".md": texts_of_page, ".py": texts_of_module, ".yaml": texts_of_yaml}
    yield from kinds[path.suffix](path.read_text())


def texts_of_page(source: str) -> Iterator[Text]:
    """Paragraphs, list items, headings and cells of Markdown, without blocks of code, comments and addresses."""
    source = re.sub(r"(?ms)^ *```.*?^ *```", "", source)
    source = re.sub(r"(?s)<!--.*?-->", "", source)
    source = re.sub(r"\]\([^)]*\)", "]", _CODE.sub("X", source))
    source = re.sub(r"(?m)^(#+ .*)$", r"\n\1\n\n", source)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+|]|\d+\.)\s)", source):
        heading = block.lstrip().startswith("#")
        for cell in re.split(r"(?<!\\)\|", block) if block.lstrip().startswith("|") else [block]:
            words = " ".join(cell.split()).lstrip("#-*+: ")
            if words:
                yield Text(words, heading)


def texts_of_module(source: str) -> Iterator[Text]:
    """Docstrings, errors, help and descriptions of keys of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (said := ast.get_docstring(node)):
            yield from paragraphs(said)
        elif isinstance(node, ast.Call):
            first = node.args[:1] if _SPOKEN.search(ast.unparse(node.func).rpartition(".")[2]) else []
            for argument in [*first, *(k.value for k in node.keywords if k.arg in _SPOKEN_ARGUMENTS)]:
                yield from paragraphs(words_of(argument))


def words_of(node: ast.expr) -> str:
    """The words of a string that is written out; a value filled in is an X."""
    if isinstance(node, ast.JoinedStr):
        return "".join(words_of(value) if isinstance(value, ast.Constant) else "X" for value in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def texts_of_yaml(source: str) -> Iterator[Text]:
    """All values of several words; a value filled in is an X."""

    def walk(node: Any) -> Iterator[str]:
        if isinstance(node, str):
            yield node
        elif isinstance(node, Mapping | list):
            for child in node.values() if isinstance(node, Mapping) else node:
                yield from walk(child)

    for value in walk(yaml.load(source, yaml.CSafeLoader)):
        yield from paragraphs(re.sub(r"\{\w+[^}]*\}", "X", value))


def paragraphs(said: str) -> Iterator[Text]:
    """Paragraphs of plain text; what is indented in it is an example."""
    for block in re.split(r"\n\s*\n", said):
        words = " ".join(_CODE.sub("X", block).split())
        if " " in words and not block.startswith("    "):
            yield Text(words)


def wrong_subjects(repository: Path) -> Iterator[tuple[str, str]]:
    """Commit subjects that are on this branch and not on main, each with what is wrong."""
    known = subprocess.run(
        ["git", "for-each-ref", "--format=%(refname)", "refs/heads/main", "refs/remotes/origin/main"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    new = ["git", "log", "--no-merges", "--format=%s", "HEAD", "--not", *known]
    listed = subprocess.run(new, cwd=repository, capture_output=True, text=True, check=True).stdout
    for subject in listed.splitlines() if known else []:
        if len(subject) > _LONGEST_SUBJECT:
            yield subject, f"longer than {_LONGEST_SUBJECT} characters"
        if not _SUBJECT.match(subject):
            yield subject, "not `area: imperative`"
        yield from ((subject, alert.message) for alert in alerts(Text(_CODE.sub("X", subject))))


def main(arguments: list[str]) -> int:
    """Print alerts, or write the counts if they do not rise in sum."""
    if arguments != ["--count"]:
        for path in [ROOT / name for name in arguments] or files():
            for rule, message, text in alerts_of(path):
                print(f"{path.relative_to(ROOT)}: {rule}: {message}\n    {text}")
        return 0
    former = committed_counts()
    now = counts()
    # prose that moves takes its alerts with it, so only the sum is held here; the difference shows each file
    if former and sum(now.values()) > sum(former.values()):
        more = [f"{name} {former.get(name, 0)} -> {now[name]}" for name in now if now[name] > former.get(name, 0)]
        print(f"more alerts than in HEAD: {', '.join(more)}. Rewrite them: `python -m tests.support.prose FILE`.")
        return 1
    header = f"# Alerts of styles/Nodeprint by file, written by `{COMMAND}`. They may only fall.\n"
    COUNTS.write_text(header + yaml.safe_dump(now))
    return 0


def committed_counts() -> dict[str, int]:
    """The counts of the last commit, none before the first."""
    name = COUNTS.relative_to(ROOT)
    shown = subprocess.run(["git", "show", f"HEAD:{name}"], cwd=ROOT, capture_output=True, text=True, check=False)
    return yaml.safe_load(shown.stdout) if shown.returncode == 0 else {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
