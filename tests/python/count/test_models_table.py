"""The table of models: what a name answers, and what a caller may put over it."""

import json
import logging
import math
import pickle
import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from tiktoken.model import MODEL_PREFIX_TO_ENCODING, MODEL_TO_ENCODING

from budgeteer import (
    BudgetExhaustedError,
    InvalidArgumentError,
    Layout,
    Packer,
    Section,
    _models,
    get_counter,
    trim_messages,
)
from budgeteer._count import limits as _limits
from budgeteer._count.names import ENCODINGS
from budgeteer.window import (
    ModelLimits,
    count_messages,
    list_models,
    model_limits,
    register_model,
)

DOCUMENT = {
    "gpt-4": 8192,
    "gpt-4-turbo": 128000,
    "gpt-4o": 128000,
    "gpt-3.5-turbo": 16385,
    "claude-3-opus": 200000,
    "claude-3-sonnet": 200000,
    "claude-3-haiku": 200000,
    "claude-3-5-sonnet": 200000,
    "llama3.2:3b": 128000,
    "llama3.1:70b": 128000,
    "deepseek-coder:6.7b": 16000,
    "qwen2.5:7b": 128000,
    "mistral:7b": 32768,
    "grok-3": 131072,
    "deepseek-chat": 64000,
}
SHIPPED = json.loads(Path(_limits.__file__).with_name("models.json").read_text("utf-8"))

pytestmark = pytest.mark.usefixtures("registry")


@pytest.mark.parametrize("name", DOCUMENT)
def test_documents_windows(name):
    """Seed 001: each of the 15 models has the window that its table states."""
    limits = model_limits(name)

    assert (DOCUMENT[name], True, "document") == (
        limits.context_window,
        limits.known,
        limits.source,
    )


def test_unknown_models_have_a_window_and_an_estimate(caplog):
    """An unknown model has a default window, counts by an estimate, and is warned of once."""
    with caplog.at_level(logging.WARNING, "budgeteer"):
        [limits] = {model_limits("nobody-knows-this") for _ in range(3)}
        assert not get_counter(limits).is_exact

    assert (32_768, 32_768, None, "cl100k_base", 2.05, False, None) == (
        limits.context_window, limits.max_input_tokens, limits.max_output_tokens,
        limits.encoding, limits.calibration, limits.known, limits.guessed_from,
    )  # fmt: skip
    [record] = caplog.records
    assert "budgeteer" == record.name
    assert (
        "model 'nobody-knows-this' is not known: unless given, its context window is taken to be "
        "32768; "
        "register_model states its limits, load_models('litellm') reads those that litellm knows"
        == record.getMessage()
    )
    assert ("nobody-knows-this", 32_768, None) == (
        record.model, record.context_window, record.guessed_from,
    )  # fmt: skip


def test_the_unknown_window_is_that_of_the_smallest_model_served_today():
    """No smaller window in the table is a chat model's of today, and one has it."""
    small = {n for n, row in SHIPPED["models"].items() if row["context_window"] < 32_768}

    assert small == {
        *("gpt-4", "gpt-3.5-turbo", "davinci-002", "babbage-002", "deepseek-coder:6.7b"),
        *("text-embedding-3-large", "text-embedding-3-small", "text-embedding-ada-002"),
        *("gemini-2.5-pro-preview-tts", "phi-4"),
    }
    assert 32_768 == model_limits("qwen-max").context_window


def test_the_three_numbers_are_apart():
    """Where the input has a limit of its own, the window is not it."""
    gpt_5, qwen = model_limits("gpt-5"), model_limits("qwen3-max")

    assert (400_000, 272_000, 128_000) == (
        gpt_5.context_window, gpt_5.max_input_tokens, gpt_5.max_output_tokens,
    )  # fmt: skip
    assert (262_144, 258_048) == (qwen.context_window, qwen.max_input_tokens)


@pytest.mark.parametrize("name", SHIPPED["models"])
def test_every_entry_is_sound(name):
    """Limits are within the window; the encoding is tiktoken's, or the way to count is stated."""
    limits = model_limits(name)

    assert 0 < limits.max_input_tokens <= limits.context_window
    assert limits.max_output_tokens is None or limits.max_output_tokens < limits.context_window
    known = _models.encoding_of(name)
    if known is not None:
        assert (known, None) == (limits.encoding, limits.calibration)
    else:
        way = SHIPPED["counting"][SHIPPED["models"][name]["counting"]]
        assert (way["encoding"], way["calibration"]) == (limits.encoding, limits.calibration)
        assert way["encoding"] in ENCODINGS
        counter = get_counter(name)
        assert (way["calibration"] is None) == (way["source"] is None)
        assert counter.is_exact == (way["source"] is None and counter.basis != "reconstruction")
        assert (counter.basis == "reconstruction") == name.startswith("claude-")
    assert limits.source in SHIPPED["sources"]
    assert limits == pickle.loads(pickle.dumps(limits))


def test_the_table_states_its_source():
    """The table has its package with version, licence, date and hash."""
    [source] = [name for name in SHIPPED["sources"] if name != "document"]

    assert source == model_limits("gpt-5").source
    version, date = re.fullmatch(r"litellm ([\d.]+) of (\d{4}-\d\d-\d\d)", source).groups()
    stated = SHIPPED["sources"][source]
    assert f"of litellm {version} (MIT), {date}, SHA-256 " in stated
    assert re.search(r"SHA-256 [0-9a-f]{64}; rules in scripts/generate_models.py", stated)
    for way in ("llama-3", "qwen?", "gemma-2", "mistral-v3", "kimi-k2", "other"):
        assert "measured 2026-" in SHIPPED["counting"][way]["source"]


def test_an_unknown_model_counts_no_lower_than_a_known_one():
    """Knowing less never packs more: no model of today has a larger factor than an unknown one."""
    factors = [way["calibration"] or 1.0 for way in SHIPPED["counting"].values()]

    assert max(factors) <= model_limits("nobody-knows").calibration


def test_aliases_lead_somewhere():
    """Every alias names an entry and is none, and the list has every entry once."""
    assert {*SHIPPED["aliases"].values()} <= {*SHIPPED["models"]}
    assert not {*SHIPPED["aliases"]} & {*SHIPPED["models"]}
    assert sorted(SHIPPED["models"]) == sorted(limits.name for limits in list_models())


@given(
    st.sampled_from([*MODEL_TO_ENCODING, *MODEL_PREFIX_TO_ENCODING, *SHIPPED["models"]]),
    st.sampled_from(["", "-", "-x", ":x", ".1", "o"]),
)
def test_encodings_are_tiktokens(name, rest):
    """For every name that tiktoken knows, the encoding is what it says."""
    try:
        expected = tiktoken.encoding_name_for_model(name + rest)
    except KeyError:
        return
    assert (expected, None) == _limits.encoding_of(name + rest)
    assert (expected, None) == (
        model_limits(name + rest).encoding,
        model_limits(name + rest).calibration,
    )


def test_get_counter_reads_the_table():
    """A model behind a provider's prefix counts as itself; one without a tokenizer by a factor."""
    text = "Green tea is mild, and black tea is strong. " * 20
    exact = get_counter("cl100k_base").count(text)
    kimi = get_counter("moonshotai/kimi-k2")

    assert get_counter("openai/gpt-4o") == get_counter("gpt-4o")
    assert (False, "moonshotai/kimi-k2") == (kimi.is_exact, kimi.name)
    assert -(-exact * 125 // 100) == kimi.count(text)
    assert get_counter("nobody-knows-7b").count(text) > kimi.count(text)
    assert pickle.loads(pickle.dumps(kimi)) == kimi
    assert 0 == kimi.count("")
    assert get_counter("anthropic/claude-3-opus") == get_counter("claude3")
    assert get_counter("claude-opus-5") == get_counter("claude4.8")


def test_a_packing_by_a_calibrated_counter():
    """A packer takes it, the bound holds, and the packing says that it is estimated."""
    packing = Packer(12, counter="kimi-k2").pack("tea", ["Green tea."] * 2 + ["Rye."])

    assert not packing.is_exact
    assert get_counter("kimi-k2").count(packing.text) == packing.total_tokens <= 12


@pytest.mark.parametrize(
    ("name", "encoding", "factor"),
    [
        *(("llama3.2:3b", "cl100k_base", 1), ("kimi-k3", "cl100k_base", 1.25)),
        *(("mistral-large-latest", "tekken", 1), ("mistral:7b", "cl100k_base", 2.05)),
        *(("grok-3", "cl100k_base", 2.05), ("glm-5", "glm4", 1.05)),
        *(("gpt2", "cl100k_base", 2.05), ("text-davinci-003", "cl100k_base", 2.05)),
    ],
)
def test_a_tokenizer_that_is_not_native(name, encoding, factor, caplog):
    """Such a model counts by a factor of a relative, says so, and is warned of once."""
    text = "Green tea is mild, and black tea is strong. " * 20
    exact = get_counter(encoding).count(text)
    with caplog.at_level(logging.WARNING, "budgeteer"):
        counter = get_counter(name)
        assert counter == get_counter(name)

    assert math.ceil(exact * factor) == counter.count(text)
    assert (
        f"TokenCounter(name={name!r}, is_exact=False, estimate='{encoding} * {factor}')"
        == repr(counter)
    )
    assert counter == pickle.loads(pickle.dumps(counter))
    [record] = caplog.records
    remedy = (
        "'file:PATH' counts exactly with its tokenizer.json, where that is published, and so does "
        "its name where a folder in BUDGETEER_TOKENIZERS has it"
    )
    if name == "grok-3":
        remedy = (
            "its tokenizer is not published: register_model(..., calibration=...) changes the "
            "factor"
        )
    if name in MODEL_TO_ENCODING:
        remedy = f"'tiktoken:{MODEL_TO_ENCODING[name]}' counts it exactly"
    assert (
        f"model {name!r} counts by an estimate: the tokens of {encoding} times {factor}; {remedy}"
        == record.getMessage()
    )
    assert (name, encoding, factor) == (record.model, record.encoding, record.calibration)


def test_a_tokenizer_that_is_not_native_everywhere(caplog):
    """A layout, messages and a packer take such a model as any other; nothing raises."""
    with caplog.at_level(logging.WARNING, "budgeteer"):
        for name in ("llama3.2:3b", "nobody-knows", "my-gpt-4o-x"):
            limits = model_limits(name)
            layout = Layout(name, [Section("system", "Be brief.")]).fit()
            counted = count_messages([{"role": "user", "content": "tea"}], model=limits)
            packing = Packer(9, counter=get_counter(limits)).pack("tea", ["Green tea.", "Rye."])
            assert not layout.is_exact
            assert counted > 0
            assert not packing.is_exact
            assert get_counter(limits).count(packing.text) <= 9

    assert ["llama3.2:3b", "nobody-knows", "my-gpt-4o-x"] == [r.model for r in caplog.records]


def test_a_factor_of_ones_own_is_no_warning(caplog):
    """Who states a factor is not told of it; who states a window only is."""
    with caplog.at_level(logging.WARNING, "budgeteer"):
        register_model("llama3.2:3b", context_window=9, encoding="o200k_base", calibration=1.1)
        assert not get_counter("llama3.2:3b").is_exact
        assert [] == caplog.records
        own = register_model("acme-7b", context_window=9)
        assert ("cl100k_base", 2.05) == (own.encoding, own.calibration)
        assert 9 == get_counter("acme-7b").count("Hello, world!")

    assert ["acme-7b"] == [record.model for record in caplog.records]


def test_registered_models_go_first():
    """What is registered answers for its name and longer ones, over what is shipped."""
    register_model("gpt-4", context_window=9_000, encoding="words")
    register_model("acme", context_window=5_000, max_input_tokens=4_000, provider="acme")

    assert (9_000, "words", "registered") == (
        model_limits("gpt-4-0613").context_window,
        model_limits("gpt-4-0613").encoding,
        model_limits("gpt-4-0613").source,
    )
    assert 128_000 == model_limits("gpt-4-turbo").context_window
    assert 2 == get_counter("openai/gpt-4").count("two words")
    assert (4_000, True) == (
        model_limits("acme-7b").max_input_tokens,
        model_limits("acme-7b").known,
    )
    assert 7_000 == register_model("acme", context_window=7_000).context_window
    assert 7_000 == model_limits("acme").context_window


def test_registering_keeps_what_it_does_not_state():
    """The encoding stays the known one; a factor of one's own makes it an estimate."""
    kept = register_model("claude-3-opus", context_window=100_000)
    learned = register_model("claude-3-haiku", context_window=100_000, calibration=2.0)

    assert ("claude3", None) == (kept.encoding, kept.calibration)
    assert 8 == get_counter("claude-3-haiku").count("Hello, world!")
    assert ("claude3", 2.0) == (learned.encoding, learned.calibration)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (3, {"context_window": 1}, "name must be a str, not int"),
        ("", {"context_window": 1}, "name must not be empty"),
        ("a", {"context_window": None}, "context_window is required"),
        ("a", {"context_window": 0}, f"context_window must be from 1 to {2**63 - 1}, not 0"),
        ("a", {"context_window": 1.5}, "context_window must be an int, not float"),
        ("a", {"context_window": True}, "context_window must be an int, not bool"),
        ("a", {"context_window": 9, "max_input_tokens": 10},
         "max_input_tokens must be at most the context_window 9, not 10"),
        ("a", {"context_window": 9, "max_output_tokens": 0},
         f"max_output_tokens must be from 1 to {2**63 - 1}, not 0"),
        ("a", {"context_window": 9, "calibration": 0.0},
         "calibration must be from 0.01 to 100, not 0.0"),
        ("a", {"context_window": 9, "calibration": 1.5},
         "calibration needs an encoding to go with"),
        ("a", {"context_window": 9, "encoding": "chars_per_token:0"},
         "encoding: counter 'chars_per_token:0' must have a number"),
        ("a", {"context_window": 9, "encoding": "o200k"}, "did you mean 'o200k_base'?"),
        ("a", {"context_window": 9, "encoding": "gpt-4o"}, "encoding must be one of "),
        ("a", {"context_window": 9, "encoding": "gpt-4o"}, "its encoding is 'o200k_base'"),
        ("a", {"context_window": 9, "encoding": "r50k_base"}, "did you mean 'tiktoken:r50k_base'"),
        ("a", {"context_window": 9, "provider": 3}, "provider must be a str, not int"),
    ],
)  # fmt: skip
def test_refused_registrations(name, arguments, message):
    """A wrong argument is named, with what was found and what is allowed; nothing is changed."""
    with pytest.raises(InvalidArgumentError) as caught:
        register_model(name, **arguments)

    assert message in str(caught.value)
    assert {} == _limits._own


def test_an_encoding_that_cannot_be_had():
    """A tokenizer that is not there is an error at registering, not later."""
    with pytest.raises(InvalidArgumentError, match=r"^encoding: counter 'hf:no/such/file\.json'"):
        register_model("a", context_window=9, encoding="hf:no/such/file.json")


@pytest.mark.parametrize("name", [None, 3, b"gpt-4o", ["gpt-4o"]])
def test_a_name_is_a_str(name):
    """Any other type is refused by name."""
    with pytest.raises(InvalidArgumentError, match="model must be a str"):
        model_limits(name)


def test_limits_are_limits():
    """Limits stand wherever a name does, and cannot be changed."""
    limits = model_limits("gpt-4o")

    assert limits is model_limits(limits)
    with pytest.raises(AttributeError):
        limits.context_window = 1
    assert isinstance(limits, ModelLimits)


def test_threads():
    """Threads that register at once lose nothing."""
    threads = [
        threading.Thread(
            target=lambda i=i: [
                register_model(f"thread{i}-{k}", context_window=k + 1) for k in range(20)
            ]
        )
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 160 == len(_limits._own)


def test_a_long_name_is_cheap():
    """A name of a million boundaries is answered at once."""
    assert not model_limits("a-" * 500_000).known
    assert not model_limits("us." * 300_000).known


def test_the_import_stays_light():
    """Neither the package nor an exact count reads the table."""
    code = (
        "import sys, budgeteer; budgeteer.get_counter('o200k_base').count('tea'); "
        "print('budgeteer._count.limits' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )

    assert "False" == done.stdout.strip()


@pytest.mark.parametrize("encoding", [None, "p50k_edit"])
def test_a_stated_factor_is_heeded_where_nothing_counts(encoding):
    """It multiplies what an unknown model takes."""
    text = "Green tea is mild. " * 50
    plain, dear = (
        get_counter(ModelLimits("acme-x", 99, 99, None, encoding, factor, None, True, "own"))
        for factor in (None, 4.0)
    )

    assert abs(4 * plain.count(text) - dear.count(text)) <= 4
    assert plain.count(text) == get_counter("nobody-knows-1").count(text)


OWN = ModelLimits("acme", 32_000, 32_000, None, "chars_div4", None, None, True, "own")


def test_own_limits_count_by_their_own_encoding():
    """Limits that a caller makes need no registering, and their encoding goes before the name."""
    messages = [{"role": "user", "content": "What is 緑茶? It's green tea." * 9}]
    other = replace(model_limits("gpt-4"), encoding="o200k_base")
    dearer = replace(other, calibration=2.0)
    unnamed = replace(OWN, name="gpt-4o", encoding=None)

    for limits, same in [(OWN, "chars_div4"), (other, "o200k_base"), (unnamed, "gpt-4o")]:
        assert get_counter(limits) == get_counter(same)
        expected = count_messages(messages, counter=same)
        assert expected == count_messages(messages, model=limits)
        assert expected == Layout(limits, [Section("all", messages)]).fit().total_tokens
        assert messages == trim_messages(messages, expected, model=limits)
        with pytest.raises(BudgetExhaustedError, match=f"max_tokens {expected - 1} - "):
            trim_messages(messages, expected - 1, model=limits)
    assert 2 * get_counter("o200k_base").count("tea") == get_counter(dearer).count("tea")
    assert not get_counter(dearer).is_exact


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoding": "nope"}, "the encoding of the model 'acme' must be one of .*, not 'nope'$"),
        ({"encoding": "o200k"}, "not 'o200k'; did you mean 'o200k_base'?"),
        ({"encoding": "gpt-4o"}, "not 'gpt-4o', which is a model: its encoding is 'o200k_base'$"),
        ({"encoding": "text-davinci-003"}, "a model: its encoding is 'tiktoken:p50k_base'$"),
        ({"encoding": "nope", "calibration": 2.0}, "counter must be one of"),
    ],
)
def test_own_limits_without_a_counter(change, message):
    """Limits whose encoding nobody has say so when something is to be counted."""
    limits = replace(OWN, **change)

    with pytest.raises(InvalidArgumentError, match=message):
        get_counter(limits)
    with pytest.raises(InvalidArgumentError, match=message):
        count_messages([], model=limits)
    assert 0 == count_messages([], model=limits, counter="words")


@pytest.mark.parametrize("known", [True, False])
def test_own_limits_without_an_encoding(known):
    """Limits that state no encoding, of a name nobody knows, count as an unknown model."""
    counter = get_counter(replace(OWN, encoding=None, known=known))

    assert (False, 9) == (counter.is_exact, counter.count("Hello, world!"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"guessed_from": 3}, "guessed_from must be a str, not int"),
        ({"name": 3}, "name must be a str, not int"),
        ({"context_window": -1}, "context_window must be from 0 to"),
        ({"context_window": 1.5}, "context_window must be an int, not float"),
        ({"max_input_tokens": None}, "max_input_tokens must be an int, not None"),
        ({"max_output_tokens": True}, "max_output_tokens must be an int, not bool"),
        ({"encoding": 3}, "encoding must be a str, not int"),
        ({"calibration": 0.0}, "calibration must be from 0.01 to 100, not 0.0"),
        ({"calibration": float("nan")}, "calibration must be a number, not NaN"),
        ({"provider": b"x"}, "provider must be a str, not bytes"),
        ({"known": 1}, "known must be a bool, not int"),
        ({"source": None}, "source must be a str, not None"),
    ],
)
def test_own_limits_that_cannot_be(change, message):
    """Limits with a value that cannot be are refused where they are made."""
    with pytest.raises(InvalidArgumentError) as caught:
        replace(OWN, **change)
    assert str(caught.value).startswith(message)
