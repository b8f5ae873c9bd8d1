"""The verdict of a campaign as types: the only source of every sentence, file and figure.

Numbers of CPUs, cores and NUMA nodes are those of the node's operating system. Effects, intervals and tolerances are
relative to the peers' center (0.02 is 2%). For a share of the time they are differences of that share. `*_unit` is the
same value in the measurement's unit. `nodeprint.report.text` makes the sentences, and `nodeprint.judge.outcome` defines
the outcomes.
"""

from nodeprint.judge.verdict.campaign_verdict import SCHEMA, Verdict, rounded
from nodeprint.judge.verdict.component import Component, Interval
from nodeprint.judge.verdict.fabric_verdict import FabricValues, FabricVerdict, SizeFigure
from nodeprint.judge.verdict.finding import Evidence, Expected, Finding, Finer, JobEffect
from nodeprint.judge.verdict.fleet_verdict import (
    FleetVerdict,
    Group,
    Limit,
    MemoryAchieved,
    NodesAt,
    Note,
    Shared,
    SingleRuns,
    Spread,
    TimeEffect,
)
from nodeprint.judge.verdict.json_schema import schema
from nodeprint.judge.verdict.node_figures import LOST, CellFigure, ClassFigure
from nodeprint.judge.verdict.node_verdict import Agreement, Disturbance, Epoch, NodeVerdict, Reason

__all__ = [
    "LOST",
    "SCHEMA",
    "Agreement",
    "CellFigure",
    "ClassFigure",
    "Component",
    "Disturbance",
    "Epoch",
    "Evidence",
    "Expected",
    "FabricValues",
    "FabricVerdict",
    "Finding",
    "Finer",
    "FleetVerdict",
    "Group",
    "Interval",
    "JobEffect",
    "Limit",
    "MemoryAchieved",
    "NodeVerdict",
    "NodesAt",
    "Note",
    "Reason",
    "Shared",
    "SingleRuns",
    "SizeFigure",
    "Spread",
    "TimeEffect",
    "Verdict",
    "rounded",
    "schema",
]
