"""Levels are named in one table, which has all of them."""

import re
from typing import get_args

from nodeprint.machine.topology.level_names import PLURALS, level_name, level_plural
from nodeprint.machine.topology.model import Level
from nodeprint.structure.found import LevelName
from tests.support.real_parts import PACKAGES, ROOT

#: A level's key with its name, in a table or in a pair.
NAMED = re.compile(r"""\bcc[xd]["']?[:,] \(?["']?(same )?CC[XD]""")


def test_every_level_has_its_names() -> None:
    levels = {*get_args(Level), *get_args(LevelName)}
    assert {level for level in levels if PLURALS[level_name(level)] != level_plural(level)} == set()
    assert (level_name("ccx"), level_plural("half"), level_name("numa")) == ("CCX", "halves", "NUMA node")


def test_no_other_table_names_a_level() -> None:
    """There were twenty-one, of which some were short of levels."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    paths += (ROOT / "reports").glob("*.yaml")
    assert {path.name for path in paths if NAMED.search(path.read_text())} == {"level_names.py"}
