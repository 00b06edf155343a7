"""Which model a name means."""

import logging
import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from budgeteer import (
    InvalidArgumentError,
    Packer,
    get_counter,
    trim_messages,
)
from budgeteer._count import limits as _limits
from budgeteer.window import (
    count_messages,
    count_tools,
    model_limits,
    negotiate,
    register_model,
)

pytestmark = pytest.mark.usefixtures("registry")


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
        f"model {name!r} is not known: unless given, its context window is taken to be {window}, "
        f"as that of {found!r} in its name; " in record.getMessage()
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
    ("name", "encoding", "factor"),
    [
        *(("qwen3:8b", "qwen2", None), ("Qwen/Qwen2.5-7B-Instruct", "qwen2", None)),
        *(("Qwen/Qwen3-8B", "qwen2", None), ("qwen3.6:27b", "qwen3.5", None)),
        *(("gemma-4-27b", "gemma4", None), ("deepseek-v4_x", "deepseek", None)),
        *(("gpt-oss-7b", "o200k_harmony", None), ("mistralai/Mistral-Nemo-2407", "tekken", None)),
        # Believed: tuned by others, newer, or of a vocabulary that was not compared.
        *(("my-qwen3-8b", "qwen2", 1.0), ("qwen3.9:9b", "qwen3.5", 1.0)),
        *(("ministral:8b", "tekken", 1.0), ("devstral-2", "tekken", 1.0)),
        *(("deepseek-r9:14b", "deepseek", 1.0), ("x.deepseek_v9", "deepseek", 1.0)),
        *(("gemini-9-ultra", "gemma4", 1.0), ("mistral-nemotron-x", "tekken", 1.0)),
        # A relative's.
        *(("us.meta.llama3-2-3b-instruct-v1:0", "cl100k_base", 1.0), ("glm-5.9", "glm4", 1.05)),
        *(
            ("mistralai/Mistral-7B-Instruct-v0.3", "cl100k_base", 2.05),
            ("phi-3", *("cl100k_base", 1.85)),
        ),
        *(("moonshotai/Kimi-K2-Instruct", "cl100k_base", 1.25), ("gemma2:9b", "glm4", 1.6)),
        *(("codellama:13b", "cl100k_base", 1.85), ("zai-org/glm-9", "glm4", 1.05)),
        *(("qwen:7b", "cl100k_base", 1.75), ("gemma3:1b", "gemma4", 1.0)),
        # Of two families, of a vocabulary that was not measured, or a provider's name.
        *(("my-llama3-qwen2", "cl100k_base", 2.05), ("chatglm3-6b", "cl100k_base", 2.05)),
        *(("deepseek-coder-33b", "cl100k_base", 2.05), ("my_llama-5", "cl100k_base", 2.05)),
        *(("mistralai/other-3", "cl100k_base", 2.05), ("notllama-3", "cl100k_base", 2.05)),
    ],
)
def test_families(name, encoding, factor, caplog):
    """A name that is not known counts by its family, with the default window and one warning."""
    with caplog.at_level(logging.WARNING, "budgeteer"):
        counter, limits = get_counter(name), model_limits(name)

    assert (32_768, False, None, encoding, factor) == (
        limits.context_window, limits.known, limits.guessed_from,
        limits.encoding, limits.calibration,
    )  # fmt: skip
    assert counter == get_counter(limits)
    assert (factor is None) == counter.is_exact
    assert factor is None or f"estimate='{encoding} * {factor:g}'" in repr(counter)
    assert [name] == [record.model for record in caplog.records]
    assert factor == register_model(name, context_window=9).calibration


@pytest.mark.parametrize(
    ("name", "encoding", "factor"),
    [
        ("deepseek-r1-0528", "deepseek", None),
        ("deepseek-r1-distill-qwen-32b", "qwen2", 1.0),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "cl100k_base", 1.0),
        ("deepseek-r1:14b", "qwen2", 1.0),
        ("deepseek-r1:70b", "cl100k_base", 1.0),
        ("deepseek-r1:8b", "cl100k_base", 1.75),
        ("deepseek-r1:671b", "deepseek", None),
        ("x-deepseek-r1-distill-qwen-7b", "qwen2", 1.0),
        ("glm-4.7-flash", "glm4", 1.05),
        ("phi-4-mini-instruct", "o200k_base", 1.0),
        ("qwen3-32b-awq", "qwen2", None),
    ],
)
def test_a_longer_family_goes_before_a_known_name(name, encoding, factor):
    """A distilled or smaller model has the known one's window, and its own vocabulary."""
    limits = model_limits(name)

    assert (encoding, factor) == (limits.encoding, limits.calibration)
    assert limits.source.startswith("litellm")
    assert get_counter(name).is_exact == (factor is None)


@pytest.mark.parametrize("name", ["acme", "qwen4:8b", "acme/large", "acme-7b", "gpt4o", "words"])
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
    assert 9 == counter.count("Hello, world!")
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
                "'file:PATH'"
            )
        else:
            words = f"; did you mean {remedy!r}?"
        assert str(caught.value).endswith(f", not {name!r}{words}")


@pytest.mark.parametrize("name", ["claude-2", "x/grok-9", "grok-3", "My-Claude-9"])
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
    assert "file:PATH" not in record.getMessage() + str(caught.value)


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
            "strict refuses the counter 'llama3.2:3b', which is an estimate; 'file:PATH'",
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
