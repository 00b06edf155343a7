"""Type-checked, never run: what is fitted goes to the clients of OpenAI and Anthropic as it is."""

import anthropic
import openai
from anthropic.types import Message, MessageParam, ToolParam
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionFunctionToolParam,
    ChatCompletionMessage,
    ChatCompletionMessageParam,
)

from budgeteer import Allocation, Layout, Section, trim_messages
from budgeteer.service import ChunkRetriever, LlmSettings, RetrievalResult, RetrievalService
from budgeteer.window import count_messages, count_tools, negotiate

history: list[ChatCompletionMessageParam] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "What is green tea?"}]},
]
tools: list[ChatCompletionFunctionToolParam] = [
    {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
]
client = openai.OpenAI()

trimmed: list[ChatCompletionMessageParam] = trim_messages(history, 100, start_on="user")
counted: int = count_messages(history) + count_tools(tools, tool_choice="required")
counted += count_tools(tools, tool_choice={"type": "function", "function": {"name": "weather"}})
negotiate(model="gpt-4o", messages=history, tools=tools, max_output_tokens=900)
completed: ChatCompletion = client.chat.completions.create(model="gpt-4o", messages=trimmed)

replied: list[ChatCompletionMessage] = [completed.choices[0].message]
again: list[ChatCompletionMessage] = trim_messages(replied, 100)
counted += count_messages([*history, *replied])
negotiate(model="gpt-4o", messages=replied, max_output_tokens=900)

allocation: Allocation = Layout(
    "gpt-4o",
    [
        Section("system", "Be brief."),
        Section("history", history),
        Section("tools", tools),
        Section("more", fill=lambda max_tokens: trim_messages(history, max_tokens)),
    ],
).fit()
completed = client.chat.completions.create(
    model="gpt-4o", messages=allocation.messages, tools=allocation.tools
)
first: str = allocation.messages[0]["role"]


def own_messages(system_prompt: str, context: str, query: str) -> list[ChatCompletionMessageParam]:
    """Build messages in the client's own types."""
    return [
        {"role": "developer", "content": system_prompt},
        {"role": "user", "content": f"{context}\n{query}"},
    ]


service = RetrievalService(
    ChunkRetriever(["Green tea."]), LlmSettings("gpt-4o"), message_builder=own_messages
)
found: RetrievalResult = service.retrieve("tea")
completed = client.chat.completions.create(model=found.model, messages=found.messages)


async def answer() -> ChatCompletion:
    """Answer as an asynchronous caller does."""
    result = await service.aretrieve("tea")
    return await openai.AsyncOpenAI().chat.completions.create(
        model=result.model, messages=result.messages
    )


turns: list[MessageParam] = [{"role": "user", "content": "What is green tea?"}]
schemas: list[ToolParam] = [{"name": "weather", "input_schema": {"type": "object"}}]
fitted = Layout("claude-sonnet-4-5", [Section("turns", turns), Section("schemas", schemas)]).fit()
claude = anthropic.Anthropic()
said: Message = claude.messages.create(
    model="claude-sonnet-4-5",
    max_tokens=fitted.tokens["turns"],
    messages=fitted.messages,
    tools=fitted.tools,
)
said = claude.messages.create(
    model="claude-sonnet-4-5", max_tokens=500, messages=trim_messages(turns, 100)
)
