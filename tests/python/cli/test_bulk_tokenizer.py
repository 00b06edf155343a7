"""``budgeteer pack --output FILE`` with a tokenizer's file, which may change meanwhile."""

import json
import os
from pathlib import Path

import pytest
from bulk_support import STOP, packed, process, read, requests, write

from budgeteer import Packer
from budgeteer.cli._part import Part

pytest.importorskip("tokenizers")

BYTES = sorted({*range(33, 127), *range(161, 173), *range(174, 256)})
SIGNS = [*map(chr, BYTES), *(chr(256 + i) for i in range(256 - len(BYTES)))]
MODELS = {
    "WordLevel": ({"unk_token": "?"}, {"type": "Whitespace"}),
    "BPE": (
        {"merges": []},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ),
}
"""One that only the package tokenizers counts, and one that is native."""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Stand in a folder with requests; the value is where a tokenizer is to be."""
    monkeypatch.chdir(tmp_path)
    write("in.jsonl", requests(200))
    Path("own").mkdir()
    return Path("own/tokenizer.json")


def tokenizer(path, *words, kind="WordLevel"):
    model, split = MODELS[kind]
    vocab = {word: i for i, word in enumerate(dict.fromkeys(["?", *words, *SIGNS]))}
    document = {"pre_tokenizer": split, "model": {"type": kind, "vocab": vocab, **model}}
    path.write_text(json.dumps({"added_tokens": [], **document}), "utf-8")


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("counter", ["file:own", "hf:own/tokenizer.json"])
def test_another_tokenizer_is_refused(refused, run, own, kind, counter):
    """A file that may count otherwise now is refused as another option is."""
    options = ("-n", "400", "-m", counter)
    command = ("pack", "--input", "in.jsonl", *options, "--workers", 1, "-o", "out.jsonl")
    tokenizer(own, "tea", kind=kind)
    before = own.stat()
    assert 9 == process("in.jsonl", "out.jsonl", *options, check=False, code=STOP).returncode

    tokenizer(own, "tea", "green", kind=kind)
    said = refused(*command)
    assert said.startswith("'out.jsonl.part' is of a run that was stopped, and the size of ")
    assert f"--counter's file is {own.stat().st_size} now and was {before.st_size}: " in said
    tokenizer(own, "tea", kind=kind)
    os.utime(own, ns=(1, 1))
    assert "and the time of --counter's file's last change is 1 now and was " in refused(*command)

    os.utime(own, ns=(1, before.st_mtime_ns))
    assert 0 == run(*command)[0]
    assert packed(requests(200), Packer(400, counter=counter)) == read("out.jsonl")


def test_a_tokenizer_that_changes_meanwhile_is_no_output(refused, monkeypatch, own):
    """One process may have read it as it was, and another as it is."""
    tokenizer(own)
    append = Part.append

    def change(self, data):
        append(self, data)
        tokenizer(own, "tea")

    monkeypatch.setattr(Part, "append", change)
    options = ("-n", 40, "-m", "file:own", "--workers", 1)
    said = refused("pack", "--input", "in.jsonl", *options, "-o", "out.jsonl")
    assert said.startswith("the file of --counter was changed while it was read: remove 'out")
    assert not Path("out.jsonl").exists()
