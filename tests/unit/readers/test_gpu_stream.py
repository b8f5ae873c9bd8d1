"""The output of SuperBench's GPU STREAM."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from nodeprint.cli import app
from tests.support.tool_output import of_text, values


def text(slow: int = -1, node: int = 0) -> str:
    lines = ["STREAM Benchmark", "Buffer size(bytes): 4294967296"]
    for gpu in range(2):
        lines.append(f'Device {gpu}: "NVIDIA"  152 SMs(10.0)  Memory: 4000MHz x 8192-bit = 8192 GB/s PEAK')
        for at, kernel in enumerate(("COPY", "TRIAD")):
            rate = (6700.5 + 10 * at + gpu + 0.1 * node) * (0.5 if gpu == slow else 1)
            lines.append(f"STREAM_{kernel}_double_gpu_{gpu}_buffer_4294967296_block_128   {rate:.2f} 81.93")
    return "\n".join([*lines, ""])


def test_each_gpu_has_its_rate(tmp_path: Path) -> None:
    assert values(of_text(tmp_path, text())) == {
        ("gpu-stream-copy-double", "0", "128"): 6700.5,
        ("gpu-stream-triad-double", "0", "128"): 6710.5,
        ("gpu-stream-copy-double", "1", "128"): 6701.5,
        ("gpu-stream-triad-double", "1", "128"): 6711.5,
    }


def test_a_slow_gpu_is_named(tmp_path: Path) -> None:
    for node in range(5):
        (tmp_path / f"gn00{node}.log").write_text(text(slow=1 if node == 3 else -1, node=node))
    judged = CliRunner().invoke(app, ["judge", str(tmp_path)]).stdout
    assert judged.startswith("5 nodes x 1 run, 2 gpus each: node from the file name, gpu from the text."), judged
    assert "gn003: WARN (SUSPECT). gpu-stream-triad-double of gpu 1 is 50.0% lower" in judged, judged
