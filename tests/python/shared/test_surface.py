"""Surface: what is public is there, documented, on both backends, and light to import."""

import ast
import inspect
import os
import re
import subprocess
import sys
from dataclasses import fields
from operator import attrgetter
from pathlib import Path

import pytest
from support import BACKENDS, backend_named, compared

import budgeteer
from budgeteer import (
    _backend,
    _codes,
    _models,
    _reference,
    embedding,
    presets,
    ranking,
    service,
    window,
)
from budgeteer._count.names import ENCODINGS
from budgeteer._output.output import KINDS
from budgeteer._pack.options import DEDUPES, ORDERS, OVERFLOWS, SELECTIONS
from budgeteer._pack.template import STYLES
from budgeteer._rank.rankings import NAMES

PACKAGE = Path(budgeteer.__file__).parent
BINDING = Path(__file__).parents[3] / "rust/binding/src"
INTERNAL = {
    "Packed": "what a plan answers",
    "Rows": "what read_rows answers",
    "TextColumn": "what read_column answers",
    "Columns": "what pack_rows answers",
    "keywords": "keyword_scores and pack extract keywords by themselves; the tests compare these",
    "sentence_spans": "a pack splits sentences by itself; the tests compare these",
    "grapheme_boundaries": "cuts find boundaries by themselves; the tests compare these",
}
"""What a backend has and the facade does not call, each with its reason."""
CLASSES = ("Columns", "Packed", "Plan", "Rows", "TextColumn")
FUNCTIONS = [name for name in _reference.__all__ if name not in CLASSES]
OPTIONS = ["max_tokens", "reserve_tokens", "counter", "ranking", "min_score", "overflow"]
OPTIONS += ["max_chunks", "dedupe", "selection", "units", "order", "template", "notice"]
"""Those of `Packer`, and no more."""
PARTS = {item.name for item in fields(_reference.Plan)}
"""What a plan of the reference is made of."""


def public(module):
    return {
        name
        for name in dir(module)
        if not name.startswith("_") and callable(getattr(module, name))
    }


def variants(kind, names):
    """Return how Rust names the choices of an option."""
    return [f"{kind}::{name.title().replace('_', '')}" for name in names]


@compared
def test_every_native_function_has_a_reference():
    """Both backends have the same functions and classes, but for the data of the native one."""
    native = backend_named("native")

    assert {*_reference.__all__, "packed_vocabulary"} == public(native)


@compared
@pytest.mark.parametrize(
    "name",
    [*FUNCTIONS, "Plan", "Plan.pack", "Plan.text_chars", "Rows.row", "Rows.answered"],
)
def test_parameters(name):
    """A function has the same parameters in the same order on both backends."""
    native, reference = (
        dict(inspect.signature(attrgetter(name)(backend_named(module))).parameters)
        for module in ("native", "reference")
    )
    for found in (native, reference):
        found.pop("self", None)

    assert [*reference] == [*native]
    assert [item.kind for item in reference.values()] == [item.kind for item in native.values()]
    assert [item.default is item.empty for item in reference.values()] == [
        item.default is item.empty for item in native.values()
    ]


@compared
@pytest.mark.parametrize("name", ["Packed", "Plan"])
def test_attributes(name):
    """A class has the same attributes and methods on both backends; a native plan shows none."""
    native, reference = (
        {item for item in dir(getattr(backend_named(module), name)) if not item.startswith("_")}
        for module in ("native", "reference")
    )

    assert reference - (PARTS if name == "Plan" else set()) == native


@pytest.mark.parametrize("kind", [_reference.Packed], ids=lambda kind: kind.__name__)
def test_order_of_attributes(kind):
    """The reference lists attributes in the order of the binding's source."""
    rust = (BINDING / "pack.rs").read_text("utf-8")
    struct = re.search(rf"struct {kind.__name__} {{\n(.*?)^}}", rust, re.DOTALL | re.MULTILINE)[1]

    assert re.findall(r"^    (\w+): ", struct, re.MULTILINE) == [
        item.name for item in fields(kind)
    ]


def test_options_of_a_plan():
    """A plan of the reference takes the options that the binding's takes, in their order."""
    rust = (BINDING / "pack.rs").read_text("utf-8")
    struct = re.search(r"impl Plan {.*?signature = \((.*?)\n    \)\)\]", rust, re.DOTALL)[1]

    assert re.findall(r'^ +(\w+): "', struct, re.MULTILINE) == [
        item.name for item in fields(_reference.Plan)
    ]


def test_options_of_a_packer():
    """A packer has the options of the contract and no other; `pack` takes the same."""
    packer = inspect.signature(budgeteer.Packer).parameters

    assert OPTIONS == [*packer]
    assert "KEYWORD_ONLY" == {item.kind.name for item in [*packer.values()][1:]}.pop()
    assert OPTIONS == [item.name for item in fields(budgeteer.Packer) if item.init]
    assert ["query", "chunks", "max_tokens", "options"] == [
        *inspect.signature(budgeteer.pack).parameters
    ]


def test_the_facade_uses_every_function():
    """Each function of a backend is used by the facade, but for the internal ones."""
    sources = [
        path.read_text("utf-8")
        for path in PACKAGE.rglob("*.py")
        if "_reference" not in path.relative_to(PACKAGE).parts
    ]
    used = {name for source in sources for name in re.findall(r"\bbackend\.(\w+)\(", source)}

    assert {*_reference.__all__} - set(INTERNAL) == used


def test_an_encoding_is_no_other_counter():
    """FRESH is a bit that no counter's own number has, and the encodings are what is native."""
    kinds = ["CHARS_DIV4", "WORDS", "CHARS_PER_TOKEN", "CALLABLE"]

    assert [*range(4)] == [getattr(_codes, kind) for kind in kinds]
    assert [*range(4, 15)] == [*ENCODINGS.values()]
    assert all(kind & _codes.FRESH == 0 for kind in range(15))
    assert _codes.CL100K == ENCODINGS["cl100k_base"]
    assert {*ENCODINGS} == {*_models.NATIVE.values()}


def test_reference_is_sorted():
    """The reference lists what it offers, sorted."""
    assert sorted(_reference.__all__) == _reference.__all__


@pytest.mark.parametrize(
    "module",
    [budgeteer, embedding, presets, ranking, service, window],
    ids=lambda module: module.__name__,
)
def test_all(module):
    """__all__ is sorted, constants first, importable and documented."""
    assert sorted(module.__all__, key=lambda name: (not name.isupper(), name)) == module.__all__
    assert inspect.getdoc(module)
    for name in module.__all__:
        item = getattr(module, name)
        assert (inspect.getdoc(item) or "").strip(), name


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Allocation",
            "BudgetPoint",
            "CacheInfo",
            "Calibration",
            "Chunk",
            "Corpus",
            "Correction",
            "FittedOutput",
            "Layout",
            "OpenAIEmbedder",
            "PackedTable",
            "Packer",
            "Packing",
        ),
        *("Section", "TokenCounter"),
    ],
)
def test_members_are_documented(name):
    """Every public member of a public class is documented."""
    item = getattr(embedding if name == "OpenAIEmbedder" else budgeteer, name)
    fields = set(getattr(item, "__dataclass_fields__", ()))
    for member, value in vars(item).items():
        if not member.startswith("_") and member not in fields:
            assert inspect.getdoc(value), f"{name}.{member}"


def test_public_names():
    """The names of the contract that exist today are public."""
    names = {"pack", "Packer", "Chunk", "Packing", "KeptChunk", "DroppedChunk", "get_counter"}
    names |= {"PackedTable", "pack_table"}
    names |= {
        "Corpus",
        "TokenCounter",
        "CacheInfo",
        "Calibration",
        "Correction",
        "Layout",
        "Section",
        "Allocation",
        "trim_messages",
        "FittedOutput",
        "fit_output",
        "fit_outputs",
    }
    errors = {
        "BudgeteerError",
        "InvalidArgumentError",
        "BudgetExhaustedError",
        "CorpusError",
        "CounterError",
        "InternalError",
    }

    assert names | errors <= {*budgeteer.__all__}


def test_errors():
    """Every error is a BudgeteerError; a bad argument is a ValueError as well."""
    for name in (
        "InvalidArgumentError",
        "BudgetExhaustedError",
        "CorpusError",
        "CounterError",
        "InternalError",
    ):
        assert issubclass(getattr(budgeteer, name), budgeteer.BudgeteerError)
    assert issubclass(budgeteer.InvalidArgumentError, ValueError)
    assert issubclass(window.InputValidationError, budgeteer.BudgetExhaustedError)
    assert issubclass(embedding.EmbeddingError, budgeteer.BudgeteerError)


HEAVY = ["numpy", "yaml", "rich", "socket", "ssl", "http.client", "urllib.request", "asyncio"]
HEAVY += ["opentelemetry"]


@pytest.mark.parametrize("work", ["", "budgeteer.pack('tea', ['tea', 'rye'], 3).to_dict()"])
def test_import_is_light(work):
    """Neither the import nor a packing loads numpy, yaml or anything of the network."""
    code = (
        f"import sys; before = {{*sys.modules}}; import budgeteer; {work}\n"
        f"print([m for m in {HEAVY} if m in {{*sys.modules}} - before])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )

    assert ("[]", "", 0) == (done.stdout.strip(), done.stderr, done.returncode)


def test_importing_the_service_is_light():
    """The service loads nothing that is an extra, nor numpy, before it is needed."""
    extras = ["numpy", "yaml", "qdrant_client", "fastapi", "httpx", "opentelemetry", "tomllib"]
    code = f"import sys, budgeteer.service; print([m for m in {extras} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )

    assert ("[]", "", 0) == (done.stdout.strip(), done.stderr, done.returncode)


def test_modules_list_what_they_load_when_asked_for():
    """A module with names that it makes on request says so, as completion asks for them."""
    lazy = []
    for path in sorted(Path(budgeteer.__file__).parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        functions = {node.name for node in ast.walk(ast.parse(text)) if is_of_module(node)}
        if "__getattr__" in functions:
            lazy.append(path.name)
            assert "__dir__" in functions, path
    assert ["__init__.py", "langchain.py"] == lazy


def is_of_module(node):
    """Return whether a node of a tree is a function that is no method."""
    is_function = isinstance(node, ast.FunctionDef)
    return is_function and "self" not in [argument.arg for argument in node.args.args]


def test_layouts_are_loaded_when_asked_for():
    """The import leaves layouts out, lists them, and has them when they are asked for."""
    code = (
        "import sys, budgeteer\n"
        "print('budgeteer._layout.layout' in sys.modules)\n"
        "print({*budgeteer.__all__} <= {*dir(budgeteer)})\n"
        "print(budgeteer.Layout(3, []).fit().free_tokens, 'Layout' in vars(budgeteer))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )

    assert ("False\nTrue\n3 True\n", "") == (done.stdout, done.stderr)
    with pytest.raises(AttributeError, match="has no attribute 'Layou'"):
        budgeteer.Layou  # noqa: B018


@pytest.mark.parametrize("name", ["", "nativ", "python", "x" * 99])
def test_unknown_backend(name, monkeypatch):
    """An unknown BUDGETEER_BACKEND is an ImportError that names the two there are."""
    monkeypatch.setenv("BUDGETEER_BACKEND", name)
    done = subprocess.run(
        [sys.executable, "-c", "from budgeteer import Packer"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode != 0
    assert f"BUDGETEER_BACKEND must be 'native' or 'reference', not {name[:80]!r}\n" in done.stderr


def test_the_choice_of_a_backend(monkeypatch):
    """Each name is a backend's; without the extension module the error names the remedy."""
    for name in BACKENDS:
        monkeypatch.setenv("BUDGETEER_BACKEND", name)
        assert f"budgeteer._{name}" == _backend._load().__name__
    monkeypatch.setenv("BUDGETEER_BACKEND", "nativ")
    with pytest.raises(ImportError, match="must be 'native' or 'reference', not 'nativ'"):
        _backend._load()
    monkeypatch.delenv("BUDGETEER_BACKEND")
    monkeypatch.setattr(_backend, "DEFAULT", "native")
    monkeypatch.delattr(budgeteer, "_native", raising=False)
    monkeypatch.setitem(sys.modules, "budgeteer._native", None)
    with pytest.raises(ImportError, match="or set BUDGETEER_BACKEND=reference for the slow"):
        _backend._load()
    monkeypatch.setenv("BUDGETEER_NUM_THREADS", "0")
    with pytest.raises(ImportError, match="must be a number from 1 on, not '0'"):
        _backend._check_number("BUDGETEER_NUM_THREADS", 1)


NO_NUMBERS = ["", "-1", "+1", "1.0", "1e3", " 2", "2 ", "two", "\u0662", "1_0", "9x" * 99]


@pytest.mark.parametrize("chosen", BACKENDS)
@pytest.mark.parametrize(
    ("variable", "least", "value"),
    [
        *(("BUDGETEER_NUM_THREADS", 1, value) for value in [*NO_NUMBERS, "0", "00"]),
        *(("BUDGETEER_COUNT_CACHE_MB", 0, value) for value in [*NO_NUMBERS, "32MB"]),
    ],
)
def test_bad_number_in_a_variable(chosen, variable, least, value, monkeypatch):
    """What is no number from that one on is an ImportError, on any backend."""
    monkeypatch.setenv("BUDGETEER_BACKEND", chosen)
    monkeypatch.setenv(variable, value)
    done = subprocess.run(
        [sys.executable, "-c", "from budgeteer import Packer"],
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )

    assert done.returncode != 0
    expected = f"{variable} must be a number from {least} on, not {value[:80]!r}"
    assert expected == done.stderr.decode().splitlines()[-1].removeprefix("ImportError: ")


@compared
@pytest.mark.parametrize("threads", [None, "1", "2", "016", "64", "9" * 99])
def test_number_of_threads(threads, monkeypatch):
    """Any number of threads from 1 on counts a large batch alike; so does no such limit."""
    if threads is None:
        monkeypatch.delenv("BUDGETEER_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("BUDGETEER_NUM_THREADS", threads)
    code = (
        "from budgeteer import get_counter\n"
        "texts = [f'{i} is a number. ' * 300 for i in range(2_000)]\n"
        "print(get_counter('o200k_base', cache=False).count_batch(texts).sum())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )

    assert ("3900000\n", "") == (done.stdout, done.stderr)


SIZED = """
from budgeteer import get_counter

counter = get_counter("o200k_base")
texts = [f"{i} is a number." for i in range(40_000)]
total = sum(counter.count_batch(texts[at : at + 1_000]).sum() for at in range(0, 40_000, 1_000))
info = counter.cache_info()
assert info.bytes <= info.max_bytes
again = sum(map(counter.count, texts[-9:]))
print(total, again, info.max_bytes, info.misses, counter.cache_info().hits, info.entries)
"""


@pytest.mark.parametrize("chosen", BACKENDS)
@pytest.mark.parametrize(
    ("size", "most"), [(None, 32 << 20), ("0", 0), ("1", 1 << 20), ("032", 32 << 20)]
)
def test_size_of_the_cache(chosen, size, most, monkeypatch, vocabulary):
    """The cache takes at most what BUDGETEER_COUNT_CACHE_MB says; counts are the same."""
    monkeypatch.setenv("BUDGETEER_BACKEND", chosen)
    monkeypatch.delenv("BUDGETEER_COUNT_CACHE_MB", raising=False)
    if size is not None:
        monkeypatch.setenv("BUDGETEER_COUNT_CACHE_MB", size)
    done = subprocess.run(
        [sys.executable, "-c", SIZED], capture_output=True, text=True, check=False, timeout=60
    )

    assert ("", 0) == (done.stderr, done.returncode)
    *figures, entries = map(int, done.stdout.split())
    assert figures == [239_000, 54, most, *((40_000, 9) if most else (0, 0))]
    fewest = {0: 0, 1 << 20: 2_500, 32 << 20: 40_000}[most]
    assert fewest <= entries <= {0: 0, 1 << 20: 30_000, 32 << 20: 40_000}[most]


@pytest.mark.parametrize("chosen", BACKENDS)
def test_a_cache_beyond_all_memory(chosen, monkeypatch):
    """However many digits the number has, it is a number."""
    monkeypatch.setenv("BUDGETEER_BACKEND", chosen)
    monkeypatch.setenv("BUDGETEER_COUNT_CACHE_MB", "9" * 5_000)
    code = "import budgeteer; print(budgeteer.get_counter('qwen2').cache_info().max_bytes)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )

    assert (f"{2**64 - 1}\n", "") == (done.stdout, done.stderr)


def test_chosen_backend(monkeypatch):
    """BUDGETEER_BACKEND=reference runs without the extension module."""
    monkeypatch.setenv("BUDGETEER_BACKEND", "reference")
    code = "import sys, budgeteer; print('budgeteer._native' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )

    assert ("False", 0) == (done.stdout.strip(), done.returncode)


def test_codes_of_the_binding():
    """The binding names counters, and where a chunk holds its text, as the facade does."""
    rust = (BINDING / "codes.rs").read_text("utf-8")

    for name in ("TEXT_KEYS", "TEXT_ATTRIBUTES"):
        listed = re.search(rf"{name}: .*= \[(.*)\];", rust)[1]
        assert getattr(_codes, name) == tuple(re.findall(r'"(\w+)"', listed))
    for name in ("ASSEMBLED", "LOOSE"):
        assert str(getattr(_codes, name)) == re.search(rf"{name}: i64 = (.*);", rust)[1]
    encodings = ["Cl100k", "O200k", "Qwen2", "Qwen35", "DeepSeek", "Glm4", "Tekken", "Gemma4"]
    encodings = [f"Encoding::{name}" for name in encodings]
    counted = [*encodings, *(f"Exact::new(Claude::{name})" for name in ("V3", "V47", "V48"))]
    for code, kind in zip(ENCODINGS.values(), counted, strict=True):
        assert re.search(rf"\b{code} => {re.escape(kind)}", rust), kind
    assert str(_codes.FRESH) == re.search(r"const FRESH: u8 = (\d+);", rust)[1]
    for name in ("NoText", "TextType", "TitleType"):
        constant = re.sub("(?<=.)([A-Z])", r"_\1", name).upper()
        assert str(getattr(_codes, constant)) == re.search(rf"\b{name} = (\d)", rust)[1]
    for kinds in (
        ["Estimate::CharsDiv4", "Estimate::Words", "Estimate::CharsPerToken", "Counting::Host"],
        ["lexical.into()", *(f"RankBy::{name.capitalize()}" for name in NAMES[2:-1]), "hybrid"],
        variants("Overflow", OVERFLOWS),
        ["Dedupe::Off", *variants("Dedupe", DEDUPES[1:])],
        variants("Selection", SELECTIONS),
        variants("Order", ORDERS),
        [f"Template::{style}()" for style in STYLES],
        ["Keep::Start", "Keep::End", "Keep::Both"],
        variants("OutputKind", KINDS),
    ):
        for code, kind in enumerate(kinds):
            pattern = rf"\b{code}\)? => .*{re.escape(kind)}(?!\w)"
            assert re.search(pattern, rust), kind
    for name in ("NoTable", "NoColumn", "ColumnType", "Producer", "Null", "NotUtf8", "Offsets"):
        constant = re.sub("(?<=.)([A-Z])", r"_\1", name).upper()
        assert str(getattr(_codes, constant)) == re.search(rf"\b{name} = (\d)", rust)[1]
    assert (_codes.NAN, _codes.INFINITE) == (4, 5)
    assert re.search(r"Nan = 4,\s+Infinite = 5,", rust)
    output = (BINDING / "output.rs").read_text("utf-8")
    for name in ("NotJson", "TooDeep", "NotDiff", "NoRoom"):
        constant = re.sub("(?<=.)([A-Z])", r"_\1", name).upper()
        code = getattr(_codes, constant)
        assert re.search(rf"Misfit::{name}.* => \({code}(_u8)?, ", output), name
    for code, reason in enumerate(("OutOfScope", "Empty", "Cap", "Duplicate", "Budget")):
        assert re.search(rf"Reason::{reason} => {code},", rust), reason
    for name in ("NO_POLICY", "SUM_OF_PARTS", "CITE", "GATE"):
        assert str(getattr(_codes, name)) == re.search(rf"\b{name}: u8 = (\d);", rust)[1]
