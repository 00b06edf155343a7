"""
MCP: a server of three tools, for programs that speak the Model Context Protocol.

``budgeteer mcp FOLDER`` runs it on standard input and output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

from budgeteer import _validate
from budgeteer._chunk.chunk import Chunk
from budgeteer._count.counter import TokenCounter
from budgeteer._count.limits import model_limits
from budgeteer._count.names import meaning_of
from budgeteer._count.resolve import get_counter
from budgeteer._files import reason, repaired
from budgeteer._log import log
from budgeteer._output.output import OutputKind, fit_output
from budgeteer._pack.packer import Packer
from budgeteer._rank.rankings import Lexical
from budgeteer._sources.folder import passed_over, text_files, unread
from budgeteer._sources.pieces import pieces_of
from budgeteer.errors import BudgeteerError, BudgetExhaustedError, InvalidArgumentError
from budgeteer.integrations._missing import missing

try:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
    from pydantic import ConfigDict, Field
except ImportError as _error:
    raise missing(__name__, _error) from None

__all__ = ["server"]

_LARGEST = 400
"""The most tokens of a piece of a file; it is half of a small budget."""

_Model = Annotated[
    str,
    Field(
        description="The model that reads the text: it decides how to count. Or the name of an "
        "encoding or an estimate"
    ),
]
_READ = ("file:", "hf:", "tiktoken:")
"""How names begin that a tokenizer is read by."""

_Tokens = Annotated[int, Field(description="The most tokens of the answer", ge=0)]


def server(paths: Sequence[str] = (), *, model: str = "gpt-4o") -> MCPServer:
    """
    Return an MCP server with the tools ``ask``, ``count`` and ``cut``.

    The law: what ``ask`` and ``cut`` answer counts at most the tokens that the caller asks for, by
    the counter of the model that it names. ``ask`` reads *paths* anew for each call, and nothing
    else: without any there is no such tool. No tool writes. Where there is nothing to answer, and
    for a wrong argument, the answer is an error that says why.

    Args:
        paths: Folders and files that ``ask`` reads.
        model: The model whose counter counts where a call names none, or another name of
            `get_counter`.

    Raises:
        InvalidArgumentError: A path does not exist, or an argument has a wrong type.
        CounterError: As for `get_counter`.

    Examples:
        >>> server().name
        'budgeteer'

    """
    read = [_path(path) for path in _validate.batch("paths", paths)]
    counter_of = _Counters(_validate.text("model", model))

    def ask(
        query: Annotated[str, Field(description="The question that the text should answer")],
        max_tokens: _Tokens = 4_000,
        model: _Model = model,
    ) -> str:
        """Return the parts of the files that have to do with a question, best first."""
        return _asked(read, query, max_tokens, counter_of(model))

    def count(text: Annotated[str, Field(description="The text")], model: _Model = model) -> str:
        """Return how many tokens a text has, and whether that is an estimate."""
        counter = counter_of(model)
        return f"{counter.count(text)}{'' if counter.is_exact else ' (an estimate)'}"

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
        return _cut(text, max_tokens, query, kind, counter_of(model))

    tools = [_tool(function) for function in ((ask, count, cut) if read else (count, cut))]
    told = "Text within a budget of tokens, counted exactly."
    return MCPServer("budgeteer", instructions=told, tools=tools)


def _asked(paths: Sequence[str], query: str, max_tokens: int, counter: TokenCounter) -> str:
    packer = Packer(
        max_tokens,
        counter=counter,
        ranking=Lexical(feedback=False),
        min_score=math.ulp(0.0),  # what shares no word with the question scores 0
        template="markdown",
    )
    limit = max(1, min(_LARGEST, max_tokens // 2))
    problems: list[tuple[str, str]] = []
    try:
        chunks = [*_chunks(paths, counter, limit, problems)]
    except OSError as error:
        raise InvalidArgumentError(reason(error)) from None
    packing = packer.pack(query, chunks)
    if not packing.kept:
        reasons = {dropped.reason for dropped in packing.dropped} - {"empty"}
        raise InvalidArgumentError(_why_nothing(reasons, problems, max_tokens))
    if problems:
        extra = {"code": "files_unread", "files": len(problems)}
        log().warning("%s", passed_over(problems), extra=extra)
    return packing.text


def _why_nothing(
    reasons: Collection[str], problems: Sequence[tuple[str, str]], max_tokens: int
) -> str:
    """Return why nothing answers: *reasons* are those of the chunks."""
    if "budget" in reasons:
        why = f"nothing that has a word of the query fits into {max_tokens} tokens: ask for more"
    elif reasons:
        why = "nothing in the files has a word of the query"
    else:
        why = "there is no text in the files"
    return f"{why}; {unread(problems)}" if problems else why


def _cut(
    text: str, max_tokens: int, query: str | None, kind: OutputKind, counter: TokenCounter
) -> str:
    _validate.text("text", text)  # a value of JSON's would be taken, and written anew
    try:
        made = fit_output(text, max_tokens, query=query, kind=kind, counter=counter).text
    except InvalidArgumentError as error:
        message = str(error)  # which names an argument as `fit_output` does
        if message.startswith("value "):
            message = f"text {message.removeprefix('value ')}"
        raise InvalidArgumentError(message) from None
    except BudgetExhaustedError:  # not even an empty array, whose name here is another
        made = ""
    if text and not made:
        raise InvalidArgumentError(
            f"nothing of the text fits into {max_tokens} tokens: ask for more"
        )
    return made


class _Counters:
    """The counters of the names that calls have: none of these reads a file."""

    def __init__(self, default: str) -> None:
        """Let the operator name any counter as the *default*."""
        self._name, self._default = default, _counter(default)

    def __call__(self, name: str) -> TokenCounter:
        if name == self._name:
            return self._default
        if _validate.text("model", name).startswith(_READ):
            raise InvalidArgumentError(
                "model must be the name of a model, an encoding or an estimate: no tokenizer is "
                "read for a call"
            )
        return _counter(name)


class _Given(ArgModelBase):
    """The arguments of a call as they are: ours are the errors, which a model can mend."""

    model_config = ConfigDict(extra="allow")

    def model_dump_one_level(self) -> dict[str, Any]:
        """Return them as one argument."""
        return {"given": self.model_extra or {}}


def _tool(function: Callable[..., str]) -> Tool:
    """Return the tool that calls a function, and that takes no other arguments."""
    tool: Tool = Tool.from_function(function, structured_output=False)
    parameters = signature(function).parameters

    def call(given: Mapping[str, Any]) -> str:
        try:
            _check_names(tool.name, given, parameters)
            # The name of a file may be no UTF-8, and what cannot be sent ends the server.
            return repaired(function(**given))
        except BudgeteerError as error:
            raise ToolError(repaired(str(error))) from None

    taking = tool.fn_metadata.model_copy(update={"arg_model": _Given})
    schema = {**tool.parameters, "additionalProperties": False}
    return tool.model_copy(update={"fn": call, "fn_metadata": taking, "parameters": schema})


def _check_names(tool: str, given: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> None:
    for name in given:
        if name not in parameters:
            raise InvalidArgumentError(
                f"{tool} takes {', '.join(parameters)}, and no {str(name)!r:.80}"
            )
    for name, parameter in parameters.items():
        if parameter.default is Parameter.empty and name not in given:
            raise InvalidArgumentError(f"{name} must be given")


def _path(path: Any) -> str:
    name = _validate.text("paths", path)
    if not name or not Path(name).exists():
        raise InvalidArgumentError(f"cannot read {name[:200]!r}: No such file or directory")
    return name


def _counter(name: str) -> TokenCounter:
    """Return the counter of that name; what names no other one is a model's."""
    if not name:
        raise InvalidArgumentError("model must be a name, not empty")
    return get_counter(name if meaning_of(name) is not None else model_limits(name))


def _chunks(
    paths: Sequence[str], counter: TokenCounter, limit: int, problems: list[tuple[str, str]]
) -> Iterator[Chunk]:
    """Yield the pieces of the files; *problems* gets those that cannot be read, and why."""
    for file in text_files(paths):
        if file.text is None:
            problems.append((file.name, file.problem))
        for piece in pieces_of(file.name, file.text or "", counter, limit):
            name = f"{file.name}:{piece.line}"
            yield Chunk(piece.text, id=name, source=file.name, title=piece.title)
