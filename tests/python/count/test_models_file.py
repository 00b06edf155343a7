"""Files of models, of the own form and of litellm's."""

import json
import sys
from importlib.metadata import PackageNotFoundError

import pytest

from budgeteer import (
    InvalidArgumentError,
    get_counter,
)
from budgeteer._count import limits as _limits
from budgeteer.window import (
    list_models,
    load_models,
    model_limits,
    register_model,
)

pytestmark = pytest.mark.usefixtures("registry")


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
    "acme/big": (9_000, 9_000, 900, "cl100k_base", 2.05),
    "acme-old": (700, 700, None, "cl100k_base", 2.05),
    "acme-embed": (500, 500, None, "cl100k_base", 2.05),
    "gpt-5-of-mine": (400_000, 272_000, 128_000, "o200k_base", None),
    "acme-text": (4_096, 4_096, None, "cl100k_base", 2.05),
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
    else:  # nor has one that is installed elsewhere a version

        def version_of(name):
            raise PackageNotFoundError(name)

        monkeypatch.setattr("importlib.metadata.version", version_of)
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
