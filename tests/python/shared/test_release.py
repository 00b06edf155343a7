"""What a release is made of: metadata, dependency groups, workflows, and what fills them in."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
FILES = (
    "README.md",
    "CHANGELOG.md",
    "pyproject.toml",
    "Cargo.toml",
    "rust/core/Cargo.toml",
    "rust/vocab/Cargo.toml",
)
URL = "https://example.org/owner/budgeteer"
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
PINNED = r"[\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+"
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def toml(path):
    return tomllib.loads(path.read_text(encoding="utf-8"))


PROJECT = toml(ROOT / "pyproject.toml")
VERSION = toml(ROOT / "Cargo.toml")["workspace"]["package"]["version"]


@pytest.fixture
def copy(tmp_path):
    """Copy what a release fills in, with a dated section for the version."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changelog = tmp_path / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    dated = re.sub(rf"^## {VERSION} - .*$", f"## {VERSION} - 2026-12-01", text, flags=re.MULTILINE)
    changelog.write_text(dated, encoding="utf-8")
    return tmp_path


def workflow(name):
    return yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8"))


def prepare(root, url=URL, tag=f"v{VERSION}"):
    command = [sys.executable, ROOT / "scripts/prepare_release.py", url, tag, "--root", root]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_every_field_is_filled_in(copy):
    """After the script no package lacks an address, and all else is as it was."""
    assert 0 == prepare(copy).returncode
    written = toml(copy / "pyproject.toml")
    urls = written["project"].pop("urls")

    assert PROJECT == written
    assert {"Homepage", "Documentation", "Repository", "Issues", "Changelog"} == set(urls)
    assert all(url.startswith(URL) for url in urls.values())
    for crate in ("core", "vocab"):
        before = toml(ROOT / f"rust/{crate}/Cargo.toml")
        package = toml(copy / f"rust/{crate}/Cargo.toml")["package"]
        assert URL == package.pop("repository") == package.pop("homepage")
        assert f"https://docs.rs/{package['name']}" == package.pop("documentation")
        assert before["package"] == package


def test_links_for_an_index(copy):
    """What a package index shows has no relative link, and leads to the same files."""
    assert 0 == prepare(copy).returncode
    written = (copy / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"\]\(([^)\s]+)\)", written)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    before = re.findall(r"\]\(([^)\s]+)\)", readme)

    assert before == [re.sub(rf"^{URL}/(blob|raw)/v{VERSION}/", "", target) for target in found]
    assert [] == [target for target in found if not target.startswith("https://")]
    assert f"]({URL}/raw/v{VERSION}/docs/packing.svg)" in written


def test_nothing_is_filled_in_twice(copy):
    """A copy that was filled in is refused, and left as it was."""
    prepare(copy)
    before = {name: (copy / name).read_bytes() for name in FILES}

    assert "filled in before" in prepare(copy, url="https://example.org/other").stderr
    assert before == {name: (copy / name).read_bytes() for name in FILES}


def test_a_release_that_is_not_ready_is_refused(copy):
    """A tag of another version, a section without a date and an address without https are."""
    changelog = copy / "CHANGELOG.md"
    dated = changelog.read_text(encoding="utf-8")

    assert "is not v" in prepare(copy, tag="v9.9.9").stderr
    assert "is not v" in prepare(copy, tag=VERSION).stderr
    assert 2 == prepare(copy, url="http://example.org/owner").returncode
    assert 2 == prepare(copy, url='https://example.org/"').returncode
    changelog.write_text(dated.replace("2026-12-01", "unreleased"), encoding="utf-8")
    assert "YYYY-MM-DD" in prepare(copy).stderr
    changelog.write_text(f"## 9.9.9 - 2026-12-02\n\n{dated}", encoding="utf-8")
    assert "YYYY-MM-DD" in prepare(copy).stderr


def test_the_changelog_has_this_version_first():
    """The first section is the version in Cargo.toml, and no section comes twice."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (\S+) - (?:unreleased|\d{4}-\d\d-\d\d)$", text, re.MULTILINE)
    kinds = re.findall(
        r"^### (.*)$", text.partition("\n## ")[2].partition("\n## ")[0], re.MULTILINE
    )

    assert VERSION == sections[0]
    assert len(re.findall(r"^## ", text, re.MULTILINE)) == len(sections) == len(set(sections))
    assert [kind for kind in ("Added", "Changed", "Removed", "Fixed") if kind in kinds] == kinds


def test_no_extra_is_for_the_project_itself():
    """What tests, linters and benchmarks need is in groups, which no package publishes."""
    groups = {"bench", "browser", "clusters", "docs", "integrations", "lint", "mutants", "release"}
    groups.add("test")
    assert groups == set(PROJECT["dependency-groups"])
    assert not groups & set(PROJECT["project"]["optional-dependencies"])


def test_the_groups_that_are_asked_for_exist():
    """Each group that a command installs is in pyproject.toml."""
    for name in (
        *("README.md", "CONTRIBUTING.md", "docs/performance.md"),
        *(".ci/run", ".github/workflows/wheels.yml", "scripts/build_wheels.py"),
    ):
        found = re.findall(r"--group (\S+)", (ROOT / name).read_text(encoding="utf-8"))
        assert found
        assert {group.strip("'`") for group in found} <= set(PROJECT["dependency-groups"]), name


def test_the_sources_have_the_folders_that_documents_lead_to():
    """What a document links to is in the source distribution, whose tests follow the links."""
    included = {one["path"].partition("/")[0] for one in PROJECT["tool"]["maturin"]["include"]}
    linked = set()
    for document in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")):
        for target in re.findall(r"\]\(([^)\s#:]+)", document.read_text(encoding="utf-8")):
            place = Path(os.path.relpath(document.parent / target, ROOT))
            linked |= {place.parts[0]} if (ROOT / place.parts[0]).is_dir() else set()

    assert {"docs", "fuzz"} <= linked <= {*included, "python", "rust"}  # maturin adds these two


def test_classifiers():
    """They name each version that has wheels, the systems, and that the package is typed."""
    classifiers = PROJECT["project"]["classifiers"]
    python = "Programming Language :: Python :: "
    versions = [re.fullmatch(rf"{python}(3\.\d+)", line) for line in classifiers]

    assert VERSIONS == tuple(found[1] for found in versions if found)
    assert f">={VERSIONS[0]}" == PROJECT["project"]["requires-python"]
    assert sorted(classifiers) == classifiers
    for ending in ("MacOS", "Microsoft :: Windows", "POSIX :: Linux"):
        assert f"Operating System :: {ending}" in classifiers
    assert "Typing :: Typed" in classifiers
    assert any(f"{python}Free Threading" in line for line in classifiers)


def test_licence_expressions():
    """Each says what the licence files beside the code say."""

    def parts(expression):
        return set(expression.split(" AND "))

    core = toml(ROOT / "rust/core/Cargo.toml")["package"]["license"]
    vocab = toml(ROOT / "rust/vocab/Cargo.toml")["package"]["license"]
    assert {"MIT", "BSD-3-Clause"} == parts(core)
    assert {"MIT", "Apache-2.0"} == parts(vocab)
    assert parts(core) | parts(vocab) == parts(PROJECT["project"]["license"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned(path):
    """Each action is named by a whole commit, with its version beside it."""
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    others = [line for line in used if not line.startswith("$/")]

    assert used
    assert [] == [line for line in others if not re.fullmatch(PINNED, line)]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_permissions_are_given_to_jobs(path):
    """A workflow has none; each job has those it needs, and writes nothing that it need not."""
    whole = yaml.safe_load(path.read_text(encoding="utf-8"))

    assert {} == whole["permissions"]
    for job in whole["jobs"].values():
        writes = {name for name, kind in job.get("permissions", {}).items() if kind == "write"}
        assert writes <= {"id-token", "attestations", "contents"}
        assert "contents" not in writes or job["needs"] == ["pypi", "crates"]


def test_one_wheel_for_each_python():
    """Wheels are built for each version that has a classifier, and for free threading."""
    jobs = workflow("wheels")["jobs"]
    for name in ("native", "musl"):
        assert [*VERSIONS, f"{VERSIONS[-1]}t"] == jobs[name]["strategy"]["matrix"]["python"]
    systems = jobs["native"]["strategy"]["matrix"]["os"]
    assert {"ubuntu", "macos", "windows"} == {system.partition("-")[0] for system in systems}
    assert 6 == len(systems)  # two processors for each


def test_addresses_are_filled_in_before_anything_is_built():
    """Each job that builds for a release runs the script first, and none publishes without it."""
    jobs = {**workflow("wheels")["jobs"], "crates": workflow("release")["jobs"]["crates"]}
    for name, job in jobs.items():
        steps = [step.get("run", "") for step in job["steps"]]
        prepared = [at for at, step in enumerate(steps) if "scripts/prepare_release.py" in step]
        built = [
            at
            for at, step in enumerate(steps)
            if re.search(r"build_wheels|build_pure_wheel|cargo publish", step)
        ]
        assert prepared, name
        assert prepared[0] < min(built), name
    assert {"release": True} == workflow("release")["jobs"]["wheels"]["with"]
