"""Are these nodes the same? From packed arrays to outcomes, findings and files for other tools."""

from nodeprint.verdict.judge import judge, judge_fleet
from nodeprint.verdict.outcome import Verdict

__all__ = ["Verdict", "judge", "judge_fleet"]
