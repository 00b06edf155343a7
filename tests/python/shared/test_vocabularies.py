"""The vocabularies that are shipped: each has a source, a licence and a line that says so."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
VOCAB = ROOT / "rust/vocab"
FAMILIES = json.loads((ROOT / "scripts/vocabulary_sources.json").read_text("utf-8"))["families"]
SHIPPED = {family["name"]: family for family in FAMILIES if family["ship"]}
ROWS = {
    row.split("|")[2].strip(" `"): row
    for row in (VOCAB / "README.md").read_text("utf-8").splitlines()
    if row.startswith("| `")
}


def test_shipped_are_those_of_the_sources():
    """No vocabulary is there without a source, and none is missing."""
    source = (VOCAB / "src/encoding.rs").read_text("utf-8")
    names = set(re.findall(r'/([^/"]+)\.bin"', source))
    assert names == {"cl100k_base", "o200k_base", *SHIPPED}
    assert {path.stem for path in VOCAB.glob("data/*.bin") if "claude" not in path.stem} == set(
        SHIPPED
    )
    assert set(ROWS) == {"cl100k_base", "o200k_base", *SHIPPED}


@pytest.mark.parametrize("name", SHIPPED)
def test_each_has_a_licence(name):
    """The licence and the notice stand beside the data, and the list names them."""
    licence = SHIPPED[name]["licence"].split()[0]
    files = re.findall(r"`((?:LICENSE|NOTICE)-[\w.-]+)`", ROWS[name])
    assert f"{licence}: " in ROWS[name]
    assert [file.partition("-")[0] for file in files] == ["LICENSE", "NOTICE"]
    text = (VOCAB / files[0]).read_text("utf-8")
    assert ("Apache License" if licence == "Apache-2.0" else f"{licence} License") in text
    assert SHIPPED[name].get("copyright", "") in text
    assert files[0] in (VOCAB / files[1]).read_text("utf-8")


@pytest.mark.parametrize("name", SHIPPED)
def test_the_list_has_the_figures(name):
    """The list says how many tokens a text can have; a test in Rust, how large the data is."""
    tokens = SHIPPED[name]["tokens"] - SHIPPED[name].get("unreachable", 0)
    assert f"| {tokens:,} |" in ROWS[name]


def test_licences_are_in_the_wheel():
    """Each licence and notice matches one of pyproject's license-files."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    globs = re.findall(r'"([^"]+)"', text.partition("license-files = [")[2].partition("]")[0])
    found = {path for glob in globs for path in ROOT.glob(glob)}
    beside = {path for crate in ("core", "vocab") for path in ROOT.glob(f"rust/{crate}/*-*")}
    assert len(beside) >= 11
    assert beside <= found
