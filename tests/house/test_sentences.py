"""Sentences are in reports/texts.yaml: none stands in Python, but what refuses input, help texts, and the documents
that are made of docstrings."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
import yaml

import nodeprint.report.text  # noqa: F401  # its modules add their formats
from nodeprint.judge import verdict
from nodeprint.judge.outcome import FleetOutcome
from nodeprint.machine import peak
from nodeprint.settings.texts import FORMATS
from tests.support.real_parts import PACKAGES, ROOT

#: Modules whose long strings are no sentences of results, with what they are.
OTHERS = {
    "judge/acceptance_file.py": "descriptions of keys, which become tables and a schema",
    "judge/table.py": "what the variables of deviations.nc mean",
    "machine/fingerprint.py": "what the fields of a fingerprint mean",
    "campaign/job_status.py": "the title of a schema",
    "report/check_scripts.py": "a shell script",
    "simulate/survey.py": "files as Linux writes them",
    # what refuses input, and is no argument of an error
    "__main__.py": "a package that is missing",
    "cli/app.py": "what ends a command",
    "cli/show_commands.py": "a folder that cannot be written",
    "campaign/run_files.py": "archives that are cut or garbled",
    "data/job/jobs.py": "records that are missing",
    "data/format/records.py": "lines that are cut off",
    "data/format/integrity.py": "records that no kernel writes",
    "data/job/whole_runs.py": "runs that are not whole",
    "readers/table_numbers.py": "cells that are no numbers",
    "errors.py": "files that cannot be read",
    "reading.py": "files that unpack without end",
}
#: The files of sentences: the project's, and by its folder an add-on's.
TEXTS = {"": ROOT / "reports/texts.yaml"} | {
    str(path.parent.relative_to(ROOT)): path for path in sorted((ROOT / "nodeprint_addons").glob("*/texts.yaml"))
}
#: So many words side by side are a sentence; with fewer names and labels would be.
WORDS = 7
WORD = re.compile(r"[(\"'`]*[A-Za-z][A-Za-z'-]*[)\"'`]*[.,;:?!)]*")
#: Calls whose words are for whoever gave the input, or who asks for help.
REFUSES = re.compile(r"(?:Error|Refused|key|written|refuses|leave_out|Option|Argument|Typer|command|compile)$")


def words_of(text: str) -> int:
    """The longest run of plain words; a value that is filled in counts as one."""
    longest = run = 0
    for token in text.split():
        run = run + 1 if WORD.fullmatch(token) else 0
        longest = max(longest, run)
    return longest


def text_of(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "value" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def sentences(source: str) -> Iterator[str]:
    """The sentences of a module that are neither documentation nor for an error, a value of an enumeration, a key's
    description or a pattern."""
    tree = ast.parse(source)
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}

    def chain(node: ast.AST) -> Iterator[ast.AST]:
        while node in above:
            node = above[node]
            yield node

    def refuses(node: ast.AST) -> bool:
        for outer in chain(node):
            if isinstance(outer, ast.Raise) or (
                isinstance(outer, ast.Call) and REFUSES.search(ast.unparse(outer.func).rpartition(".")[2])
            ):
                return True
            if isinstance(outer, ast.ClassDef):
                return any("Enum" in ast.unparse(base) for base in outer.bases)
            if isinstance(outer, ast.FunctionDef):
                return False
        return False

    # a name of which an error is made
    refused = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and refuses(node)}
    for node in ast.walk(tree):
        if (
            not isinstance(node, ast.expr)
            or words_of(text_of(node)) < WORDS
            or isinstance(above[node], ast.Expr | ast.JoinedStr)
            or refuses(node)
        ):
            continue
        statement = next(outer for outer in chain(node) if isinstance(outer, ast.stmt))
        names = {
            name.id for name in ast.walk(statement) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
        }
        if not names & refused:
            yield f"{node.lineno}: {text_of(node)}"


def test_the_rule_finds_a_sentence_and_spares_an_error() -> None:
    documented = 'def f(n):\n    """No sentence of seven words counts in here."""\n'
    said = f'{documented}    return f"the nodes are {{n}} times as slow as before"\n'
    refused = said.replace("return f", "raise NodeprintError(f").replace('before"', 'before")')
    named = said.replace("return f", "why = f") + "    raise NodeprintError(n, advice=why)\n"
    assert list(sentences(said)) == ["3: the nodes are value times as slow as before"]
    assert list(sentences(refused)) == list(sentences(named)) == []


def test_no_sentence_of_a_result_is_in_python() -> None:
    by_module = {
        str(path.relative_to(ROOT)).removeprefix("nodeprint/"): list(sentences(path.read_text()))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    assert {name: found for name, found in by_module.items() if found and name not in OTHERS} == {}
    assert [name for name in OTHERS if not by_module[name]] == []  # else it needs no exception any more


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
def test_every_table_of_texts_is_there_once(texts: Path) -> None:
    """YAML takes the last of two tables of one name, and says nothing."""
    keys = re.findall(r"^(\w[\w -]*):", texts.read_text(), re.MULTILINE)
    assert [key for key, count in Counter(keys).items() if count > 1] == []


def test_every_format_and_attribute_of_a_sentence_is_known() -> None:
    """A misspelled one would end a report when that sentence is made."""
    classes = [of for module in (verdict, peak) for of in vars(module).values() if isinstance(of, type)]
    attributes = {name for of in (*classes, FleetOutcome.UNIFORM) for name in dir(of)}
    listed, unknown = [yaml.safe_load(path.read_text()) for path in TEXTS.values()], set[str]()
    while listed:
        entry = listed.pop()
        if isinstance(entry, dict | list):
            listed += entry.values() if isinstance(entry, dict) else entry
            continue
        for _, name, spec, _ in Formatter().parse(str(entry)):
            unknown |= {*(name or "").split(".")[1:]} - attributes
            if spec and spec.partition(" ")[0] not in FORMATS and not re.fullmatch(r"|,|[+z]*(?:\.\d)?[dfg]?", spec):
                unknown.add(spec)
    assert unknown == set()


def test_no_module_says_slower_or_faster() -> None:
    """Whoever changes the words of a change does so in one place (`change` in texts.yaml); rows of verdict.json are
    named after the halves of a mixture, which are keys that limits name."""
    said = {folder: yaml.safe_load(path.read_text()) for folder, path in TEXTS.items()}
    del said[""]["change"]
    own = re.compile(r"\b(?:slow|fast)(?:er|est)\b")
    assert own.findall(yaml.safe_dump(said)) == []
    constants = {
        node.value
        for room in (*PACKAGES, "workflow")
        for path in (ROOT / room).rglob("*.py")
        if "acceptance_file" not in path.name
        for tree in [ast.parse(path.read_text())]
        for statement in ast.walk(tree)
        for node in ast.iter_child_nodes(statement)
        if not isinstance(statement, ast.Expr)
        and isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and own.search(node.value)
    }
    # the halves of a mixture are keys, and `slowest` is why LinkTest measures a pair again (docs/formats.md)
    assert constants == {"faster half", "slower half", "slowest"}


def missing_values(source: str, said: Any) -> Iterator[str]:
    """Calls of `say` whose keys are written out and are none, or whose values lack one that the sentence takes."""
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != "say":
            continue
        keys = [key.value for key in call.args if isinstance(key, ast.Constant)]
        values = {value.arg for value in call.keywords}
        if len(keys) < len(call.args) or None in values:  # known only when it runs
            continue
        node = said
        for key in keys:
            node = node.get(key) if isinstance(node, dict) else None
        if not isinstance(node, str):
            yield f"{call.lineno}: {' '.join(map(str, keys))} is no sentence"
        elif lacks := {name.partition(".")[0] for _, name, _, _ in Formatter().parse(node) if name} - values:
            yield f"{call.lineno}: {' '.join(map(str, keys))} lacks {', '.join(sorted(lacks))}"


def test_every_sentence_has_its_values() -> None:
    """mypy sees no value of a sentence: a wrong name ends a report when that sentence is made."""
    said = {folder: yaml.safe_load(path.read_text()) for folder, path in TEXTS.items()}
    assert list(missing_values('say("closest", agreement=1)', said[""])) == ["1: closest lacks agreements"]
    modules = {path: path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    wrong = {
        f"{name}:{call}"
        for path, name in modules.items()
        for call in missing_values(path.read_text(), said.get(str(name.parent), said[""]))
    }
    assert wrong == set()
