"""Benchmarks of single operations have a row for each operation that a kernel offers."""

from __future__ import annotations

import re
import subprocess

import pytest

from bench import faults
from nodeprint.settings.measurements import measurements
from tests.support import plans
from tests.support.real_parts import built

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


def test_plans_of_all_operations_for_two_cpus_are_compared() -> None:
    """`coherence loaded` needs CPUs of a second L3 beside a pair."""
    assert {operation.name for operation in plans.OPERATIONS} == offered() - {"coherence loaded"}
