"""What a process remembers is bounded, and has no large text of a caller."""

import gc
import json
import sys
import weakref

import pytest

from budgeteer import fit_request, get_counter, pack
from budgeteer._count import limits, ways
from budgeteer._request import parts
from budgeteer.integrations import _requests
from budgeteer.window import model_limits


class Message:
    """A message as clients give them back."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def model_dump(self, **_):
        return dict(vars(self))


TOOL = "Finds tea."


def request_of(text, tool=""):
    function = {"name": "find", "description": tool, "parameters": {"type": "object"}}
    return {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": text}],
        "tools": [{"type": "function", "function": function}] if tool else [],
    }


def test_large_tools_are_not_kept():
    """The text of tools is kept if it is small, and counts the same if it is not."""
    parts._rendered.cache_clear()
    small = fit_request(request_of("tea", TOOL), context_window=200_000)
    assert 1 == parts._rendered.cache_info().currsize
    large = request_of("tea", "tea " * 40_000)
    fitted = [fit_request(large, context_window=200_000).total_tokens for _ in range(2)]
    difference = get_counter("gpt-4o").count("tea " * 40_000) - get_counter("gpt-4o").count(TOOL)

    assert 1 == parts._rendered.cache_info().currsize
    assert fitted[0] == fitted[1]
    assert difference == pytest.approx(fitted[0] - small.total_tokens, abs=3)
    assert parts._rendered.cache_info().maxsize <= 32


def test_types_of_chunks_are_not_kept():
    """A caller's type goes with its last chunk, and with it all that its module holds."""

    class Document:
        def __init__(self, text):
            self.text, self.metadata = text, {"page": 1}

    gone = weakref.ref(Document)
    packing = pack("tea", [Document("Green tea."), Document("Rye bread.")], 3)
    assert packing.dropped_total_tokens == 4
    packing.report()
    del Document, packing
    gc.collect()

    assert gone() is None


def test_long_names_of_models_are_not_kept():
    """A name that nobody gives to a model is looked up and not kept."""
    name = "qwen3-" + "x" * 100_000
    ways._kept_families.cache_clear()
    limits._warned.clear()
    assert model_limits("qwen3-x").encoding == model_limits(name).encoding == "qwen2"
    assert 1 == ways._kept_families.cache_info().currsize
    assert max(map(len, limits._warned)) < 1_000


def test_files_of_models_are_bounded(monkeypatch, tmp_path):
    """A process that changes BUDGETEER_MODELS keeps the files that it read last."""
    for number in range(9):
        file = tmp_path / f"{number}.json"
        models = {f"tea-{number}": {"context_window": 1_000 + number}}
        file.write_text(json.dumps({"models": models}), "utf-8")
        monkeypatch.setenv("BUDGETEER_MODELS", str(file))
        assert 1_000 + number == model_limits(f"tea-{number}").context_window

    assert limits._environment_file.cache_info().currsize <= 4


@pytest.mark.parametrize("make", [dict, Message])
def test_conversations_are_bounded_by_bytes(monkeypatch, make):
    """Of conversations those last used are remembered, as many as fit; a huge one is not."""
    monkeypatch.setattr(_requests, "MAX_BYTES", 60_000)
    fitter = _requests.Fitter(None, 128_000, 10, None)

    def ask(number, characters):
        text = f"{number} " + "t" * (characters - 2)
        fitter({**request_of(""), "messages": [make(role="user", content=text)]})
        return len(fitter._sent)

    for number in range(9):
        assert min(number + 1, 2) == ask(number, 20_000)
        assert fitter._bytes == sum(sent.size for sent in fitter._sent.values()) <= 60_000
    assert 2 == ask(8, 20_000)  # the same again counts once
    assert 0 == ask(0, 70_000) == fitter._bytes
    assert 1 == ask(1, 20_000)


def test_each_cache_has_a_bound():
    """Of all functions that remember answers, those without a bound take no text of a caller."""
    import budgeteer.config
    import budgeteer.embedding
    import budgeteer.integrations._columns
    import budgeteer.service  # noqa: F401

    gc.collect()
    found = {}
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] == "budgeteer":
            for item in vars(module).values():
                parameters = getattr(item, "cache_parameters", None)
                if parameters is not None:
                    found[f"{item.__module__}.{item.__qualname__}"] = parameters()["maxsize"]

    assert "budgeteer._request.parts._rendered" in found
    unbounded = {name.removeprefix("budgeteer.") for name, most in found.items() if most is None}
    assert unbounded <= FEW


FEW = {
    *("_count.limits._table", "_count.ways.document", "_count.ways.known", "_count.ways.prefixes"),
    *("_reference._count.bpe.vocabulary", "_reference._count.bpe._composer"),
    *("_reference._count.bpe._second_parts", "_reference._count.bpe._compiled"),
    *("_reference._count.bpe._known_tokens", "_reference._count.exact.counter"),
}
"""What is remembered for nothing, or for each encoding."""
