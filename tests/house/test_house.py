"""What holds the house together: true documents, one list of packages, imports that go down only."""

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import rattler
import yaml

from nodeprint.judge.outcome import FleetOutcome, Kind, Outcome
from tests.support.real_parts import PACKAGES, ROOT

#: The floors of nodeprint/, from top to bottom; a module imports only from lower floors or its own room.
ROOMS = runpy.run_path(str(ROOT / "docs/rooms.py"))
FLOORS, INSIDE = ROOMS["FLOORS"], ROOMS["INSIDE"]


def rooms() -> dict[str, list[Path]]:
    out: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "nodeprint").rglob("*.py")):
        room = path.relative_to(ROOT / "nodeprint").parts[0].removesuffix(".py")
        if room != "__init__":
            out.setdefault(room, []).append(path)
    return out


def imported(path: Path) -> set[str]:
    """Rooms of nodeprint that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("nodeprint.")}
        elif isinstance(node, ast.ImportFrom) and node.module == "nodeprint":
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nodeprint."):
            found.add((node.module or "").split(".")[1])
    return found - {"__version__"}


def test_every_room_has_its_floor() -> None:
    assert set(rooms()) <= set().union(*FLOORS)


def test_imports_go_down_only() -> None:
    floor = {room: number for number, names in enumerate(FLOORS) for room in names}
    wrong = [
        f"{path.relative_to(ROOT)} imports {other}"
        for room, paths in rooms().items()
        for path in paths
        for other in imported(path)
        if other != room and floor[other] < floor[room]
    ]
    assert not wrong


def modules_imported(source: str) -> set[str]:
    """Modules that a source imports at any depth, functions included, and that it names in a string, as
    `import_module` takes it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"[\w.]+", node.value):
            found.add(node.value)
    return found


def addons_imported(source: str) -> set[str]:
    """Add-ons that a source imports; `""` is the package of all."""
    modules = {module for module in modules_imported(source) if module.split(".")[0] == "nodeprint_addons"}
    return {".".join(module.split(".")[1:2]) for module in modules}


@pytest.mark.parametrize(
    "source",
    [
        "import nodeprint_addons.iodie",
        "from nodeprint_addons import iodie",
        "from nodeprint_addons.iodie import die",
        "def f():\n    from nodeprint_addons.iodie.die import Die",
        "importlib.import_module('nodeprint_addons.iodie')",
    ],
)
def test_every_way_to_import_an_addon_is_found(source: str) -> None:
    assert addons_imported(source) == {"iodie"}


def test_the_core_imports_no_addon() -> None:
    rooms = ("nodeprint", "workflow", "kernels", "ansible")
    core = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    assert len(core) > 100
    assert [str(path) for path in core if addons_imported(path.read_text())] == []


def test_the_judge_loads_no_reader() -> None:
    """Nor does structure: a plug-in's module, or a slow one, is no part of judging a campaign."""
    program = "import sys, nodeprint.judge.judge, nodeprint.structure; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = {module for module in done.stdout.split() if module.startswith("nodeprint.")}
    assert len(loaded) > 50
    assert [module for module in loaded if module.startswith("nodeprint.readers")] == []


def test_an_addon_imports_the_core_and_itself() -> None:
    paths = sorted(ROOMS["ADDONS"].rglob("*.py"))
    wrong = [
        f"{path.relative_to(ROOT)} imports {other or 'all add-ons'}"
        for path in paths
        for other in addons_imported(path.read_text())
        if other != path.relative_to(ROOMS["ADDONS"]).parts[0]
    ]
    assert len(paths) > 10 and wrong == []


def test_imports_inside_a_room_go_down_only() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for outer, rooms_inside in INSIDE.items()
        for height, room in enumerate(rooms_inside)
        for path in sorted((ROOT / "nodeprint" / outer / room).rglob("*.py"))
        for module in re.findall(rf"^ *from nodeprint\.{outer}\.(\w+)", path.read_text(), re.MULTILINE)
        if rooms_inside.index(module) < height
    ]
    assert not wrong


def room_of(path: Path) -> str:
    package, room = path.relative_to(ROOT).parts[:2]
    return room if package == "nodeprint" else f"{package}/{room}"


def test_no_two_modules_of_a_room_have_one_name() -> None:
    # a figure is named after what it draws
    figures = ROOT / "nodeprint/report/figures"
    paths = [p for package in PACKAGES for p in (ROOT / package).rglob("*.py") if not p.stem.startswith("__")]
    named = [(f"{room_of(path)}: {path.stem}", str(path.relative_to(ROOT))) for path in paths if path.parent != figures]
    assert repeated(named) == []


def test_no_two_public_classes_of_a_room_have_one_name() -> None:
    classes = [
        (f"{room_of(path)}: {node.name}", str(path.relative_to(ROOT)))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert repeated(classes) == []


def repeated(named: list[tuple[str, str]]) -> list[str]:
    """Of names with where they are: each name that is there twice, with all its places."""
    places: dict[str, list[str]] = {}
    for name, place in sorted(named):
        places.setdefault(name, []).append(place)
    return [f"{name}: {', '.join(those)}" for name, those in places.items() if len(those) > 1]


def requirement(spec: str) -> tuple[str, str]:
    match = re.fullmatch(r"([A-Za-z0-9_.-]+)\s*([<>=!~].*)?", spec.split(" #", maxsplit=1)[0].strip())
    assert match, spec
    return match[1].lower(), (match[2] or "").replace(" ", "")


def test_conda_and_pip_ask_for_the_same_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    pip = dict(map(requirement, project["dependencies"] + extras["workflow"]))
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    specs = [spec for spec in environment["dependencies"] if isinstance(spec, str)]
    specs += next(d["pip"] for d in environment["dependencies"] if isinstance(d, dict))
    other_name = {"matplotlib-base": "matplotlib", "snakemake-minimal": "snakemake"}
    conda = {other_name.get(name, name): version for name, version in map(requirement, specs)}
    assert {name: conda.get(name) for name in pip} == pip
    assert set(conda) - set(pip) == {"python", "pip", "gcc", "make"}


@pytest.mark.parametrize(
    "spec", [s for s in yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"] if isinstance(s, str)]
)
def test_conda_reads_each_line(spec: str) -> None:
    assert rattler.MatchSpec(spec, strict=True).name


def test_every_locked_package_is_pinned() -> None:
    for lock in ("requirements.lock", "requirements-dev.lock"):
        pinned = [line for line in (ROOT / lock).read_text().splitlines() if line and not line.lstrip().startswith("#")]
        assert pinned
        assert all(re.fullmatch(r"[a-z0-9_.-]+==[^ ]+", line) for line in pinned), lock


def test_the_page_of_installation_counts_what_is_downloaded() -> None:
    pinned = re.findall(r"^[^ #].*==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert f"in {len(pinned)} packages" in (ROOT / "docs/install.md").read_text()


def test_the_readme_is_short_and_so_are_its_sentences() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    blocks = re.split(r"\n\n|\n- |\n(?=\|)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    sentences = [part for block in blocks for part in re.split(r"(?<=[.:;])\s", " ".join(block.split()))]
    assert not [sentence for sentence in sentences if len(sentence.split()) > 35]


COMPREHENSION = (ast.ListComp, ast.SetComp, ast.DictComp)


def bound_in(comprehension: ast.AST) -> set[str]:
    targets = [generator.target for generator in getattr(comprehension, "generators", ())]
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def hidden_names(source: str) -> Iterator[str]:
    """Names that one comprehension of a function binds and another, outside of it, reads from the module."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        comprehensions = [node for node in ast.walk(function) if isinstance(node, COMPREHENSION)]
        bound = {name for comprehension in comprehensions for name in bound_in(comprehension)}
        for reader in comprehensions:
            inside = {name for node in ast.walk(reader) if isinstance(node, COMPREHENSION) for name in bound_in(node)}
            called = {
                node.func.id
                for node in ast.walk(reader)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }
            yield from (f"{function.name}: {name}" for name in sorted((called & bound) - inside))


def test_no_comprehension_hides_a_function_from_another() -> None:
    """Python 3.12.3, that of Ubuntu 24.04, then raises UnboundLocalError: its comprehensions share their names."""
    reused = "def f():\n    return [g for g in a], [g(b) for b in a]\n"
    assert list(hidden_names(reused)) == ["f: g"]
    assert list(hidden_names(reused.replace("[g for g in a]", "[c for c in a]"))) == []
    modules = [path for folder in (*PACKAGES, "workflow", "bench", "docs") for path in (ROOT / folder).rglob("*.py")]
    assert [f"{path.name}: {name}" for path in modules for name in hidden_names(path.read_text())] == []


def test_every_outcome_is_explained_to_administrators() -> None:
    page = (ROOT / "docs/how-to/outcomes.md").read_text()
    assert all(f"`{outcome}`" in page for outcome in (*Outcome, *FleetOutcome))


def test_documents_name_kinds_of_fail_on_that_are_there() -> None:
    """A recipe with another one ends with 2 and never measures."""
    files = (
        "README.md",
        "CONTRIBUTING.md",
        "Makefile",
        "config/*",
        "docs/**/*.md",
        "packaging/**/*",
        "profiles/**/*",
        "workflow/**/*.smk",
        ".github/**/*",
        ".ci/*",
    )
    pages = [path for pattern in files for path in ROOT.glob(pattern) if path.is_file() and path.suffix != ".pyc"]
    named = re.compile(r"(?:--fail-on[ =\n]|FAIL_ON=|fail_on = variable\(str, value=\")([a-z][a-z,-]*)")
    used = {
        (page.name, kind)
        for page in pages
        for kinds in named.findall(page.read_text())
        for kind in kinds.strip(",").split(",")
    }
    recipes = {name for name, _ in used}
    assert {"slurm.md", "README.md", "Makefile", "maintenance.md", "nodeprint_check.py"} <= recipes
    assert sorted(f"{name}: {kind}" for name, kind in used if kind not in set(Kind)) == []


def test_make_help_names_every_kind_of_fail_on() -> None:
    (line,) = [line for line in (ROOT / "Makefile").read_text().splitlines() if '@echo "FAIL_ON=' in line]
    assert {kind for kind in Kind if re.search(rf"\b{kind}\b", line)} == set(Kind)


@pytest.mark.parametrize(
    "page, sources", [("method/warnings.md", "machine/preflight.py"), ("topology.md", "machine/topology/*.py")]
)
def test_every_warning_is_explained(page: str, sources: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    found = {
        str(call.args[0].value)
        for source in (ROOT / "nodeprint").glob(sources)
        for call in ast.walk(ast.parse(source.read_text()))
        if isinstance(call, ast.Call)
        and ast.unparse(call.func).split(".")[-1] in ("warning", "warn")
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }
    assert len(found) > 5 and [name for name in found if not re.search(rf"`(?:\w+-)?{name}`", text)] == []


def test_documents_name_files_that_are_there() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), ROOT / "config/README.md"]
    rooms = "ansible|bench|config|docs|kernels|nodeprint|nodeprint_addons|profiles|reports|setup|tests|workflow"
    missing = [
        f"{page.name}: {name}"
        for page in pages
        for name in re.findall(rf"[`(]((?:{rooms})/[\w./-]+\w/?)[`)]", page.read_text())
        if not (ROOT / name).exists() and not name.startswith(("kernels/build/", "bench/results/", "kernels/fence"))
    ]
    assert not missing


def test_a_missing_part_is_never_passed_over() -> None:
    """A skip that does not go through `need` or `missing` counts as a pass where NODEPRINT_REQUIRE=all."""
    skips = re.compile(r"pytest\.(skip|importorskip|mark\.skip)")
    pages = [path for path in (ROOT / "tests").rglob("test_*.py") if path.name != Path(__file__).name]
    assert len(pages) > 50
    assert [path.name for path in pages if skips.search(path.read_text())] == []


def test_tests_share_through_support_alone() -> None:
    """No test imports another, nor a benchmark or the mutants if these are not the subject; the programs of a virtual
    cluster are no test."""
    shared = r"support\b|golden\b|numbers\b|system\.cluster\b"
    imports = re.compile(rf"^\s*(?:from|import) (?:\.|bench\b|tests\.(?!{shared}))", re.MULTILINE)
    importing = [path for path in (ROOT / "tests").rglob("*.py") if imports.search(path.read_text())]
    assert {path.name for path in importing} == {"test_bench_operations.py", "test_bench_table.py", "test_mutants.py"}


def prose(page: str) -> Iterator[str]:
    """The lines of a document that are text: no code, no table."""
    code = False
    for line in page.splitlines():
        code ^= line.startswith("```")
        if not code and not line.startswith(("```", "|", "    ", "!")):
            yield line


def test_documents_are_wrapped_for_a_terminal() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), ROOT / "config/README.md"]
    wide = [f"{page.name}: {line[:60]}" for page in pages for line in prose(page.read_text()) if len(line) >= 100]
    assert not wide
