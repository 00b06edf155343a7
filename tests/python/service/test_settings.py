"""LlmSettings: from arguments, files and the environment."""

import importlib
import logging
import os
import pickle
import sys

import pytest

from budgeteer import BudgeteerError, InvalidArgumentError
from budgeteer._count import limits as _limits
from budgeteer._models import MODELS
from budgeteer.config import ConfigError
from budgeteer.service import LlmSettings
from budgeteer.window import list_models, model_limits

try:
    importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
except ImportError:
    HAS_TOML = False
else:
    HAS_TOML = True

DOCUMENT = {"model": "gpt-4", "max_context_window": 4096, "reserved_output_tokens": 500}
EXPECTED = LlmSettings(model="gpt-4", context_window=4096, max_output_tokens=500)


def read(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return LlmSettings.from_file(path)


def test_a_path_may_be_of_bytes(tmp_path):
    """An entry of a directory that was listed as bytes is a path too."""
    read(tmp_path, "service.yaml", "model: gpt-4")
    (entry,) = os.scandir(os.fsencode(tmp_path))
    assert LlmSettings("gpt-4") == LlmSettings.from_file(entry)


@pytest.mark.skipif(not HAS_TOML, reason="there is no TOML reader")
@pytest.mark.parametrize("window", ["context_window", "max_context_window", "context_window_size"])
@pytest.mark.parametrize("output", ["max_output_tokens", "reserved_output_tokens"])
def test_toml(window, output, tmp_path):
    """A TOML file spells the settings as the document does, or as we do."""
    text = f'other = 1\n[llm]\nmodel = "gpt-4"\n{window} = 4096\n{output} = 500\n'

    assert EXPECTED == read(tmp_path, "service.toml", text)
    assert EXPECTED == read(tmp_path, "service.toml", text.partition("[llm]\n")[2])


@pytest.mark.parametrize("name", ["service.yaml", "service.YML"])
def test_yaml(name, tmp_path):
    """So does a YAML file."""
    text = "llm: {model: gpt-4, context_window_size: 4096, reserved_output_tokens: 500}\nx: 1\n"

    assert EXPECTED == read(tmp_path, name, text)


def test_environment(monkeypatch):
    """So do environment variables; an empty one is not there."""
    variables = {f"BUDGETEER_LLM_{name.upper()}": str(value) for name, value in DOCUMENT.items()}
    assert EXPECTED == LlmSettings.from_env({**variables, "BUDGETEER_LLM_COUNTER": ""})
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert EXPECTED == LlmSettings.from_env()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("llm: {modle: gpt-4}", "llm.modle is not a known key"),
        ("llm: 3", "llm must be a mapping, not int"),
        ("[1]", "the file must be a mapping, not list"),
        ("", "the file must be a mapping, not None"),
        ("llm: {model: gpt-4, context_window: -1}", "llm.context_window must be from 1 to"),
        ("llm: {model: 3}", "llm.model must be a str, not int"),
        (
            "llm: {context_window: 9, context_window_size: 9}",
            "llm.context_window and llm.context_window_size are the same; give one of them",
        ),
        ("llm: {max_output_tokens: 9}", "llm: model or context_window is required"),
        ("llm: {model: llama-3-70b-nope, counter: nope}", "llm: counter must be one of"),
        ("llm: {model: [", "line 1"),
        (b"\xff", "line 1: not UTF-8"),
    ],
)
def test_bad_files(text, message, tmp_path):
    """A file that says what it must not is a ConfigError that names file and key."""
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, "service.yaml", text)
    assert str(caught.value).startswith(f"{tmp_path / 'service.yaml'}: {message}")


def test_unreadable_files(tmp_path):
    """A file that is not there, or of a kind that nobody knows, is a ConfigError."""
    with pytest.raises(ConfigError, match=r"cannot read .*nope.toml"):
        LlmSettings.from_file(tmp_path / "nope.toml")
    with pytest.raises(ConfigError, match=r"must end with .toml, .yaml or .yml, not '.ini'"):
        read(tmp_path, "service.ini", "")
    with pytest.raises(InvalidArgumentError, match="path must be a str or a path, not int"):
        LlmSettings.from_file(3)


@pytest.mark.skipif(not HAS_TOML, reason="there is no TOML reader")
def test_bad_toml(tmp_path):
    """What is no TOML is a ConfigError too."""
    with pytest.raises(ConfigError, match=r"service.toml: .*line 2"):
        read(tmp_path, "service.toml", "\nmodel = ?")


def test_without_a_toml_reader(tmp_path, monkeypatch):
    """Without tomllib and tomli the error says what to install."""
    for name in ("tomllib", "tomli"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=r"needs Python 3.11 or tomli: pip install"):
        read(tmp_path, "service.toml", "model = 'gpt-4'")


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "BUDGETEER_LLM_MODEL or BUDGETEER_LLM_CONTEXT_WINDOW is required"),
        (
            {"BUDGETEER_LLM_CONTEXT_WINDOW": "4k"},
            "BUDGETEER_LLM_CONTEXT_WINDOW must be a whole number, not '4k'",
        ),
        ({"BUDGETEER_LLM_CONTEXT_WINDOW": "0"}, "BUDGETEER_LLM_CONTEXT_WINDOW must be from 1"),
        ({"BUDGETEER_LLM_CONTEXT_WINDOW": "-9"}, "BUDGETEER_LLM_CONTEXT_WINDOW must be from 1"),
        (
            {"BUDGETEER_LLM_CONTEXT_WINDOW": "9", "BUDGETEER_LLM_MAX_CONTEXT_WINDOW": "9"},
            "BUDGETEER_LLM_CONTEXT_WINDOW and BUDGETEER_LLM_MAX_CONTEXT_WINDOW are the same",
        ),
        (
            {"BUDGETEER_LLM_COUNTER": "nope", "BUDGETEER_LLM_MODEL": "gpt-4o"},
            "BUDGETEER_LLM_COUNTER",
        ),
        ([], "environ must be a mapping, not list"),
    ],
)
def test_bad_environment(variables, message):
    """A variable that is not what it must be is named."""
    with pytest.raises(InvalidArgumentError) as caught:
        LlmSettings.from_env(variables)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "model or context_window is required"),
        ({"model": ""}, "model must not be empty"),
        ({"model": 3}, "model must be a str, not int"),
        ({"model": "gpt-4", "context_window": 0}, "context_window must be from 1 to"),
        ({"model": "gpt-4", "max_output_tokens": -1}, "max_output_tokens must be from 0 to"),
        ({"model": "gpt-4", "counter": "nope"}, "counter must be one of"),
    ],
)
def test_bad_settings(options, message):
    """A wrong setting is named when the settings are made."""
    with pytest.raises(BudgeteerError) as caught:
        LlmSettings(**options)
    assert str(caught.value).startswith(message)


def test_defaults():
    """The answer has the model's own limit, at most a quarter of the window."""
    assert 16_384 == LlmSettings(model="gpt-4o").limits.max_output_tokens
    assert 2_048 == LlmSettings(model="gpt-4").limits.max_output_tokens
    assert 25 == LlmSettings(context_window=100).limits.max_output_tokens
    assert "o200k_base" == LlmSettings(context_window=100).limits.counter.name


def test_a_model_whose_tokenizer_is_not_native(caplog, monkeypatch):
    """Such a model counts by an estimate that errs high, and is warned of once."""
    monkeypatch.setattr(_limits, "_warned", {})
    with caplog.at_level(logging.WARNING, "budgeteer"):
        counter = LlmSettings("kimi-k3").limits.counter
        assert counter == LlmSettings("kimi-k3").limits.counter

    assert (False, 5) == (counter.is_exact, counter.count("Hello, world!"))
    assert ["kimi-k3"] == [record.model for record in caplog.records]
    assert "words" == LlmSettings("kimi-k3", counter="words").limits.counter.name


@pytest.mark.parametrize(
    "model", [*(limits.name for limits in list_models()), *MODELS, "my-gpt-4o-x", "nobody-knows"]
)
def test_every_model_has_settings(model):
    """Knowing less never works better: a name that is known works as an unknown one does."""
    limits = LlmSettings(model).limits

    assert limits.max_input_tokens > 0
    assert limits.counter.count("Hello, world!") >= 3


def test_an_unknown_model():
    """A name that nobody knows counts as an estimate, within the window that is given."""
    settings = LlmSettings(model="our-deployment", context_window=32_000)

    assert (32_000, 32_000) == settings.limits[1:3]
    assert not settings.limits.counter.is_exact
    assert settings.limits.counter.count("Hello, world!") == 9


def test_a_given_window_and_the_limit_of_the_input():
    """The input's own limit stays below the model's window, and goes with it."""
    limits = model_limits("gpt-5")
    assert 272_000 == limits.max_input_tokens
    for window, expected in ((1_000, 1_000), (300_000, 272_000), (500_000, 500_000)):
        settings = LlmSettings(model=limits, context_window=window)
        assert expected == settings.limits.max_input_tokens


def test_settings_are_values():
    """Equal settings are equal, and survive pickling."""
    assert EXPECTED == pickle.loads(pickle.dumps(EXPECTED))
