"""
MCP: a server of three tools, for programs that speak the Model Context Protocol.

``budgeteer mcp FOLDER`` runs it on standard input and output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

from budgeteer import _validate
from budgeteer._chunk.chunk import Chunk
from budgeteer._count.counter import TokenCounter
from budgeteer._count.limits import model_limits
from budgeteer._count.resolve import get_counter
from budgeteer._output.output import OutputKind, fit_output
from budgeteer._pack.packer import Packer
from budgeteer._rank.rankings import Lexical
from budgeteer._sources.folder import text_files
from budgeteer._sources.pieces import pieces_of
from budgeteer.errors import BudgeteerError, InvalidArgumentError
from budgeteer.integrations._missing import missing

try:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from pydantic import Field
except ImportError as _error:
    raise missing(__name__, _error) from None

__all__ = ["server"]

_LARGEST = 400
"""The most tokens of a piece of a file; it is half of a small budget."""

_Model = Annotated[
    str, Field(description="The model that reads the text; it decides how to count")
]
_F = TypeVar("_F", bound=Callable[..., Any])
_Tokens = Annotated[int, Field(description="The most tokens of the answer", ge=0)]


def server(paths: Sequence[str] = (), *, model: str = "gpt-4o") -> MCPServer:
    """
    Return an MCP server with the tools ``ask``, ``count`` and ``cut``.

    The law: what ``ask`` and ``cut`` answer counts at most the tokens that the caller asks for, by
    the counter of the model that it names. ``ask`` reads *paths* anew for each call, and nothing
    else: without any there is no such tool. No tool writes.

    Args:
        paths: Folders and files that ``ask`` reads.
        model: The model whose counter counts where a call names none.

    Raises:
        InvalidArgumentError: A path does not exist, or an argument has a wrong type.
        CounterError: As for `get_counter`.

    Examples:
        >>> server().name
        'budgeteer'

    """
    read = [_path(path) for path in _validate.batch("paths", paths)]
    get_counter(model_limits(_validate.text("model", model)))
    made = MCPServer("budgeteer", instructions="Text within a budget of tokens, counted exactly.")

    def ask(
        query: Annotated[str, Field(description="The question that the text should answer")],
        max_tokens: _Tokens = 4_000,
        model: _Model = model,
    ) -> str:
        """Return the parts of the files that have to do with a question, best first."""
        packer = Packer(
            max_tokens,
            counter=_counter(model),
            ranking=Lexical(feedback=False),
            min_score=math.ulp(0.0),  # what shares no word with the question scores 0
            template="markdown",
        )
        limit = max(1, min(_LARGEST, max_tokens // 2))
        return packer.pack(query, [*_chunks(read, get_counter(packer.counter), limit)]).text

    def count(text: Annotated[str, Field(description="The text")], model: _Model = model) -> int:
        """Return how many tokens a text has."""
        return _counter(model).count(text)

    def cut(
        text: Annotated[str, Field(description="A text, JSON, a log or a diff")],
        max_tokens: _Tokens,
        query: Annotated[
            str | None, Field(description="The parts that answer it stay first")
        ] = None,
        kind: Annotated[OutputKind, Field(description="What the text is")] = "auto",
        model: _Model = model,
    ) -> str:
        """Cut a text so that it stays what it is; what is left out is counted in its place."""
        counter = _counter(model)
        try:
            return fit_output(text, max_tokens, query=query, kind=kind, counter=counter).text
        except InvalidArgumentError as error:
            message = str(error)  # which names an argument as `fit_output` does
            if message.startswith("value "):
                message = f"text {message.removeprefix('value ')}"
            raise InvalidArgumentError(message) from None

    for tool in (ask, count, cut) if read else (count, cut):
        made.tool(structured_output=False)(_told(tool))
    return made


def _told(tool: _F) -> _F:
    """Return a tool whose errors the model is told: it can mend what it asked for."""

    @wraps(tool)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return tool(*args, **kwargs)
        except BudgeteerError as error:
            raise ToolError(str(error)) from None

    return call  # type: ignore[return-value]  # it takes and returns the same


def _path(path: Any) -> str:
    name = _validate.text("paths", path)
    if not name or not Path(name).exists():
        raise InvalidArgumentError(f"cannot read {name[:200]!r}: No such file or directory")
    return name


def _counter(model: str) -> TokenCounter:
    return get_counter(model_limits(model))


def _chunks(paths: Sequence[str], counter: TokenCounter, limit: int) -> Iterator[Chunk]:
    for file in text_files(paths):
        for piece in pieces_of(file.name, file.text or "", counter, limit):
            name = f"{file.name}:{piece.line}"
            yield Chunk(piece.text, id=name, source=file.name, title=piece.title)
