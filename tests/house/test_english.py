"""Prose keeps the rules of `styles/Nodeprint/`: alerts of a file only fall, and new commit subjects have none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support import prose
from tests.support.prose import Text
from tests.support.real_parts import ROOT, need

#: For each rule a text that it finds, and the same said in the field's English.
EXAMPLES = [
    ("Terms", "A part outside its bound is measured again.", "A component outside tolerance is remeasured."),
    ("Terms", "Name a folder of results.", "Specify a directory of results."),
    ("Terms", "They agree within a margin.", "Memory bound to a NUMA node stays."),
    ("Outcomes", "The node is OUTSIDE LIMIT.", "The node is OUT OF SPEC."),
    ("Dialect", "The groups are apart.", "The groups are separated."),
    ("Dialect", "It ends with 3.", "It exits with status 3."),
    ("Claims", "A second job proves it.", "A second job confirms it."),
    ("WhatClauses", "The page names what is slow.", "The page names the slow core."),
    ("Inversion", "Of RHEL the choice is tested.", "Only package selection is tested for RHEL."),
    ("Inversion", "It stops. Where a job fails, it stops.", "It stops. If a job fails, it stops."),
    ("Headings", "Who is compared with whom", "Peer groups of the fleet"),
    ("Numbers", "It is 5 % slower.", "It is 5% slower."),
    ("Spelling", "The colour of the centre", "The color of the center"),
    ("SentenceLength", "one " * 26 + "end.", "one " * 24 + "end. " + "Two " * 24),
]


def rules_of(words: str) -> set[str]:
    return {alert.rule for alert in prose.alerts(Text(words, heading=True))}


@pytest.mark.parametrize(("rule", "dialect", "english"), EXAMPLES)
def test_a_rule_finds_the_dialect_and_spares_english(rule: str, dialect: str, english: str) -> None:
    assert rule in rules_of(dialect)
    assert rules_of(english) == set()


def test_every_rule_has_an_example() -> None:
    assert {check.name for check in prose.checks()} == {rule for rule, _, _ in EXAMPLES}


def test_an_alert_names_the_better_word() -> None:
    (alert,) = prose.alerts(Text("The bounds of a file"))
    assert alert.message == "Use 'tolerance' instead of 'bounds'."


def test_a_key_that_nothing_heeds_is_rejected() -> None:
    rule = b"{extends: existence, message: m, level: error, tokens: [a]%s}"
    assert prose.check_of("a", rule % b"").pattern.search("a")
    with pytest.raises(ValueError, match="vocab"):
        prose.check_of("a", rule % b", vocab: false")
    with pytest.raises(ValueError, match="a group of its own"):
        prose.check_of("a", rule.replace(b"[a]", b'["(a)"]') % b"")


def test_the_prose_of_a_page_is_without_code() -> None:
    page = """# Head `code`
One line
and its end, [a link](bound.md).
- an item

```
bound
```
| a cell | `x` and more |
|---|---|
<!-- bound -->
"""
    assert list(prose.texts_of_page(page)) == [
        Text("Head X", heading=True),
        Text("One line and its end, [a link]."),
        Text("an item"),
        Text("a cell"),
        Text("X and more"),
    ]


def test_the_prose_of_a_module_is_what_people_read() -> None:
    module = '''"""Module doc.

    an example

and more
"""
ANY = "no prose here"
def f(n):
    raise NodeprintError(f"file {n} is bad", advice="write it anew")
KEY = Meta(description="a key's meaning")
'''
    assert sorted(text.words for text in prose.texts_of_module(module)) == [
        "Module doc.",
        "a key's meaning",
        "and more",
        "file X is bad",
        "write it anew",
    ]


def test_the_prose_of_texts_is_their_values() -> None:
    assert list(prose.texts_of_yaml("a bound: {b: '{n} of {m:.1f} nodes', c: word}")) == [Text("X of X nodes")]


def test_alerts_only_fall() -> None:
    """Where this fails with fewer alerts than noted, the command below notes them."""
    kept = yaml.safe_load(prose.COUNTS.read_text())
    now = prose.counts()
    changed = {
        name: f"{kept.get(name, 0)} -> {now.get(name, 0)}"
        for name in sorted({*kept, *now})
        if kept.get(name, 0) != now.get(name, 0)
    }
    assert not changed, f"`{prose.COMMAND}` lowers counts, and prints which texts to rewrite"


def test_the_command_lowers_counts_and_never_raises_their_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prose, "COUNTS", tmp_path / "english.yaml")
    monkeypatch.setattr(prose, "committed_counts", lambda: {"a.md": 2, "b.md": 1})
    monkeypatch.setattr(prose, "counts", lambda: {"a.md": 2, "c.md": 1})  # a page was renamed
    assert prose.main(["--count"]) == 0
    assert yaml.safe_load(prose.COUNTS.read_text()) == {"a.md": 2, "c.md": 1}
    monkeypatch.setattr(prose, "counts", lambda: {"a.md": 4})
    assert prose.main(["--count"]) == 1
    assert "a.md 2 -> 4" in capsys.readouterr().out
    assert yaml.safe_load(prose.COUNTS.read_text()) == {"a.md": 2, "c.md": 1}


def git(folder: Path, *arguments: str) -> None:
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *author, *arguments], cwd=folder, check=True, capture_output=True)


def test_new_commit_subjects_are_short_english(tmp_path: Path) -> None:
    """Those of this branch, as the subject of a commit that has landed cannot change."""
    need("git")
    git(tmp_path, "init", "--initial-branch=main")
    for subject in ("judge: what is apart", "judge: separate `bound` groups", "no area", "judge: a" + "a" * 70):
        git(tmp_path, "commit", "--allow-empty", "--message", subject)
        if subject == "judge: what is apart":
            git(tmp_path, "checkout", "-b", "topic")
    git(tmp_path, "commit", "--allow-empty", "--message", "judge: report what is apart")
    found = dict.fromkeys(subject for subject, _ in prose.wrong_subjects(tmp_path))
    assert list(found) == ["judge: report what is apart", "judge: a" + "a" * 70, "no area"]
    assert list(prose.wrong_subjects(ROOT)) == []
