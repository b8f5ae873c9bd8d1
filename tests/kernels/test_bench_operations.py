"""What goes through all operations has a row for each one that a kernel offers."""

from __future__ import annotations

import re
import subprocess

import pytest

from bench import faults
from nodeprint.settings.measurements import measurements
from tests.support import plans
from tests.support.real_parts import ROOT, built

pytestmark = pytest.mark.machine


def offered() -> set[str]:
    """The operations in the help of every compiled kernel, as `coherence cas`."""
    names = set()
    for kernel in {of.kernel for of in measurements().values() if "--op" in of.arguments.split()}:
        text = subprocess.run([built() / kernel, "--help"], capture_output=True, text=True, check=True).stdout
        (section,) = re.findall(r"^OPERATIONS\n((?:  .*\n)+)", text, re.MULTILINE)
        names |= {f"{kernel} {line.split()[0]}" for line in section.splitlines()}
    return names


def test_help_lists_the_operations_that_are_measured() -> None:
    words = [(of.kernel, of.arguments.split()) for of in measurements().values()]
    measured = {f"{kernel} {own[own.index('--op') + 1]}" for kernel, own in words if "--op" in own}
    assert measured == offered()


def test_faults_are_injected_into_every_operation() -> None:
    assert {operation.name for operation in faults.OPERATIONS} == offered()


def test_harm_to_a_share_is_a_difference_and_not_a_ratio() -> None:
    """A tenth more of next to nothing is nothing: the median of latencies, and of the time that jitter takes."""
    hop, noise = (
        next(of for of in faults.OPERATIONS if of.name == name) for name in ("coherence cas", "jitter detours")
    )
    assert hop.model is not None and noise.model is not None
    assert [faults.is_harmful({(0,): ns}, [{(0,): 100.0}], hop.model) for ns in (109.0, 111.0)] == [False, True]
    assert [faults.is_harmful({(0,): share}, [{(0,): 0.001}], noise.model) for share in (0.004, 0.007)] == [False, True]


def test_plans_of_all_operations_for_two_cpus_are_compared() -> None:
    """`coherence loaded` needs CPUs of a second L3 beside a pair."""
    assert {operation.name for operation in plans.OPERATIONS} == offered() - {"coherence loaded"}


def test_an_uneven_machine_measures_every_operation() -> None:
    """Emulated, with sockets, nodes and cores that differ (`make test-emulated`)."""
    rows = (ROOT / "tests/system/emulated/uneven.tsv").read_text().splitlines()
    words = [row.split() for row in rows if not row.startswith("#")]
    assert {f"{kernel} {operation}" for _, kernel, _, operation, *_ in words} == offered()
