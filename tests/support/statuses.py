"""All that says how a campaign stands after a call, held against each other: exit status, last line, what
`nodeprint status` prints, verdict, JUnit and protocol."""

from __future__ import annotations

from pathlib import Path

from junitparser import Error, JUnitXml

from nodeprint.campaign import node_status
from nodeprint.judge.outcome import Accepted, Outcome
from nodeprint.report import protocol, verdict_files
from nodeprint.report.pages.blocks import SiteTexts
from tests.support import blocks


def agree(campaign: Path, code: int, output: str) -> None:
    """Assert that a call which ended by itself with `code`, after it had written `output`, says the same everywhere.

    A node with a second job keeps what its first one found where the second one was lost, and one that is measured in
    part has an outcome, but neither is SAME.
    """
    status = node_status.read(campaign)
    unfinished = {node.node for node in status.nodes if node.standing in node_status.UNFINISHED}
    assert status.code == code == int(bool(unfinished)), (status.heading, status.rows, output)
    last = output.splitlines()[-1]
    assert ("Not finished: " in last) is bool(unfinished), output
    assert status.unfinished() in last, "the same nodes with the same reasons"
    absent = {node.node for node in status.nodes if node.standing == "left out"}
    nothing = set(node_status.UNFINISHED) - {"partly measured"}
    absent |= {node.node for node in status.nodes if node.standing in nothing and node.job == 1}
    verdict = verdict_files.read(campaign)
    assert not {name for name in unfinished if verdict.nodes[name].outcome is Outcome.SAME}
    assert {name for name, node in verdict.nodes.items() if node.outcome is Outcome.NOT_MEASURED} == absent
    assert _errors(campaign / "verdict.xml") == {f"node {name}" for name in absent}
    pages = protocol.content([protocol.judged(campaign)], "", SiteTexts())
    rows = {row["node"]: row for row in blocks.rows(pages, "All nodes")}
    assert set(rows) == {node.node for node in status.nodes}
    assert {name for name, row in rows.items() if Outcome.NOT_MEASURED.with_class in row.values()} == absent
    assert all(rows[name]["result"] == Accepted.OPEN for name in absent)
    mark = pages.pages[0].mark
    assert not absent or (mark is not None and mark.word != Accepted.ACCEPTED)


def _errors(junit: Path) -> set[str]:
    """The nodes' test cases of a JUnit file that are an error of the kind NOT MEASURED."""
    cases = [case for suite in JUnitXml.fromfile(str(junit)) for case in suite]
    wanted = str(Outcome.NOT_MEASURED)
    return {
        str(case.name)
        for case in cases
        if str(case.name).startswith("node ")
        and any(isinstance(result, Error) and result.type == wanted for result in case.result)
    }
