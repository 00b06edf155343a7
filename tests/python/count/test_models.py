"""Models: the encoding of a model is what tiktoken says it is."""

import pytest
import tiktoken
from hypothesis import example, given
from hypothesis import strategies as st
from tiktoken.model import MODEL_PREFIX_TO_ENCODING, MODEL_TO_ENCODING

from budgeteer import _validate
from budgeteer._models import ENCODING_OF_PREFIX, MODELS, MODELS_OF, NATIVE, encoding_of

OF_TIKTOKEN = ("cl100k_base", "o200k_base", "o200k_harmony")

names = st.sampled_from([*MODEL_TO_ENCODING, *MODEL_PREFIX_TO_ENCODING])


def expected_encoding(model):
    """Return tiktoken's answer, None for its KeyError."""
    try:
        return tiktoken.encoding_name_for_model(model)
    except KeyError:
        return None


@given(
    model=names
    | st.text()
    | st.builds("{}{}".format, names, st.text() | st.sampled_from(["-", "o", "-mini", "o-mini"]))
    | st.builds(lambda name, size: name[:size], names, st.integers(0, 12))
)
@example("ft:gpt-4o-mini")  # begins as ft:gpt-4 does, which has another encoding
@example("gpt-5")
@example("")
@example("\ud800")
def test_encoding(model):
    """encoding_of answers what tiktoken does, for names, their beginnings and any other text."""
    assert expected_encoding(model) == encoding_of(model)


def test_every_name():
    """Every model and every prefix of tiktoken is known, and none that tiktoken does not know."""
    assert set(MODEL_TO_ENCODING) == set(MODELS)
    assert len(MODELS) == sum(map(len, MODELS_OF.values()))
    for model in MODEL_TO_ENCODING:
        assert MODEL_TO_ENCODING[model] == encoding_of(model)
    assert list(MODEL_PREFIX_TO_ENCODING.items()) == list(ENCODING_OF_PREFIX.items())


def test_encodings_are_known():
    """Every encoding that a model uses is one that tiktoken has."""
    used = {*MODELS_OF, *ENCODING_OF_PREFIX.values(), *OF_TIKTOKEN}

    assert used <= {*tiktoken.list_encoding_names()}


@pytest.mark.parametrize("name", OF_TIKTOKEN)
def test_native(vocabulary, name):
    """Two encodings count alike where they have the same ranks and the same pattern."""
    encoding, native = tiktoken.get_encoding(name), tiktoken.get_encoding(NATIVE[name])

    assert native._mergeable_ranks == encoding._mergeable_ranks
    assert native._pat_str == encoding._pat_str


@pytest.mark.parametrize(
    ("name", "near"),
    [("gpt4o", "gpt-4o"), ("gpt-35", "gpt-3.5"), ("04-mini", "o4-mini")],
)
def test_near_miss(name, near):
    """The names of models serve for hints."""
    assert f"; did you mean {near!r}?" == _validate.did_you_mean(name, MODELS)
