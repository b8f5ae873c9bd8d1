"""The options of the main job: what replaces keys of the configuration, and what a rejected call says."""

import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from tests.support.real_parts import ROOT, environment

sys.path.insert(0, str(ROOT / "workflow"))

import call_options
import run

from nodeprint.errors import NodeprintError
from nodeprint.settings import config as configuration


def parsed(*words: str) -> Namespace:
    return call_options.parser().parse_args(["--config", "my site.yaml", *words])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a call with a configuration of its own."""
    monkeypatch.chdir(tmp_path)
    text = "campaign: c\npreset: thorough\nruns: 3\nmeasure: [coherence-cas]\nslurm: {account: hpc}\n"
    Path("my site.yaml").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "campaign", "keys"),
    [
        ((), "c", {}),
        (("--preset", "test"), "c-test", {"preset": "test"}),
        (("--preset", "thorough"), "c", {}),
        (("--preset", "test", "--campaign", "d"), "d", {"preset": "test"}),
        (("--launch", "slurm", "--partition", "x"), "c-slurm", {"launch": "slurm"}),
        (("--launch", "ansible", "--hosts", "cn01"), "c-ansible", {"launch": "ansible", "inventory": "cn01,"}),
        (("--launch", "ansible", "--hosts", "a, b"), "c-ansible", {"launch": "ansible", "inventory": "a,,b"}),
        (
            ("--preset", "quick", "--launch", "ansible", "--hosts", "cn[01-04]"),
            "c-quick-ansible",
            {"preset": "quick", "launch": "ansible", "inventory": "cn[01-04]"},
        ),
    ],
)
@pytest.mark.usefixtures("site")
def test_an_option_replaces_a_key_in_a_campaign_of_its_own(
    words: tuple[str, ...], campaign: str, keys: dict[str, str]
) -> None:
    """All else of the site's file stays, and the file itself does."""
    before = Path("my site.yaml").read_text()
    call = run.Call(parsed(*words))
    config = call.config
    assert (config.campaign, config.runs, config.slurm.account) == (campaign, 3, "hpc")
    assert {key: getattr(config, key) for key in keys} == keys
    assert config.slurm.partition == ("x" if "--partition" in words else "")
    assert configuration.load(call.config_file) == config, "what discover and Snakemake read"
    assert Path("my site.yaml").read_text() == before
    assert str(call.campaign) == f"results/{campaign}"


@pytest.mark.parametrize(
    ("words", "rejection"),
    [
        (
            ("--partition", "x", "--preset", "quick"),
            "PARTITION: is for `launch: slurm`, and this call has `launch: here`; "
            "call `make run CONFIG='my site.yaml' PRESET=quick LAUNCH=slurm PARTITION=x`",
        ),
        (
            ("--launch", "slurm", "--hosts", "a,b"),
            "HOSTS: is for `launch: ansible`, and this call has `launch: slurm`; "
            "call `make run CONFIG='my site.yaml' LAUNCH=ansible HOSTS=a,b`",
        ),
        (
            ("--launch", "ansible"),
            "LAUNCH: `launch: ansible` needs hosts; "
            "call `make run CONFIG='my site.yaml' LAUNCH=ansible HOSTS=a,b,c` with your hosts",
        ),
        (
            ("--campaign", "a/b"),
            "make run CONFIG='my site.yaml' CAMPAIGN=a/b: campaign: 'a/b' cannot be used; write letters, digits, `_`, "
            "`-` and `.`, beginning with no `-` or `.`; for example `make run CAMPAIGN=main-2`",
        ),
        (
            ("--launch", "slurm", "--partition", "x y"),
            "make run CONFIG='my site.yaml' LAUNCH=slurm PARTITION='x y': slurm.partition: 'x y' cannot be used; write "
            "names separated by commas, of letters, digits, `_`, `-` and `.`; "
            "for example `make run LAUNCH=slurm PARTITION=x`",
        ),
    ],
)
@pytest.mark.usefixtures("site")
def test_a_rejected_option_has_a_call_to_copy(words: tuple[str, ...], rejection: str) -> None:
    with pytest.raises(NodeprintError) as error:
        run.Call(parsed(*words))
    assert str(error.value) == rejection
    assert not Path(".snakemake").exists() and not Path("results").exists()


def test_a_campaign_with_other_nodes_or_arguments_has_a_call_to_copy(site: Path) -> None:
    """The campaign `c-slurm` was begun with partition x, and the next free name is c-slurm-3."""
    (site / "limits.yaml").touch()
    (site / "my site.yaml").write_text("campaign: c\nacceptance: limits.yaml\nmeasure: [coherence-cas]\n")
    for name in ("c-slurm", "c-slurm-2"):
        (site / "results" / name).mkdir(parents=True)
    begun = "campaign: c-slurm\nlaunch: slurm\nslurm: {partition: x}\n"
    (site / "results/c-slurm/config.yaml").write_text(begun)
    with pytest.raises(NodeprintError) as error:
        run.Call(parsed("--launch", "slurm", "--partition", "y")).check()
    assert str(error.value) == (
        "results/c-slurm: slurm.partition: the campaign was begun with `slurm.partition: x`, and `slurm.partition: y` "
        "measures other nodes; write another name at `campaign:`, as in "
        "`make run CONFIG='my site.yaml' CAMPAIGN=c-slurm-3 LAUNCH=slurm PARTITION=y`"
    )


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ([], "make run"),
        (["--config", "./config/config.yaml"], "make run"),
        (["--config", "q.yaml", "--again", "cn01"], "make run CONFIG=q.yaml"),
        (["--preset", "quick"], "make run PRESET=quick"),
        (["--preset", "quick", "--report-only"], "make report PRESET=quick"),
        (["--launch", "ansible", "--hosts", "cn[01-04]"], "make run LAUNCH=ansible HOSTS='cn[01-04]'"),
        (
            ["--config", "my site.yaml", "--fail-on", "not-same,invalid"],
            "make run CONFIG='my site.yaml' FAIL_ON=not-same,invalid",
        ),
    ],
)
def test_a_call_is_continued_by_its_own_words(words: list[str], call: str) -> None:
    """Without NODES, which would begin another job."""
    assert call_options.call_words(call_options.parser().parse_args(words)) == call


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("--nonsense",), "see workflow/run --help"),
        (("--conf", "x.yaml"), "see workflow/run --help"),
        (("--config",), "for example `make run CONFIG=config/config.yaml`"),
        (("--config", ""), "for example `make run CONFIG=config/config.yaml`"),
        (("--campaign", ""), "for example `make run CAMPAIGN=main-2`"),
        (("--preset", "fast"), "for example `make run PRESET=quick`"),
        (("--preset", ""), "for example `make run PRESET=quick`"),
        (("--launch", "pbs"), "for example `make run LAUNCH=slurm PARTITION=x`"),
        (("--launch", ""), "for example `make run LAUNCH=slurm PARTITION=x`"),
        (("--partition", ""), "for example `make run LAUNCH=slurm PARTITION=x`"),
        (("--hosts", ""), "for example `make run LAUNCH=ansible HOSTS=a,b,c`"),
        (("--hosts", "cn[01-"), "for example `make run LAUNCH=ansible HOSTS=a,b,c`"),
        (("--again",), "for example `make run NODES='cn[01-04]'`"),
        (("--again", " "), "for example `make run NODES='cn[01-04]'`"),
        (("--fail-on", "weather"), "for example `make run FAIL_ON=not-same`"),
        (("--fail-on", ""), "for example `make run FAIL_ON=not-same`"),
    ],
)
def test_bad_options_get_one_sentence(words: tuple[str, ...], advice: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        call_options.parser().parse_args(words)
    assert ended.value.code == 2
    out, sentence = capsys.readouterr()
    assert out == "" and sentence.count("\n") == 1
    assert sentence.startswith("nodeprint: ") and sentence.endswith(f"; {advice}\n")
    assert sentence.count(words[0]) == 1


@pytest.mark.parametrize("variable", [name.partition("=")[0] for name in call_options.EXAMPLES.values()] + ["HOSTS"])
def test_make_hands_on_a_variable_that_is_set_to_nothing(variable: str) -> None:
    """Without it `make run NODES=$(command)` measures all nodes if the command prints none."""
    done = subprocess.run(
        ["make", "--dry-run", "run", f"{variable}="],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    (call,) = [line for line in done.stdout.splitlines() if line.startswith("workflow/run")]
    assert " ''" in call
