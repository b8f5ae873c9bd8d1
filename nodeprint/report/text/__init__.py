"""A verdict in sentences, the last product of a verdict; no other code reads them.

The sentences are in reports/texts.yaml; this package selects them and fills in the values. A finding or node in a list
is a value of `nodeprint.judge.verdict`, so nodes with equal values are alike.
"""

from __future__ import annotations

from nodeprint.report.text.agreement_sentences import agreement_remedy, of_node, open_agreement, same_node_of
from nodeprint.report.text.disturbances import (
    apart,
    busy_machine,
    disturbance,
    disturbed,
    moved_cpus,
    moved_most,
    other_programs,
    taken_most,
)
from nodeprint.report.text.finding_sentences import (
    action,
    component_in_words,
    component_type_in_words,
    finding_details,
    finding_sentence,
    remedy,
    runs_beyond,
    runs_past,
)
from nodeprint.report.text.group_sentences import (
    belongs,
    goes_with,
    in_its_unit,
    to_do,
    which_is_right,
)
from nodeprint.report.text.headlines import (
    based_on,
    campaign_outcome,
    counts_of,
    fabric,
    fabric_findings,
    first_line,
    headline,
    headline_of,
    identity,
    origin,
)
from nodeprint.report.text.node_sentences import (
    further,
    jobs_changed,
    node_lines,
    node_sentence,
    one_node,
    reason_and_action,
)
from nodeprint.report.text.notes import (
    fleet_notes,
    memory_warning,
    memory_warnings,
    over_time,
    peak,
    shared,
)
from nodeprint.report.text.wording import change, changed, measured, named, noun_phrase, place, sentence
