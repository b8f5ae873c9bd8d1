"""The figure of a node under full load, by second."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import matplotlib.pyplot as plt
import pytest

from nodeprint.report.figures import curves, style
from nodeprint.report.figures.figure_data import table
from nodeprint.report.pages import pictures


def second(run: int, number: int, ghz: float) -> dict[str, Any]:
    """A record of two sockets, the second of which is slower by a tenth."""
    sockets = [
        {
            "socket": socket,
            "core_hz": ghz * 1e9 * factor,
            "flops_per_s": ghz * 64e9 * factor,
            "lowest_core_hz": ghz * 0.95e9 * factor,
            "lowest_cpu": socket,
        }
        for socket, factor in enumerate((1.0, 0.9))
    ]
    return {"record": "load_second", "pass": run, "second": number, "sockets": sockets, "power_w": None}


#: Two runs of three seconds; the second run is slower by 0.2 GHz.
SECONDS = [second(run, number, 3.0 - 0.2 * run - 0.1 * number) for run in range(2) for number in range(3)]


def test_each_socket_has_its_seconds_over_all_runs() -> None:
    data = curves.by_second(SECONDS, "core_hz")
    first, slowest, other, _ = (data.isel(line=number) for number in range(4))
    assert [str(of.line.item()) for of in (first, other)] == ["socket 0", "socket 1"]
    assert first.x.values.tolist() == [0, 1, 2]
    assert first.value.values == pytest.approx([2.9, 2.8, 2.7])
    assert other.value.values == pytest.approx([2.61, 2.52, 2.43])
    assert first.low.values == pytest.approx([2.8, 2.7, 2.6]) and first.high.values == pytest.approx([3.0, 2.9, 2.8])
    assert slowest.role == "thin" and slowest.value.values == pytest.approx([0.95 * 2.9, 0.95 * 2.8, 0.95 * 2.7])
    assert list(table(data)["seconds of full load"]) == [0, 1, 2] * 4


@pytest.mark.parametrize("quantity", curves.OF_SECONDS)
def test_it_is_drawn_with_names_and_units(quantity: str) -> None:
    figure, ax = plt.subplots()
    curves.curve(ax, curves.by_second(SECONDS, quantity), style.load())
    legend = ax.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert [name for name in names if "slowest" not in name] == ["socket 0", "socket 1"]
    assert ("socket 1, slowest core" in names) == (quantity == "core_hz")
    assert ax.get_ylabel() == curves.OF_SECONDS[quantity][0]
    plt.close(figure)


def test_a_second_of_load_is_no_course(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(pictures, "picture", lambda _campaign, _node, name, *_: drawn.append(name))
    for seconds in (SECONDS, [second(0, 0, 3.0)]):
        runs = ({"load_seconds": seconds},)
        job: Any = SimpleNamespace(measured={"load-ramp": SimpleNamespace(runs=runs)})
        drawn.clear()
        list(pictures.under_load(cast(Any, None), "cn1", [job]))
        assert len(drawn) == (2 if seconds is SECONDS else 0)
