"""Tokenizers that the user has, found by the names of models; and what counts rest on."""

import base64
import json
import logging
import os
import pickle

import find_files_cases
import pytest

from budgeteer import Calibration, CounterError, InvalidArgumentError, Packer, get_counter
from budgeteer._count import files, find_files, ways
from budgeteer._count.sources import SOURCES
from budgeteer.window import ModelLimits, model_limits, register_model

TEXT = "Green tea is mild."

pytestmark = pytest.mark.usefixtures("registry")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder that the environment names, after one that does not exist."""
    folders = os.pathsep.join([str(tmp_path / "none"), str(tmp_path / "own")])
    monkeypatch.setenv(find_files.VARIABLE, folders)
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Return a folder that stands for the cache of Hugging Face."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.fixture
def reader(backend, monkeypatch):
    """Read files on each backend."""
    monkeypatch.setattr(files, "backend", backend)
    files._open.cache_clear()
    yield
    files._open.cache_clear()


def write(path):
    """Write a tokenizer whose tokens are bytes, so that a count is the number of bytes."""
    tokenizers = pytest.importorskip("tokenizers")
    path.parent.mkdir(parents=True, exist_ok=True)
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model = tokenizers.models.BPE({sign: i for i, sign in enumerate(alphabet)}, [])
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save(str(path))


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("llama3.1:70b", "llama3.1:70b.json"),
        ("llama3.1:70b", "llama3.1-70b/tokenizer.json"),
        ("llama3.1:70b", "llama3.1.json"),
        ("llama3.1:70b", "llama3.json"),
        ("llama3.1:70b", "llama-3/tokenizer.json"),
        ("meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct.json"),
        ("meta-llama/Llama-3.3-70B-Instruct", "meta-llama--llama-3.3-70b-instruct.json"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.json"),
        ("deepseek-r1-distill-llama-70b", "llama3.json"),
        ("moonshotai/Kimi-K2-Instruct", "kimi-k2.json"),
        ("gemini-2.5-pro", "gemma-3.json"),
        ("grok-3", "grok-3.json"),
        ("acme-7b", "acme-7b.json"),
        ("acme", "acme.json"),
        ("mistral-large-latest", "mistral-large-latest.json"),
    ],
)
@pytest.mark.usefixtures("reader")
def test_a_file_counts_for_a_model(name, file, folder, caplog):
    """A model that is not shipped counts by the user's file, exactly and without a warning."""
    write(folder / file)
    with caplog.at_level(logging.WARNING, "budgeteer"):
        counter = get_counter(name, strict=True)

    assert (name, True, len(TEXT)) == (counter.name, counter.is_exact, counter.count(TEXT))
    assert [] == caplog.records
    found = folder / file
    assert ("exact", str(found.parent if "tokenizer.json" in file else found)) == (
        counter.basis, counter.source,
    )  # fmt: skip
    assert counter.count(TEXT) == pickle.loads(pickle.dumps(counter)).count(TEXT)
    if name != "acme":
        assert counter.count(TEXT) == get_counter(model_limits(name)).count(TEXT)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        *(("gpt-4o", "gpt-4o.json"), ("qwen3-32b", "qwen3-32b.json")),  # shipped
        *(("my-llama3-tune", "llama3.json"), ("kimi-k9", "kimi-k2.json")),  # not sure
        *(("qwen-max", "qwen.json"), ("llama3.1:70b", "kimi-k2.json")),
        *(("../llama3.1:70b", "../llama3.1:70b.json"), ("x/..-7b", "x.json")),
    ],
)
def test_a_file_of_another_model(name, file, folder):
    """What is shipped exactly stays, and a file of another name, or outside, is not used."""
    before = get_counter(name)
    write(folder / file)

    assert before == get_counter(name)
    assert len(TEXT) != get_counter(name).count(TEXT)


def test_without_a_file_the_remedy_names_the_folder(folder, caplog):
    """Without a file the factor counts, with one warning that says where a file may be."""
    del folder
    with caplog.at_level(logging.WARNING, "budgeteer"):
        assert not get_counter("llama3.1:70b").is_exact
        get_counter("llama3.1:70b")

    [record] = caplog.records
    assert "BUDGETEER_TOKENIZERS" in record.getMessage()
    with pytest.raises(InvalidArgumentError, match="BUDGETEER_TOKENIZERS"):
        get_counter("llama3.1:70b", strict=True)


def test_a_factor_of_ones_own_goes_before_a_file(folder):
    """A factor that the caller states is not replaced by a file."""
    write(folder / "llama3.json")
    register_model("llama3.1:70b", context_window=9, encoding="o200k_base", calibration=1.1)

    assert "o200k_base * 1.1" in repr(get_counter("llama3.1:70b"))
    assert "stated by the caller" == get_counter("llama3.1:70b").source


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"\xff\xfe\0"])
@pytest.mark.usefixtures("reader")
def test_a_damaged_file_is_an_error(content, folder):
    """Nothing silently falls back: the error names the file."""
    (folder / "llama3.json").write_bytes(content)

    with pytest.raises(CounterError) as caught:
        get_counter("llama3.1:70b")
    assert str(folder / "llama3.json") in str(caught.value)
    assert "'llama3.1:70b'" in str(caught.value)


def test_a_folder_without_a_tokenizer_is_an_error(folder):
    """A folder of the model's name that holds none is an error too."""
    (folder / "llama3").mkdir()

    with pytest.raises(CounterError, match="llama3"):
        get_counter("llama3.1:70b")


@pytest.mark.parametrize(
    "name", ["meta-llama/Llama-3.1-8B", "Llama-3.1-8B", "together_ai/meta-llama/llama-3.1-8b"]
)
def test_the_cache_of_hugging_face(name, hub):
    """The snapshot that refs/main names counts, or else the newest one with a tokenizer."""
    model = hub / "models--meta-llama--Llama-3.1-8B"
    (hub / "datasets--meta-llama--Llama-3.1-8B" / "snapshots").mkdir(parents=True)
    for i, commit in enumerate(["aa", "bb", "cc"]):
        write(model / "snapshots" / commit / "tokenizer.json")
        os.utime(model / "snapshots" / commit, (i, i))
    (model / "snapshots/dd").mkdir()

    assert str(model / "snapshots/cc") == get_counter(name).source
    (model / "refs").mkdir()
    (model / "refs/main").write_text("bb")
    assert str(model / "snapshots/bb") == get_counter(name).source
    assert len(TEXT) == get_counter(name).count(TEXT)
    assert not get_counter("llama3.1:8b").is_exact


def test_ranks_of_tiktoken(folder, native):
    """A file of ranks that no pattern is known of is an error as any other, not a guess."""
    del native
    ranks = (base64.b64encode(bytes([i])) + b" %d\n" % i for i in range(256))
    (folder / "llama3.tiktoken").write_bytes(b"".join(ranks))

    with pytest.raises(CounterError, match=r"llama3\.tiktoken"):
        get_counter("llama3.1:70b")


@pytest.mark.parametrize(
    ("name", "basis", "source"),
    [
        *((name, SOURCES[name].basis, SOURCES[name].text) for name in SOURCES),
        ("qwen3-32b", "exact", "Qwen 2, 2.5 and 3: splintr-vocab-qwen 1.0.0, 2026-11-22"),
        ("gpt-oss-120b", "exact", "o200k_base of tiktoken 0.14 (OpenAI)"),
        ("llama3.1:70b", "factor", "Llama 3 of splintr-rs 0.22.0; never too low on 501"),
        ("phi-4", "factor", "Phi 4 of splintr-rs 0.22.0; never too low on 501"),
        ("kimi-k3", "factor", "Kimi K2 and K3 of splintr-vocab-kimi 1.0.0; never too low on"),
        ("llama4:scout", "factor", "not measured: as Kimi K2"),
        ("claude-opus-5", "reconstruction", "Claude Opus 4.8 and later: ctok 1.3.0, 2026-08-11"),
        ("claude-next-9", "factor", "believed to count as claude4.8"),
        ("mistral-large-latest", "factor", "believed to count as tekken"),
        ("my-gpt-4-x", "factor", "believed to count as gpt-4, which is in its name"),
        ("my-qwen3-8b", "factor", "believed to count as qwen2"),
        ("nobody-knows-7b", "factor", "the most of every vocabulary that was measured; never"),
        ("chars_div4", "estimate", "the formula chars_div4"),
        ("chars_per_token:3", "estimate", "the formula chars_per_token:3"),
        ("words", "estimate", "the formula words"),
        ("tiktoken:cl100k_base", "exact", "the encoding cl100k_base of the package tiktoken"),
        (len, "callable", "a function of the caller"),
    ],
)
def test_the_basis_of_counts(name, basis, source, backend):
    """Each counter says what it rests on and since when, and only an exact one is exact."""
    del backend
    counter = get_counter(name)

    assert basis == counter.basis
    assert counter.source.startswith(source)
    assert counter.is_exact == (basis == "exact")
    assert get_counter(name, cache=False).basis == basis


def test_the_basis_of_what_says_it_is_exact():
    """A caller's function that says it is exact, and limits of one's own."""

    def count(text):
        return len(text)

    count.is_exact = True
    assert "exact" == get_counter(count).basis
    own = ModelLimits("acme", 9, 9, None, "o200k_base", 1.3, None, True, "own")
    assert ("factor", "stated by the caller") == (
        get_counter(own).basis, get_counter(own).source,
    )  # fmt: skip


def test_the_basis_of_what_was_learned():
    """A corrected counter is learned, from so many pairs; one without drift stays what it is."""
    calibration = Calibration()
    assert "exact" == calibration.counter("gpt-4o").basis
    for estimated in (1_000, 4_000):
        calibration.observe(estimated, 200 + 2 * estimated, model="gpt-4o")
    counter = calibration.counter("gpt-4o")

    assert ("learned", False) == (counter.basis, counter.is_exact)
    assert "2 pairs of counts and bills, over o200k_base" == counter.source


def test_a_reconstruction_is_no_factor(monkeypatch):
    """An encoding that was measured says so wherever it counts, and is never exact."""
    monkeypatch.setitem(SOURCES, "glm4", SOURCES["glm4"]._replace(basis="reconstruction"))

    for name in ("glm4", "glm-4.5"):
        counter = get_counter(name)
        assert ("reconstruction", False) == (counter.basis, counter.is_exact)
        assert "estimate=" not in repr(counter)


@pytest.mark.parametrize("name", ["x-7" * 5_000, "é-7" * 100, "a-7\0", "a-7\ud800", "/7-a", "-7/"])
def test_names_that_no_file_has(name, folder):
    """A name that is too long or odd for a file is looked for nowhere."""
    del folder

    assert not get_counter(name).is_exact


@pytest.mark.parametrize("kind", find_files_cases.KINDS, ids=lambda kind: kind.__name__)
def test_cases_are_what_python_answers(kind):
    """What `tests/cases/find_files.json` expects of Rust is what Python answers now."""
    cases = json.loads(find_files_cases.FILE.read_text("utf-8"))

    assert cases[kind.__name__] == kind()


def test_names_of_files_are_few():
    """However long a name is, only its own and its family's are looked for."""
    assert 10 > len(ways.file_names("us.meta.llama3-1-8b:x/" * 30))


def test_a_folder_that_cannot_be_read(monkeypatch, tmp_path):
    """A folder that the system refuses to look into is an error, and no model without a file."""
    monkeypatch.setenv(find_files.VARIABLE, str(tmp_path / ("x" * 300)))
    with pytest.raises(CounterError, match=r"^the tokenizer of 'llama3\.2:3b' cannot be looked"):
        get_counter("llama3.2:3b")


def test_a_model_that_was_not_downloaded_whole(hub):
    """A cached model without a snapshot, or with one without a tokenizer, has no file."""
    estimate = get_counter("llama-3.2-3b")
    model = hub / "models--meta-llama--Llama-3.2-3B"
    for folder in (model, model / "snapshots" / "abc"):
        folder.mkdir(parents=True)
        found = get_counter("meta-llama/Llama-3.2-3B")
        assert not found.is_exact
        assert estimate.count(TEXT) == found.count(TEXT)


def test_a_factor_and_a_margin_are_rounded_once():
    """A model's factor and a margin are one factor: ceil(2.05 * 1.5), not ceil(3 * 1.5)."""
    counters = [get_counter("cl100k_base"), get_counter("acme-7b")]
    counters.append(get_counter("acme-7b", margin=0.5))

    assert [1, 3, 4] == [counter.count(" tea") for counter in counters]


def test_a_margin_keeps_the_place_of_an_error():
    """A callable that counts a chunk wrongly is an error that names it, with a margin, too."""
    counter = get_counter(lambda text: -1 if text == "b" else 1, margin=0.5)
    with pytest.raises(CounterError, match=r"an int from 0 on for chunks\[1\], not -1"):
        Packer(9, counter=counter).pack("", ["a", "b"])


def test_a_margin_is_not_exact():
    """An exact counter with a margin is refused, and a counter with one says what it counts by."""
    with pytest.raises(InvalidArgumentError, match=r"^margin must be 0 where strict is True, not"):
        get_counter("gpt-4o", strict=True, margin=0.1)
    counter = get_counter("gpt-4o", margin=0.1)
    assert "estimate='o200k_base * 1.1'" in repr(counter)
