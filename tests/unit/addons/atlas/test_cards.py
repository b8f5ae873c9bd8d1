"""Cards: what they say, what they hide, that a changed one is refused, the reference and the atlas."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from typer.testing import CliRunner

from nodeprint import simulate as simulator
from nodeprint.cli import app
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology import presets
from nodeprint.readers import matrix_file
from nodeprint.summary import measured_node
from nodeprint.summary.node_summary import CpuLabels, MedianValue, PairMatrix, ProcessorFacts, SummaryOrigin, tenths
from nodeprint_addons.atlas import atlas_site, card_file, published_machines, signing
from nodeprint_addons.atlas.card import Card, card_of
from nodeprint_addons.atlas.matrix_card import card_of_matrix
from tests.support.real_parts import need


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated node of 2 x 64 cores."""
    folder = tmp_path_factory.mktemp("cards") / "main"
    simulator.write(simulator.Plan(presets.preset("rome-2x64"), 1, cells=True), folder)
    return folder


@pytest.fixture(scope="module")
def card(campaign: Path) -> Card:
    return card_of(measured_node.MeasuredNode(campaign).summary)


def bare(name: str = "AMD EPYC 7742 64-Core Processor", ccx_ns: float = 25.0, **of: object) -> Card:
    """A card of a small machine with two CCXs, measured on bare metal."""
    places = CpuLabels((0, 1, 2, 3), {"socket": (0, 0, 0, 0), "ccx": (0, 0, 1, 1)})
    latency = np.full((4, 4), 110.0)
    matrix = PairMatrix("coherence-cas", "cas", "hop", "first", places, tenths(latency))
    figures = (
        MedianValue("coherence-cas", "same CCX", "ns", ccx_ns, ccx_ns - 1, ccx_ns + 1, 3),
        MedianValue("coherence-cas", "other socket", "ns", 200.0),
    )
    made = Card(
        ProcessorFacts(name, sockets=1, cores=4, cpus=4, virtual=False), SummaryOrigin("nodeprint"), figures, matrix
    )
    return replace(made, **of)


def test_a_card_has_figures_and_places_and_no_name(campaign: Path, card: Card) -> None:
    assert card.origin.simulated
    assert card.processor.sockets == 2 and card.processor.cores == 128
    names = {(figure.measurement, figure.name) for figure in card.figures}
    assert {("coherence-cas", "same CCX"), ("coherence-cas", "other socket")} <= names
    assert card.matrix is not None and set(card.matrix.places.parts) >= {"socket", "quadrant", "ccx"}
    text = card_file.text(card_file.hashed(card)).decode()
    (node,) = (path.name for path in (campaign / "nodes").iterdir())
    assert node not in text


def test_256_cpus_are_below_200_kb(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(230, 60, (256, 256)).clip(8)
    places = CpuLabels(tuple(range(256)), {level: tuple(range(256)) for level in ("socket", "quadrant", "ccx", "core")})
    matrix = PairMatrix("coherence-cas", "cas", "hop", "first", places, tenths(values))
    path = card_file.write(bare(matrix=matrix), tmp_path / "card.json")
    assert path.stat().st_size < 200_000
    assert card_file.read(path).matrix == matrix


def test_a_changed_card_is_refused(tmp_path: Path) -> None:
    path = card_file.write(bare(), tmp_path / "card.json")
    text = path.read_text()
    path.write_text(text.replace("25.0", "21.0", 1))
    with pytest.raises(NodeprintError, match="was changed"):
        card_file.read(path)
    misfit = card_file.hashed(bare(matrix=replace(bare().matrix, tenths_ns=(1, 2))))  # type: ignore[type-var]
    path.write_bytes(card_file.text(misfit))
    with pytest.raises(NodeprintError, match="does not fit"):
        card_file.read(path)


@settings(max_examples=300)
@given(st.data())
def test_mutated_cards_end_in_one_sentence(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = bytearray(card_file.text(card_file.hashed(bare())))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    path = tmp_path_factory.mktemp("mutated") / "card.json"
    path.write_bytes(content)
    try:
        card_file.read(path)
    except NodeprintError as error:
        assert "\n" not in str(error)


def test_signatures(tmp_path: Path) -> None:
    need("ssh-keygen")
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True)
    signed = signing.sign(bare(), key)
    path = card_file.write(signed, tmp_path / "card.json")
    assert card_file.read(path).signature == signed.signature
    assert "SHA256:" in signing.signer(signed)
    signers = tmp_path / "signers"
    signers.write_text(f"ada@example {key.with_suffix('.pub').read_text()}")
    assert signing.signer(signed, signers) == "ada@example"
    other = card_file.hashed(bare(ccx_ns=26.0))
    with pytest.raises(NodeprintError, match="ssh-keygen"):
        signing.signer(replace(other, signature=signed.signature), signers)
    assert card_file.hashed(replace(signed, warnings=("load",))).signature == ""
    assert signing.signer(bare()) == ""
    done = CliRunner().invoke(app, ["verify-card", str(path), "--signers", str(signers)])
    assert done.exit_code == 0 and "signed by ada@example" in done.stdout
    changed = tmp_path / "changed.json"
    changed.write_bytes(card_file.text(replace(other, sha256="0" * 64)))
    unsigned = card_file.write(bare(), tmp_path / "unsigned.json")
    done = CliRunner().invoke(app, ["verify-card", *map(str, (changed, unsigned, path)), "--signers", str(signers)])
    assert done.exit_code == 3 and [line.partition(": ")[2][:12] for line in done.stdout.splitlines()] == [
        "was changed:",
        "is not signe",
        "unchanged si",
    ]
    facts = json.loads(CliRunner().invoke(app, ["verify-card", str(changed), "--json"]).stdout)
    assert facts[str(changed)]["problem"].startswith("was changed: its hash is another;")
    with pytest.raises(NodeprintError, match=r"nofile: cannot be read \(No such file or directory\); check the name"):
        signing.signer(signed, tmp_path / "nofile")


def test_card_of_a_simulated_node_says_so(campaign: Path, tmp_path: Path) -> None:
    made = CliRunner().invoke(app, ["publish", str(campaign), "--to", str(tmp_path / "card.json")])
    checked = CliRunner().invoke(app, ["verify-card", str(tmp_path / "card.json")])
    for done in (made, checked):
        assert done.exit_code == 0 and "SIMULATED, AMD EPYC" in done.stdout
    facts = CliRunner().invoke(app, ["verify-card", str(tmp_path / "card.json"), "--json"]).stdout
    assert [of["simulated"] for of in json.loads(facts).values()] == [True]


# --- the reference ---


def machines(*medians: float, **of: object) -> published_machines.ReferenceTable:
    """A table of machines like those of `bare`, with these medians inside the CCX."""
    fields = {"processor": "AMD EPYC 7742", "sockets": 1, "cpus": 128, "operation": "cas"} | of
    each = (published_machines.PublishedMachine(classes={"same CCX": ns}, source="x", **fields) for ns in medians)  # type: ignore[arg-type]
    return published_machines.ReferenceTable({"x": {"url": "https://example.org"}}, tuple(each))


def test_as_published_machines_of_this_processor() -> None:
    standing = published_machines.standing(bare(ccx_ns=23.0), machines(22.0, 23.0, 24.0))
    (sentence, rest) = (*standing.sentences(), "")[:2]
    assert sentence == "Core to core inside the CCX 23 ns: as 3 published machines of this processor (22 to 24)."
    assert rest == ""


def test_an_unusual_figure_is_never_an_accusation() -> None:
    (sentence,) = published_machines.standing(bare(ccx_ns=40.0), machines(22.0, 24.0)).sentences()
    assert "2 published machines of this processor have 22 to 24 ns" in sentence
    assert not {"slow", "bad", "wrong", "fault", "defect"} & set(sentence.lower().replace(";", " ").split())


def test_the_generation_where_the_processor_is_not_published() -> None:
    (comparison,) = published_machines.standing(bare("AMD EPYC 7702 64-Core Processor"), machines(25.0)).compared
    assert (comparison.kin, comparison.machines) == ("generation", 1)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"matrix": None}, "no core-to-core"),
        ({"processor": ProcessorFacts("AMD EPYC 7742", virtual=True)}, "virtual machine"),
        ({"origin": SummaryOrigin("nodeprint", simulated=True)}, "simulated"),
        ({"processor": ProcessorFacts("Some Unknown CPU", virtual=False)}, "no machine with this processor"),
        ({"matrix": replace(bare().matrix, operation="faa")}, "with faa"),  # type: ignore[type-var]
    ],
)
def test_what_is_not_comparable_is_said(changes: dict[str, object], reason: str) -> None:
    standing = published_machines.standing(replace(bare(), **changes), machines(25.0))
    assert not standing.compared
    assert reason in " ".join(standing.not_compared)


def test_classes_that_the_home_decides_are_not_compared() -> None:
    table = machines(25.0)
    (machine,) = table.machines
    table = replace(table, machines=(replace(machine, classes={"same CCX": 25.0, "other socket": 100.0}),))
    standing = published_machines.standing(bare(), table)
    assert [comparison.name for comparison in standing.compared] == ["same CCX"]
    assert "other socket" in standing.not_compared[0]


def test_the_table_in_the_package() -> None:
    table = published_machines.table()
    assert len(table.machines) > 30
    assert {machine.source for machine in table.machines} == set(table.sources)
    for machine in table.machines:
        assert machine.classes and all(0 < value < 2000 for value in machine.classes.values())


# --- the atlas ---


@pytest.fixture
def published(data: Path) -> Path:
    return data / "c2c" / "core-to-core-latency"


def test_an_atlas_of_cards_and_matrices(tmp_path: Path, campaign: Path) -> None:
    folder = tmp_path / "cards"
    card_file.write(card_of(measured_node.MeasuredNode(campaign).summary), folder / "one.json")
    (folder / "AMD EPYC <7742>.csv").write_text(",,\n25.5,,\n90.25,91,\n")
    (folder / "broken.json").write_text("{}")
    (folder / "notes.md").write_text("no machine")
    page, refused = atlas_site.write(folder, tmp_path / "site")
    html = page.read_text()
    assert len(refused) == 1 and "broken.json" in refused[0]
    assert html.count("<tr data-name") == 2
    assert "SIMULATED" in html and "&lt;7742&gt;" in html and "<7742>" not in html
    for script in (tmp_path / "site" / "machines").glob("*.js"):
        assert script.read_text().startswith("atlas.add(") and "</" not in script.read_text()
    assert card_file.read(next((tmp_path / "site" / "machines").glob("*simulated*.json"), folder / "one.json"))
    atlas_site.write(folder, tmp_path / "site")  # again, in its place
    with pytest.raises(NodeprintError, match="holds something else"):
        atlas_site.write(folder, folder)


def test_an_empty_folder_makes_no_site(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="nothing to show"):
        atlas_site.write(tmp_path, tmp_path / "site")
    with pytest.raises(NodeprintError, match="is not a directory"):
        atlas_site.write(tmp_path / "absent", tmp_path / "site")


def test_published_matrices_make_an_atlas(tmp_path: Path, published: Path) -> None:
    folder = tmp_path / "matrices"
    folder.mkdir()
    for name in ("Dual AMD EPYC 7742 64-Core Processor.csv", "AMD EPYC 7773X.csv", "AWS Graviton3.csv"):
        shutil.copy(published / name, folder)
    page, refused = atlas_site.write(folder, tmp_path / "site")
    assert not refused and page.read_text().count("<tr data-name") == 3
    rome = json.loads((tmp_path / "site" / "machines" / "amd-epyc-7742.json").read_text())
    assert rome["processor"]["sockets"] == 2
    assert {figure["name"] for figure in rome["figures"]} >= {"same core", "same CCX", "other socket"}


def test_the_card_of_a_published_matrix_is_as_the_reference(published: Path) -> None:
    made = card_of_matrix(matrix_file.read_output(published / "AMD EPYC 7773X.csv"), "AMD EPYC 7773X")
    standing = published_machines.standing(made)
    assert [comparison.alike for comparison in standing.compared] == [True, True]
