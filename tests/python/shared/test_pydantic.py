"""Results and settings as types of pydantic's fields and of FastAPI's responses."""

import json
import subprocess
import sys
from dataclasses import fields
from types import MappingProxyType

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from budgeteer import (
    Allocation,
    DroppedChunk,
    KeptChunk,
    Layout,
    Packer,
    Packing,
    Section,
    compare,
    fit_request,
    get_counter,
    pack,
    presets,
)
from budgeteer.ranking import Bm25
from budgeteer.service import LlmSettings

PACKING = pack("tea", ["Green tea.", "Rye bread. " * 50, ""], 6, counter="chars_div4")


class Answer(BaseModel):
    """What an endpoint may return."""

    packing: Packing[str]
    plain: Packing
    kept: list[KeptChunk[str]]
    dropped: list[DroppedChunk[str]]
    allocation: Allocation | None = None


def answer():
    """Return an answer of ours."""
    return Answer(
        packing=PACKING,
        plain=PACKING,
        kept=PACKING.kept,
        dropped=PACKING.dropped,
        allocation=Layout(9, [Section("query", "tea")]).fit(),
    )


def test_results_are_fields():
    """A model holds our objects themselves, and writes their plain data."""
    made = answer()

    assert PACKING is made.packing
    written = made.model_dump()
    assert PACKING.to_dict() == written["packing"] == written["plain"]
    assert PACKING.to_dict()["kept"] == written["kept"]
    assert PACKING.to_dict()["dropped"] == written["dropped"]
    assert made.allocation.to_dict() == written["allocation"]
    assert written == json.loads(made.model_dump_json())
    assert {} != Answer.model_json_schema(mode="serialization")


REQUEST = {"messages": [{"role": "user", "content": "Green tea?"}]}


@pytest.mark.parametrize(
    ("made", "plain"),
    [
        (compare(PACKING, PACKING), lambda made: made.to_dict()),
        (PACKING.budget_curve()[0], lambda made: made.to_dict()),
        (
            fit_request(REQUEST, context_window=99, counter="words"),
            lambda made: {**made.report.to_dict(), "total_tokens": made.total_tokens},
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_results_are_fields(made, plain):
    """A comparison, a point of a curve and a request are taken as they are, and written plain."""
    adapter = TypeAdapter(type(made))
    assert made is adapter.validate_python(made)
    assert plain(made) == adapter.dump_python(made)
    assert adapter.dump_json(made)


@pytest.mark.parametrize("kind", [Packing, Allocation, KeptChunk, DroppedChunk])
def test_nothing_else_is_one(kind):
    """What is no instance is refused, the plain data of one among it."""
    for other in ({}, None, "tea", PACKING.to_dict()):
        with pytest.raises(ValidationError, match="instance of"):
            TypeAdapter(kind).validate_python(other)


def test_responses():
    """FastAPI answers with a packing or a model of ours, and can describe both."""
    app = FastAPI()

    @app.get("/packing")
    def get_packing() -> Packing[str]:
        return PACKING

    @app.get("/answer", response_model=Answer)
    def get_answer():
        return answer()

    client = TestClient(app)
    assert PACKING.to_dict() == client.get("/packing").json()
    assert answer().model_dump() == client.get("/answer").json()
    assert 200 == client.get("/openapi.json").status_code


def test_settings_are_fields():
    """A model holds a packer, a preset or settings as they are, whatever they hold."""

    class Config(BaseModel):
        packer: Packer
        settings: LlmSettings

    packer, settings = Packer(9, counter=len), LlmSettings("gpt-4o")
    config = Config(packer=packer, settings=settings)

    assert packer is config.packer
    assert settings is config.settings
    written = config.model_dump()
    assert (9, len) == (written["packer"]["max_tokens"], written["packer"]["counter"])
    assert "gpt-4o" == written["settings"]["model"]
    with pytest.raises(PydanticSerializationError, match=r"Packer\.counter is a builtin"):
        config.model_dump_json()  # a function is not what JSON can hold
    named = Config(packer=Packer(9, counter="words"), settings=settings)
    assert "words" == json.loads(named.model_dump_json())["packer"]["counter"]
    preset = presets.context_router(9)
    assert preset is Config(packer=preset, settings=settings).packer


class Setup(BaseModel):
    """What a file of settings may hold."""

    packer: Packer
    settings: LlmSettings = LlmSettings("gpt-4o")


def test_settings_are_read_from_options():
    """A mapping of options makes the object, from Python and from JSON, and so does the dump."""
    packer = Packer(5, overflow="stop", min_score=0.5)
    options = {"max_tokens": 5, "overflow": "stop", "min_score": 0.5}
    written = {"packer": options, "settings": {"model": "gpt-4", "context_window": 4096}}
    for made in (
        Setup.model_validate(written),
        Setup.model_validate_json(json.dumps(written)),
        Setup.model_validate(written | {"packer": MappingProxyType(options)}),
    ):
        assert packer == made.packer
        assert LlmSettings("gpt-4", 4096) == made.settings
        assert made == Setup.model_validate_json(made.model_dump_json())
        assert made == Setup.model_validate(made.model_dump())
    function = Setup.model_validate({"packer": {"max_tokens": 5, "counter": len}})
    assert function == Setup.model_validate(function.model_dump())


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Packer, {}, "max_tokens is required"),
        (Packer, {"max_tokens": -1}, "max_tokens must be from 0 to"),
        (Packer, {"max_tokens": 5, "overflw": "stop"}, "did you mean 'overflow'"),
        (Packer, {"max_tokens": 5, "counter": "no such"}, "no such"),
        (Packer, {"max_tokens": 5, "overflow": "drop"}, "overflow must be one of 'skip'"),
        (Packer, {"max_tokens": 5, "_prepared": 1}, "_prepared is not an option of Packer"),
        (Packer, "tea", "must be a Packer or a mapping of its options, not str"),
        (LlmSettings, {}, "model or context_window is required"),
        (LlmSettings, {"model": 3}, "model must be a str, not int"),
        (LlmSettings, None, "must be a LlmSettings or a mapping of its options, not None"),
    ],
)
def test_options_are_refused(kind, value, message):
    """What is wrong in a mapping is a validation error in our words."""
    adapter = TypeAdapter(kind)
    for call in (
        lambda: adapter.validate_python(value),
        lambda: adapter.validate_json(json.dumps(value)),
    ):
        with pytest.raises(ValidationError) as caught:
            call()
        assert message in caught.value.errors()[0]["msg"]


@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_options_have_a_schema(mode):
    """Both modes describe the options that JSON can hold, with their defaults."""
    schema = Setup.model_json_schema(mode=mode)

    packer = schema["properties"]["packer"]
    assert ["max_tokens"] == packer["required"]
    assert {field.name for field in fields(Packer) if field.init} == {*packer["properties"]}
    assert {"type": "integer"} == packer["properties"]["max_tokens"]
    assert {"type": "string", "default": "o200k_base"} == packer["properties"]["counter"]
    assert {"type": "string", "enum": ["chunk", "sentence"], "default": "chunk"} == (
        packer["properties"]["units"]
    )
    auto = {"type": "string", "enum": ["auto"]}
    assert {"anyOf": [{"type": "number"}, auto, {"type": "null"}], "default": None} == (
        packer["properties"]["min_score"]
    )
    settings = schema["properties"]["settings"]["properties"]
    assert {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None} == settings["model"]


@pytest.mark.parametrize(
    ("packer", "message"),
    [
        (Packer(9, counter=get_counter("words")), "Packer.counter is a TokenCounter"),
        (Packer(9, ranking=Bm25(k1=2)), "Packer.ranking is a Bm25"),
        (Packer(9, min_score=float("inf")), "Packer.min_score is inf"),
        (presets.context_gate(), "preset"),
    ],
)
def test_options_beyond_json(packer, message):
    """What reading would not make again is an error, rather than something else."""
    with pytest.raises(PydanticSerializationError, match=message):
        TypeAdapter(Packer).dump_json(packer)


def test_settings_are_requests():
    """FastAPI takes settings as a body, and describes them."""
    app = FastAPI()

    @app.post("/setup")
    def post_setup(setup: Setup) -> Setup:
        return setup

    client = TestClient(app)
    answered = client.post("/setup", json={"packer": {"max_tokens": 5}})
    assert Setup(packer=Packer(5)) == Setup.model_validate(answered.json())
    refused = client.post("/setup", json={"packer": {"max_tokens": "x"}})
    assert 422 == refused.status_code
    assert "max_tokens must be an int, not str" == refused.json()["detail"][0]["msg"]
    assert 200 == client.get("/openapi.json").status_code


def test_nothing_imports_pydantic():
    """Our modules do not need pydantic, nor import it where it is."""
    code = "import sys, budgeteer.service; budgeteer.pack('', ['tea'], 9).to_dict(); "
    code += "print(any(name.startswith('pydantic') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "False" == done.stdout.strip()
