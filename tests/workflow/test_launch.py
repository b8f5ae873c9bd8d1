"""Measuring over Ansible, with a playbook that only pretends: which nodes it is called for, and what each becomes."""

import json
import os
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodeprint.campaign import job_status, node_sheet
from nodeprint.settings.config_file import Config
from tests.support import made_status
from tests.support.real_parts import ROOT

#: A configuration of hosts that Ansible measures.
ANSIBLE = Config(launch="ansible", inventory="hosts")
LAUNCH = SimpleNamespace(**runpy.run_path(str(ROOT / "workflow/scripts/launch.py")))

#: Node b comes back; of c there are two reasons and a line that is none; of d there is none.
_PLAYBOOK = """#!/bin/sh
echo "$*" >words
cat "$NODEPRINT_JOBS" >queue
cp c/launch/list.hosts asked
cp status.json c/nodes/b/job1/
printf 'c\\tis\\tasleep\\njunk\\nc\\tis unreachable\\n' >>"$NODEPRINT_REASONS"
"""


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A campaign of nodes a to d, of which a was measured before, in a folder with false programs."""
    monkeypatch.chdir(tmp_path)
    for path, text in (("kernels/archive", "#!/bin/sh\necho kernels.tar"), ("bin/ansible-playbook", _PLAYBOOK)):
        Path(path).parent.mkdir()
        Path(path).write_text(text)
        Path(path).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    campaign = Path("c")
    campaign.mkdir()
    node_sheet.write_sheet(campaign / "nodes.tsv", [node_sheet.Node(name, name) for name in "abcd"])
    (campaign / "plan.tsv").write_text("x\tcoherence\t--op cas\t2\n")
    (campaign / "nodes/b/job1").mkdir(parents=True)
    made_status.put(campaign / "nodes/a/job1")
    job_status.write(Path(), made_status.job_outcome(node="b"))
    Path("nodes").write_text("".join(f"{name}\t1\t2\n" for name in "abcd"))
    return campaign


def test_what_ansible_gives_up_has_an_outcome_with_the_reason(
    campaign: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = campaign / "launch/list"
    out.parent.mkdir()
    LAUNCH.main(campaign, Path("nodes"), out, ANSIBLE)
    assert out.read_text() == "a\t1\tcomplete\nb\t1\tcomplete\nc\t1\tfailed\nd\t1\tfailed\n"
    assert (
        capfd.readouterr().err == f"ansible: c: is unreachable\nansible: d: {LAUNCH.ABSENT.format(title='Ansible')}\n"
    )
    status = job_status.known(campaign / "nodes/c/job1")
    assert status is not None and {run.message for run in status.measurements} == {"is unreachable"}
    assert Path("queue").read_text() == "".join(f"{name}\t1\t\tPENDING\t\n" for name in "bcd")
    words = Path("words").read_text()
    assert words.startswith("--inventory hosts --limit @c/launch/list.hosts --extra-vars ")
    asked = json.loads(words[words.index("{") : words.index("}") + 1])
    assert asked == {"nodeprint_campaign": "c", "nodeprint_archive": "kernels.tar"}
    assert sorted(path.name for path in out.parent.iterdir()) == ["list", "lock"], "nothing else stays"
    Path("words").unlink()
    LAUNCH.main(campaign, Path("nodes"), out, ANSIBLE)
    assert not Path("words").exists(), "every node has its outcome"


@pytest.mark.parametrize("planted", ["link", "hard link", "pipe"])
def test_a_planted_archive_costs_that_node_alone(campaign: Path, planted: str) -> None:
    archive, theirs = campaign / "nodes/c/job1.tar", Path("theirs")
    archive.parent.mkdir()
    theirs.write_text("mine")
    if planted == "link":
        archive.symlink_to(theirs.absolute())
    elif planted == "pipe":
        os.mkfifo(archive)
    else:
        archive.hardlink_to(theirs)
    (campaign / "launch").mkdir()
    LAUNCH.main(campaign, Path("nodes"), campaign / "launch/list", ANSIBLE)
    asked = Path("asked").read_text().split()
    assert (theirs.read_text(), asked) == ("mine", ["b", "d"])
    status = job_status.known(campaign / "nodes/c/job1")
    assert status is not None
    (message,) = {run.message for run in status.measurements}
    assert str(archive) in message and message.endswith("; remove it, then run again")


def test_without_kernels_every_node_has_that_reason(campaign: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("kernels/archive").write_text("#!/bin/sh\nexit 1\n")
    (campaign / "launch").mkdir()
    LAUNCH.main(campaign, Path("nodes"), campaign / "launch/list", ANSIBLE)
    assert capfd.readouterr().err.count("the kernels could not be packed for the nodes") == 3
    assert not Path("words").exists()
