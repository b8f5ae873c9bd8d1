"""kernels/<kernel>/measurements.yaml: what is wrong with one is said with file and key, and all are complete."""

import re
from pathlib import Path

import pytest
import yaml

from nodeprint.errors import NodeprintError
from nodeprint.settings import measurements, sources
from nodeprint.settings.texts import texts

GOOD = """
terms:
  fence: {name: fences, what: the time of a fence, tolerance: 5, run: 1, source: assumed}
measurements:
  fence-cost:
    what: time of a fence
    quantity: load
    unit: ns
    arguments: --op cost --cpus cores
    presets: {quick: null, standard: --passes 3}
    model: {value: fence_ns, scale: log, term: fence, terms: [cpu, socket x cpu]}
"""


def read(folder: Path, text: str) -> measurements.KernelFile:
    path = folder / "fence/measurements.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return measurements.read_file(path)


def test_a_kernels_file_is_read_as_types(tmp_path: Path) -> None:
    content = read(tmp_path, GOOD)
    cost = content.measurements["fence-cost"]
    assert (cost.kernel, cost.operation, cost.presets) == ("fence", "cost", {"quick": None, "standard": "--passes 3"})
    assert cost.model is not None
    assert cost.model.terms == (("cpu",), ("socket", "cpu"))
    assert content.terms["fence"].tolerance == 5.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("tolerance: 5", "tolerance: five"), r"terms\.fence\.tolerance: must be a number, not 'five'"),
        (("run: 1,", ""), r"terms\.fence: run is missing"),
        (("unit: ns", "units: ns"), r"measurements\.fence-cost\.units: unknown key; did you mean unit\?"),
        (("scale: log", "scale: cubic"), r"fence-cost\.model\.scale: must be linear or log or share, not 'cubic'"),
        (("standard: --passes 3", "standard: 3"), r"fence-cost\.presets\.standard: must be text, not 3"),
        (("terms: [cpu, socket x cpu]", "terms: cpu"), r"fence-cost\.model\.terms: must be a list, not 'cpu'"),
        (("measurements:", "measurements: 3\nmore:"), r"measurements: must be keys with values|more: unknown key"),
        (("    unit: ns", "\tunit: ns"), r"not YAML"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_key(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    assert change[0] in GOOD
    with pytest.raises(NodeprintError) as error:
        read(tmp_path, GOOD.replace(*change))
    assert re.search(said, str(error.value)), error.value
    assert "fence/measurements.yaml" in str(error.value)


def test_a_term_that_no_kernel_has_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    read(kernels, GOOD.replace("fence:", "fences:"))
    monkeypatch.setattr(sources, "folder", lambda: tmp_path)
    with pytest.raises(NodeprintError, match=r"fence-cost\.model\.term: no kernel has a term fence; .*mean fences"):
        measurements.kernel_files.__wrapped__()


def test_what_kernels_say_is_complete() -> None:
    """Every cause is a key of the sentences, every term is some measurement's, and load comes last."""
    models = [of.model for of in measurements.measurements().values() if of.model is not None]
    assert set(measurements.terms()) == {model.term for model in models} - {"other"}
    causes = {cause for term in measurements.terms().values() for cause in term.causes}
    assert causes <= set(texts()["causes"])
    assert all(content.test for content in measurements.kernel_files().values())
    assert list(measurements.kernel_files())[-1] == "load"


def test_a_kernels_test_in_a_shell_reads_the_same() -> None:
    """kernels/tests/run takes `arguments` and `short` line by line: each file has them in that order."""
    for path in (sources.folder() / "kernels").glob("*/measurements.yaml"):
        lines = re.findall(r"^    (?:arguments: --(?:op|mode) (\S+)|short: (.*))", path.read_text(), re.MULTILINE)
        operations = [operation for operation, _ in lines if operation]
        known = yaml.safe_load(path.read_text())["measurements"].values()
        assert operations == [of["arguments"].split()[1] for of in known]
