"""
An HTTP service that answers queries with messages that fit: FastAPI around RetrievalService.

    pip install '.[cli]' fastapi uvicorn
    uvicorn --app-dir examples retrieval_api:app
    curl -s localhost:8000/retrieve -H 'content-type: application/json' \
        -d '{"query": "What is the remote work policy?"}'

The chunks are those of the handbook beside this file. The environment names the model
(BUDGETEER_LLM_MODEL and the like), and PUT /model changes it while requests run.
"""

import os
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from budgeteer import BudgeteerError
from budgeteer.service import (
    FolderRetriever,
    InputValidationError,
    JsonlRetriever,
    LlmSettings,
    RetrievalService,
    RetrievalTimeoutError,
)

HERE = Path(__file__).parent
TIMEOUT = 5.0


class Query(BaseModel, extra="forbid"):
    """A user's question."""

    query: str = Field(max_length=100_000)


class Model(BaseModel, extra="forbid"):
    """The model that answers from now on."""

    model: str = Field(max_length=200)
    context_window: Annotated[int, Field(ge=1)] | None = None
    max_output_tokens: Annotated[int, Field(ge=0)] | None = None


def settings() -> LlmSettings:
    """Return the settings of the environment, GPT-4o if it has none."""
    if any(name.startswith("BUDGETEER_LLM_") for name in os.environ):
        return LlmSettings.from_env()
    return LlmSettings(model="gpt-4o", max_output_tokens=1_000)


service = RetrievalService(
    [FolderRetriever(HERE / "handbook"), JsonlRetriever(HERE / "tickets.jsonl")],
    settings(),
    system_prompt="Answer from the context in front of the question. Say when it has no answer.",
    timeout=TIMEOUT,
)
app = FastAPI(title="Retrieval under a budget")


@app.exception_handler(BudgeteerError)
async def refuse(_: Request, error: BudgeteerError) -> JSONResponse:
    """Answer an error with its status: too long is 413, late is 504, a bad argument is 422."""
    if isinstance(error, InputValidationError):
        status = 413
    elif isinstance(error, RetrievalTimeoutError):
        status = 504
    else:
        status = 422 if isinstance(error, ValueError) else 502
    return JSONResponse({"error": type(error).__name__, "message": str(error)}, status)


@app.exception_handler(RequestValidationError)
async def refuse_body(_: Request, error: RequestValidationError) -> JSONResponse:
    """Answer the error of a body without quoting it, as it may hold text that JSON cannot."""
    found = [f"{'.'.join(map(str, part['loc']))}: {part['msg']}" for part in error.errors()]
    return JSONResponse({"error": "RequestValidationError", "message": "; ".join(found)}, 422)


@app.post("/retrieve")
async def retrieve(query: Query) -> dict[str, Any]:
    """Answer with the messages to send, and how the window was used."""
    return (await service.aretrieve(query.query)).to_dict()


@app.put("/model")
async def swap(model: Model) -> dict[str, Any]:
    """Change the model for later requests."""
    service.settings = LlmSettings(**model.model_dump())
    limits = service.settings.limits
    return {"model": limits.name, "context_window": limits.context_window}


@app.get("/stats")
async def stats() -> dict[str, Any]:
    """Return how often the budget cut, and what a larger one would have kept."""
    return service.stats().to_dict()
