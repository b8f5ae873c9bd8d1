"""The results of SuperBench."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.tool_output import of_text, values


def test_superbench(tmp_path: Path) -> None:
    """https://github.com/microsoft/superbenchmark, docs/user-tutorial/data-diagnosis.md: results-summary.jsonl."""
    line = {
        "node": "gpu01",
        "mem-bw/h2d_bw:0": 25.6,
        "mem-bw/h2d_bw:1": 25.5,
        "mem-bw/return_code": 0,
        "bert_models/pytorch-bert-base/throughput_train_float16": 382.1,
    }
    figures = of_text(tmp_path, "".join(json.dumps(line | {"node": node}) + "\n" for node in ("gpu01", "gpu02")))
    assert set(figures.frame["node"]) == {"gpu01", "gpu02"}
    assert values(figures) == {
        ("mem-bw/h2d_bw", "0"): 25.6,
        ("mem-bw/h2d_bw", "1"): 25.5,
        ("bert_models/pytorch-bert-base/throughput_train_float16", ""): 382.1,
    }
