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
from hypothesis import assume, given
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
from budgeteer.window import (
    ModelLimits,
    count_messages,
    count_tools,
    list_models,
    load_models,
    model_limits,
    negotiate,
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


@pytest.fixture(autouse=True)
def _registry(monkeypatch):
    """Each test has a registry of its own, and no names that were warned of."""
    monkeypatch.setattr(_limits, "_own", {})
    monkeypatch.setattr(_limits, "_warned", {})
    monkeypatch.delenv(_limits.VARIABLE, raising=False)


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

    assert (32_768, 32_768, None, "o200k_base", 1.9, False, None) == (
        limits.context_window, limits.max_input_tokens, limits.max_output_tokens,
        limits.encoding, limits.calibration, limits.known, limits.guessed_from,
    )  # fmt: skip
    [record] = caplog.records
    assert "budgeteer" == record.name
    assert (
        "model 'nobody-knows-this' is not known: its context window is taken to be 32768; "
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


@pytest.mark.parametrize(
    ("name", "found", "window"),
    [
        ("azure/my-gpt-4o-deployment", "gpt-4o", 128_000),
        ("my-gpt-4o-deployment", "gpt-4o", 128_000),
        ("MY_GPT-4O_x", "gpt-4o", 128_000),
        ("acme/my-gpt-4", "gpt-4", 8192),
        ("acme/gpt-4", None, 8192),  # all that is behind a provider
        ("GPT-4", None, 8192),
        ("somewhere/openai/gpt-4.1-mini@eu", "gpt-4.1-mini", 1_047_576),
        ("eu.gpt-4.1", None, 1_047_576),  # behind a known prefix
        ("xx.gpt-4.1", "gpt-4.1", 1_047_576),
        ("gpt-4o-or/gpt-4-turbo", None, 128_000),  # a known beginning goes before
        ("x-gpt-4-gpt-4.1-mini-x", "gpt-4.1-mini", 1_047_576),  # the longest
        ("x-o1-o3", "o3", 200_000),  # the last
        ("accounts/fireworks/models/llama-v3p1-70b-instruct", "llama-v3p1", 128_000),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1", 128_000),
        ("Qwen/Qwen3-32B", None, 40_960),
        ("acme/x-Qwen3-32B", "qwen3-32b", 40_960),
        ("projects/p/claude-sonnet-4@20250514", "claude-sonnet-4", 200_000),
    ],
)
def test_the_longest_known_part(name, found, window, caplog):
    """An unknown name has the limits of the longest known part, marked, and one warning."""
    with caplog.at_level(logging.WARNING, "budgeteer"):
        [limits] = {model_limits(name) for _ in range(2)}
        counter = get_counter(limits)

    assert (name, window, found) == (limits.name, limits.context_window, limits.guessed_from)
    if found is None:
        assert limits.known
        return
    assert (False, False) == (limits.known, counter.is_exact)
    assert counter == get_counter(name)
    [record] = caplog.records
    assert (
        f"model {name!r} is not known: its context window is taken to be {window}, as that of "
        f"{found!r} in its name; " in record.getMessage()
    )
    assert (name, window, found) == (record.model, record.context_window, record.guessed_from)
    assert get_counter(found).count("Hello, world!") == counter.count("Hello, world!")


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("openrouter/anthropic/claude-sonnet-4", "claude-sonnet-4"),
        ("bedrock/us.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet"),
        ("vertex_ai/gemini-2.5-pro@001", "gemini-2.5-pro"),
        ("ft:gpt-4o-mini-2024-07-18:org::id", "gpt-4o-mini"),
        ("llama3.1", "llama3.1:70b"),
        ("GPT-4O", "gpt-4o"),
        ("GPT-4o-mini", "gpt-4o-mini"),
        ("gpt-4-Turbo-2024", "gpt-4-turbo"),
        ("OpenAI/GPT-4.1", "gpt-4.1"),
        ("CLAUDE-OPUS-4-1", "claude-opus-4-1"),
        ("helicone/gpt-4o", "gpt-4o"),
        ("my-company/gpt-4o", "gpt-4o"),
        ("a/b/GPT-4O", "gpt-4o"),
        ("gpt-oss:20b", "gpt-oss-20b"),
        ("gpt-oss:120b", "gpt-oss-120b"),
    ],
)
def test_known_prefixes_are_no_guess(name, same):
    """Behind a prefix, with a version or in capitals a name is known, and counts as itself."""
    assert get_counter(name).is_exact == get_counter(same).is_exact
    limits, expected = model_limits(name), model_limits(same)

    assert expected == replace(limits, name=same)
    assert limits.known


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        *(("qwen3:8b", 1.65), ("Qwen/Qwen2.5-7B-Instruct", 1.65), ("qwen2.5-coder:7b", 1.65)),
        *(("mistralai/Mistral-7B-Instruct-v0.3", 1.85), ("mixtral:8x7b", 1.85)),
        *(("ministral:8b", 1.65), ("mistralai/Devstral-3-24B", 1.65)),
        *(("moonshotai/Kimi-K2-Instruct", 1.6), ("gemma2:9b", 1.7), ("zai-org/glm-9", 1.4)),
        *(("us.meta.llama3-2-3b-instruct-v1:0", 1.4), ("my_llama-5", 1.4)),
        *(("deepseek-r9:14b", 1.45), ("x.deepseek_v9", 1.45)),
        # A vocabulary of their own, which was not measured, or a provider's name.
        *(("codellama:13b", 1.9), ("Llama-2-7b", 1.9), ("llama2:7b", 1.9), ("chatglm3-6b", 1.9)),
        *(("deepseek-coder-33b", 1.9), ("mistralai/other-3", 1.9), ("notllama-3", 1.9)),
    ],
)
def test_families(name, factor, caplog):
    """A name that is not known counts by its family, with the default window and one warning."""
    with caplog.at_level(logging.WARNING, "budgeteer"):
        counter, limits = get_counter(name), model_limits(name)

    assert (32_768, False, None, "o200k_base", factor) == (
        limits.context_window, limits.known, limits.guessed_from,
        limits.encoding, limits.calibration,
    )  # fmt: skip
    assert counter == get_counter(limits)
    assert f"estimate='o200k_base * {factor:g}'" in repr(counter)
    assert [name] == [record.model for record in caplog.records]
    assert factor == register_model(name, context_window=9).calibration


def test_deepseek_r1_is_known_by_its_beginning():
    """A known beginning goes before the family."""
    assert "o200k_base * 1.45" in repr(get_counter("deepseek-r1:14b"))
    assert model_limits("deepseek-r1:14b").known


@pytest.mark.parametrize("name", ["acme", "qwen3:8b", "acme/large", "acme-7b", "gpt4o", "words"])
def test_an_argument_named_model_takes_every_name(name, caplog):
    """Whatever a model is called, its messages and tools are counted, with one warning."""
    messages = [{"role": "user", "content": "Is green tea mild?"}]
    with caplog.at_level(logging.WARNING, "budgeteer"):
        total = count_messages(messages, model=name)
        assert total == count_messages(messages, model=model_limits(name))
        assert messages == trim_messages(messages, total, model=name)
        assert 0 < count_tools([{"name": "now"}], model=name)

    assert [name] == [record.model for record in caplog.records]
    assert not total.is_exact


@pytest.mark.parametrize(
    "name", ["acme-7b", "acme/large", "yi:34b", "phi_9", "a.1", "gpt-j-neo-6b"]
)
def test_a_counter_of_an_unknown_model(name, caplog):
    """A name with a provider, or with a sign and a digit, is a model's."""
    with caplog.at_level(logging.WARNING, "budgeteer"):
        counter = get_counter(name)
        assert counter == Packer(9, counter=name)._prepared.counter
        negotiate(model="gpt-4o", messages=[], max_output_tokens=9, counter=name)

    assert counter == get_counter(model_limits(name))
    assert 8 == counter.count("Hello, world!")
    assert [(name, "model_estimated")] == [(it.model, it.code) for it in caplog.records]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        *(("acme", None), ("acme-large", None), ("/", None), ("/x", None), ("7", None)),
        *(("gpt4o", "gpt-4o"), ("gtp-4o", "gpt-4o"), ("o200k", "o200k_base")),
        *(("chars_div_4", "chars_div4"), ("cl100k-base", "cl100k_base")),
    ],
)
def test_no_counter_of_a_word(name, remedy):
    """A word that nobody knows, and a near miss, are errors that name what there is to do."""
    for counted in (get_counter, lambda name: Packer(9, counter=name)):
        with pytest.raises(InvalidArgumentError, match=r"^counter must be one of ") as caught:
            counted(name)
        if remedy is None:
            words = (
                "; a model of that name needs register_model, load_models, BUDGETEER_MODELS or "
                "'hf:PATH'"
            )
        else:
            words = f"; did you mean {remedy!r}?"
        assert str(caught.value).endswith(f", not {name!r}{words}")


@pytest.mark.parametrize("name", ["claude-sonnet-4-5", "x/gemini-9", "grok-3", "My-Claude-9"])
def test_no_public_tokenizer(name, caplog):
    """Where no tokenizer is published, the remedy is a factor of one's own."""
    words = "register_model(..., calibration=...) changes the factor"
    with caplog.at_level(logging.WARNING, "budgeteer"):
        get_counter(name)
    with pytest.raises(InvalidArgumentError) as caught:
        get_counter(name, strict=True)

    [record] = caplog.records
    assert words in record.getMessage()
    assert words in str(caught.value)
    assert "hf:PATH" not in record.getMessage() + str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "notgpt-4o2",
            "gpt-4o2",
            "xo1",
            "gpt-4.2",
            "gpt-4x",
            "gpt",
            "",
            "-",
            "llama",
            "gpt-4" * 9,
        ),
        *("gpt 4o", "my gpt-4o", "gpt-4.1.2", "claude", "x.y", "o1x-xo3"),
    ],
)
def test_no_part_is_inside_a_word(name):
    """What merely contains a known name, or starts alike, is unknown."""
    limits = model_limits(name)

    assert (False, None, 32_768) == (limits.known, limits.guessed_from, limits.context_window)


@given(st.from_regex(r"([a-z0-9]{0,3}[-:@/_.]){0,4}", fullmatch=True), st.sampled_from(["", "-x"]))
def test_any_prefix_leads_to_the_model(prefix, rest):
    """Whatever parts come before a name that no longer part covers, it is found."""
    # A known beginning goes before any part.
    assume(not any(model_limits(part).known for part in re.split("[-:@/_.]", prefix) if part))
    limits = model_limits(f"{prefix}gpt-4.1-mini{rest}")

    assert 1_047_576 == limits.context_window
    assert limits.known == (limits.guessed_from is None)


def test_strict_refuses_a_guess(caplog):
    """strict raises instead of guessing, with the remedy, and logs nothing."""
    with caplog.at_level(logging.WARNING, "budgeteer"):
        for name, words in [
            ("nobody-knows", "model 'nobody-knows' is not known; register_model states"),
            ("my-gpt-4o-x", "model 'my-gpt-4o-x' is not known, only 'gpt-4o' in it; register_mod"),
            ("gpt-5.22", "did you mean 'gpt-5.2'?"),
        ]:
            with pytest.raises(InvalidArgumentError) as caught:
                model_limits(name, strict=True)
            assert words in str(caught.value)
    assert [] == caplog.records
    with pytest.raises(InvalidArgumentError, match="not known"):
        model_limits(model_limits("nobody-knows"), strict=True)
    assert model_limits("gpt-4o", strict=True) == model_limits("gpt-4o")
    assert model_limits("llama3.2:3b", strict=True).known
    with pytest.raises(InvalidArgumentError, match="strict must be a bool, not int"):
        model_limits("gpt-4o", strict=1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "llama3.2:3b",
            "strict refuses the counter 'llama3.2:3b', which is an estimate; 'hf:PATH'",
        ),
        ("my-gpt-4o-x", "strict refuses the counter 'my-gpt-4o-x', which is an estimate"),
        ("text-davinci-003", "'tiktoken:p50k_base' counts it exactly"),
        ("chars_div4", "name an encoding such as 'o200k_base'"),
        (len, "strict refuses the counter 'len', which is an estimate"),
        ("nobody-knows", "counter must be one of"),
    ],
)
def test_a_strict_counter_is_exact(name, words, caplog):
    """get_counter with strict answers an exact counter or raises, and logs nothing."""
    with caplog.at_level(logging.WARNING, "budgeteer"):
        with pytest.raises(InvalidArgumentError) as caught:
            get_counter(name, strict=True)
        if name != "nobody-knows":
            with pytest.raises(InvalidArgumentError):
                get_counter(get_counter(name), strict=True)

    assert words in str(caught.value)
    assert get_counter("gpt-4o", strict=True) == get_counter("o200k_base", strict=True)
    with pytest.raises(InvalidArgumentError, match="strict must be a bool, not str"):
        get_counter("gpt-4o", strict="yes")


def test_names_warned_of_are_bounded():
    """However many names are unknown, no more than a thousand are remembered."""
    for i in range(2_500):
        model_limits(f"unknown{i}")

    assert len(_limits._warned) <= 1_000


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("openai/gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-11-20", "gpt-4o"),
        ("openrouter/openai/gpt-4o:free", "gpt-4o"),
        ("azure/gpt-35-turbo-16k", "gpt-3.5-turbo"),
        ("ft:gpt-4o-mini-2024-07-18:acme::1", "gpt-4o-mini"),
        ("bedrock/us.anthropic.claude-3-opus-20240229-v1:0", "claude-3-opus"),
        ("vertex_ai/claude-3-5-sonnet@20240620", "claude-3-5-sonnet"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("meta.llama3-1-70b-instruct-v1:0", "llama3.1:70b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "Llama-3.3-70B-Instruct"),
        ("llama3.2:3b-instruct-q4_K_M", "llama3.2:3b"),
        ("amazon.nova-pro-v1:0", "nova-pro-v1"),
        ("gpt-4-1106-preview", "gpt-4-turbo"),
        ("gpt-4-turbo/x", "gpt-4-turbo"),
    ],
)
def test_a_name_is_found(name, same):
    """A name is found by alias, behind prefixes, and by the longest beginning."""
    found, expected = model_limits(name), model_limits(same)

    assert name == found.name
    assert expected.to_dict() == {**found.to_dict(), "name": same}


def test_gpt_4_does_not_answer_for_gpt_4_1():
    """Seed 001's gpt-4 has 8192 tokens, gpt-4.1 a million: neither answers for the other."""
    assert 8192 == model_limits("gpt-4-0613").context_window
    assert 1_047_576 == model_limits("gpt-4.1-2025-04-14").context_window
    assert 32768 == model_limits("gpt-4-32k-0613").context_window


def test_the_three_numbers_are_apart():
    """Where the input has a limit of its own, the window is not it."""
    gpt_5, qwen = model_limits("gpt-5"), model_limits("qwen3-max")

    assert (400_000, 272_000, 128_000) == (
        gpt_5.context_window, gpt_5.max_input_tokens, gpt_5.max_output_tokens,
    )  # fmt: skip
    assert (262_144, 258_048) == (qwen.context_window, qwen.max_input_tokens)


@pytest.mark.parametrize("name", SHIPPED["models"])
def test_every_entry_is_sound(name):
    """Limits are within the window; the encoding is tiktoken's, or an estimate says so."""
    limits = model_limits(name)

    assert 0 < limits.max_input_tokens <= limits.context_window
    assert limits.max_output_tokens is None or limits.max_output_tokens < limits.context_window
    known = _models.encoding_of(name)
    if known is not None:
        assert (known, None) == (limits.encoding, limits.calibration)
    else:
        assert "o200k_base" == limits.encoding
        assert limits.calibration >= 1.0
        assert any(
            text.startswith(f"{limits.calibration} tokens")
            for text in SHIPPED["calibrations"].values()
        )
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
    for family in ("llama", "qwen", "deepseek", "mistral", "other"):
        assert "measured 2026-" in SHIPPED["calibrations"][family]


def test_an_unknown_model_counts_no_lower_than_a_known_one():
    """Knowing less never packs more: no model of today has a larger factor than an unknown one."""
    factors = [row["calibration"] or 1.0 for row in SHIPPED["models"].values()]

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
    exact = get_counter("o200k_base").count(text)
    claude = get_counter("anthropic/claude-3-opus")

    assert get_counter("openai/gpt-4o") == get_counter("gpt-4o")
    assert (False, "anthropic/claude-3-opus") == (claude.is_exact, claude.name)
    assert -(-exact * 118 // 100) == claude.count(text)
    assert get_counter("claude-opus-5").count(text) > claude.count(text)
    assert pickle.loads(pickle.dumps(claude)) == claude
    assert 0 == claude.count("")


def test_a_packing_by_a_calibrated_counter():
    """A packer takes it, the bound holds, and the packing says that it is estimated."""
    packing = Packer(12, counter="claude-sonnet-4-5").pack("tea", ["Green tea."] * 2 + ["Rye."])

    assert not packing.is_exact
    assert get_counter("claude-sonnet-4-5").count(packing.text) == packing.total_tokens <= 12


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        *(("llama3.2:3b", 1.4), ("qwen2.5:7b", 1.65), ("deepseek-chat", 1.45)),
        *(("mistral-large-latest", 1.65), ("mistral:7b", 1.85), ("grok-3", 1.9)),
        *(("gpt2", 1.9), ("text-davinci-003", 1.9)),
    ],
)
def test_a_tokenizer_that_is_not_native(name, factor, caplog):
    """Such a model counts by a factor of o200k_base, says so, and is warned of once."""
    text = "Green tea is mild, and black tea is strong. " * 20
    exact = get_counter("o200k_base").count(text)
    with caplog.at_level(logging.WARNING, "budgeteer"):
        counter = get_counter(name)
        assert counter == get_counter(name)

    assert math.ceil(exact * factor) == counter.count(text)
    assert (
        f"TokenCounter(name={name!r}, is_exact=False, estimate='o200k_base * {factor}')"
        == repr(counter)
    )
    assert counter == pickle.loads(pickle.dumps(counter))
    [record] = caplog.records
    remedy = "'hf:PATH' counts exactly with its tokenizer.json, where that is published"
    if name == "grok-3":
        remedy = (
            "its tokenizer is not published: register_model(..., calibration=...) changes the "
            "factor"
        )
    if name in MODEL_TO_ENCODING:
        remedy = f"'tiktoken:{MODEL_TO_ENCODING[name]}' counts it exactly"
    assert (
        f"model {name!r} counts by an estimate: the tokens of o200k_base times {factor}; {remedy}"
        == record.getMessage()
    )
    assert (name, "o200k_base", factor) == (record.model, record.encoding, record.calibration)


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
        assert ("o200k_base", 1.9) == (own.encoding, own.calibration)
        assert 8 == get_counter("acme-7b").count("Hello, world!")

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

    assert ("o200k_base", 1.18) == (kept.encoding, kept.calibration)
    assert 8 == get_counter("claude-3-haiku").count("Hello, world!")
    assert ("o200k_base", 2.0) == (learned.encoding, learned.calibration)


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


@pytest.fixture
def models_file(tmp_path):
    """Write a file of models."""

    def models_file(content):
        path = tmp_path / "mine.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return models_file


def test_a_file_of_models(models_file):
    """load_models registers what a file states, all of it."""
    path = models_file(
        {"models": {"acme-1": {"context_window": 10}, "gpt-4": {"context_window": 20}}}
    )

    assert ["acme-1", "gpt-4"] == [limits.name for limits in load_models(path)]
    assert (20, "cl100k_base", "mine.json") == (
        model_limits("gpt-4").context_window,
        model_limits("gpt-4").encoding,
        model_limits("gpt-4").source,
    )
    assert "acme-1" in {limits.name for limits in list_models()}


def test_the_file_of_the_environment(models_file, monkeypatch):
    """BUDGETEER_MODELS names a file that goes over the table and under what is registered."""
    path = models_file({"models": {"gpt-4": {"context_window": 20, "encoding": "words"}}})
    monkeypatch.setenv("BUDGETEER_MODELS", str(path))

    assert 20 == model_limits("gpt-4").context_window
    assert 1 == get_counter("gpt-4").count("internationalization")
    register_model("gpt-4", context_window=30)
    assert 30 == model_limits("gpt-4").context_window


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "it must be an object with an object 'models', or litellm's"),
        ('{"models": []}', "it must be an object with an object 'models', or litellm's"),
        ('{"a": {"context_window": 3}}', "it must be an object with an object 'models', or"),
        ("{", "line 1"),
        ('{"models": {"a": 3}}', "models['a'] must be an object, not int"),
        ('{"models": {"a": {}}}', "models['a'].context_window is required"),
        ('{"models": {"a": {"context_window": "x"}}}',
         "models['a'].context_window must be an int, not str"),
        ('{"models": {"a": {"context_windo": 3}}}',
         "models['a'] has the unknown key 'context_windo'; did you mean 'context_window'?"),
        ('{"models": {"b": {"context_window": 3}, "a": {"context_window": 0}}}', "not 0"),
        ('{"a": {"max_input_tokens": "8192", "max_output_tokens": 100}}',
         "['a'].context_window must be an int, not str"),
    ],
)  # fmt: skip
def test_refused_files(models_file, monkeypatch, content, message):
    """A wrong file registers nothing and names itself and the key, whoever reads it."""
    path = models_file(content)
    with pytest.raises(InvalidArgumentError) as caught:
        load_models(path)

    assert str(caught.value).startswith(f"'{path}': ")
    assert message in str(caught.value)
    assert {} == _limits._own
    monkeypatch.setenv("BUDGETEER_MODELS", str(path))
    with pytest.raises(InvalidArgumentError, match=r"^BUDGETEER_MODELS: "):
        model_limits("gpt-4")
    assert get_counter("o200k_base").is_exact  # needs no table


LITELLM = {
    "sample_spec": {"max_tokens": "words", "max_input_tokens": "words", "mode": "one of"},
    "acme/big": {"max_input_tokens": 9_000, "max_output_tokens": 900, "mode": "chat"},
    "acme-old": {"max_tokens": 700, "litellm_provider": "acme", "x": {"y": 1}},
    "acme-embed": {"max_input_tokens": 500, "mode": "embedding", "max_output_tokens": 0},
    "acme-picture": {"max_input_tokens": 500, "mode": "image_generation"},
    "acme-nothing": {"mode": "chat", "max_input_tokens": 0},
    "acme-answer": {"mode": "chat", "max_tokens": 5, "max_output_tokens": 5},
    "gpt-5-of-mine": {
        "max_input_tokens": 272_000, "max_output_tokens": 128_000, "litellm_provider": "openai",
    },
    "acme-text": {"max_tokens": "4096", "max_output_tokens": None},
    "generalizations": {"a": 1},
}  # fmt: skip
READ = {
    "acme/big": (9_000, 9_000, 900, "o200k_base", 1.9),
    "acme-old": (700, 700, None, "o200k_base", 1.9),
    "acme-embed": (500, 500, None, "o200k_base", 1.9),
    "gpt-5-of-mine": (400_000, 272_000, 128_000, "o200k_base", None),
    "acme-text": (4_096, 4_096, None, "o200k_base", 1.9),
}


def test_a_file_of_litellm(models_file):
    """load_models reads litellm's form: windows, answers, text only, without its sample."""
    read = load_models(models_file(LITELLM))

    assert READ == {
        limits.name: (
            limits.context_window, limits.max_input_tokens, limits.max_output_tokens,
            limits.encoding, limits.calibration,
        )
        for limits in read
    }  # fmt: skip
    assert {"mine.json"} == {limits.source for limits in read}
    assert 9_000 == model_limits("acme/big:free").context_window
    assert "acme/big" == model_limits("x/acme/big").guessed_from


@pytest.mark.parametrize("version", [None, "9.8.7"])
def test_the_installed_litellm(tmp_path, monkeypatch, version):
    """load_models("litellm") reads the file of the installed package, which it does not import."""
    package = tmp_path / "litellm"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "model_prices_and_context_window_backup.json").write_text(json.dumps(LITELLM))
    if version is not None:
        info = tmp_path / f"litellm-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: litellm\nVersion: {version}\n"
        )
    monkeypatch.syspath_prepend(tmp_path)

    assert [*READ] == [limits.name for limits in load_models("litellm")]
    expected = "litellm" if version is None else f"litellm {version}"
    assert expected == model_limits("acme/big").source
    assert "litellm" not in sys.modules

    monkeypatch.setattr(_limits, "_own", {})
    monkeypatch.setenv("BUDGETEER_MODELS", "litellm")
    _limits._environment_file.cache_clear()
    assert 9_000 == model_limits("acme/big").context_window
    _limits._environment_file.cache_clear()


def test_litellm_is_not_installed(monkeypatch):
    """Without litellm the error says how to install it, and which file to give instead."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InvalidArgumentError, match="pip install litellm, or give the path"):
        load_models("litellm")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"max_input_tokens": "many"},
         f"['acme'].max_input_tokens must be a whole number from 0 to {2**53}, not 'many'"),
        ({"max_input_tokens": -9}, "['acme'].max_input_tokens must be a whole number"),
        ({"max_input_tokens": True}, "['acme'].max_input_tokens must be a whole number"),
        ({"max_tokens": 9.5},
         f"['acme'].max_tokens must be a whole number from 0 to {2**53}, not 9.5"),
        ({"max_tokens": 2**53 + 1}, "['acme'].max_tokens must be a whole number"),
        ({"max_tokens": "9" * 5_000}, "['acme'].max_tokens must be a whole number"),
        ({"max_input_tokens": 9, "max_output_tokens": "3.0"},
         "['acme'].max_output_tokens must be a whole number"),
        ({"max_tokens": 9, "litellm_provider": 3},
         "['acme'].litellm_provider must be a str, not int"),
    ],
)  # fmt: skip
def test_refused_files_of_litellm(models_file, entry, message):
    """A wrong entry names itself and its key, and nothing is registered."""
    path = models_file({"good": {"max_tokens": 7}, "acme": entry})
    with pytest.raises(InvalidArgumentError) as caught:
        load_models(path)

    assert f"'{path}': {message}" in str(caught.value)
    assert {} == _limits._own


@pytest.mark.parametrize("path", [None, 3, "no/such/file.json", "nul\0", "."])
def test_no_file(path):
    """What is no readable file is an InvalidArgumentError."""
    with pytest.raises(InvalidArgumentError):
        load_models(path)


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
        ({"encoding": "nope"}, "counter 'acme' has the encoding 'nope', which is not native"),
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

    assert (False, 8) == (counter.is_exact, counter.count("Hello, world!"))


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
