"""Results and settings as types of pydantic's fields and of FastAPI's responses."""

import json
import subprocess
import sys

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
    pack,
    presets,
)
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


@pytest.mark.parametrize(
    "kind", [Packing, Allocation, KeptChunk, DroppedChunk, Packer, LlmSettings]
)
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
    with pytest.raises(PydanticSerializationError):
        config.model_dump_json()  # a function is not what JSON can hold
    named = Config(packer=Packer(9, counter="words"), settings=settings)
    assert "words" == json.loads(named.model_dump_json())["packer"]["counter"]
    preset = presets.context_router(9)
    assert preset is Config(packer=preset, settings=settings).packer


def test_nothing_imports_pydantic():
    """Our modules do not need pydantic, nor import it where it is."""
    code = "import sys, budgeteer.service; budgeteer.pack('', ['tea'], 9).to_dict(); "
    code += "print(any(name.startswith('pydantic') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "False" == done.stdout.strip()
