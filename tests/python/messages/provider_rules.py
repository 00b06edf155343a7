"""What providers refuse in a history: the rules of their APIs for calls and results."""

SYSTEM = ("system", "developer")


def openai(messages):
    """Return why OpenAI's chat completions refuse *messages*, None if they do not."""
    open_calls = []
    for i, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return f"messages[{i}] is a result without a call before it"
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            return f"messages[{i}] follows a call whose results are missing: {open_calls}"
        open_calls += [call["id"] for call in message.get("tool_calls") or ()]
    return f"results are missing: {open_calls}" if open_calls else None


def anthropic(messages):
    """Return why Anthropic's messages refuse *messages*, None if they do not."""
    asked = set()
    for i, message in enumerate(message for message in messages if message["role"] not in SYSTEM):
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": "text"}]
        answered = {part["tool_use_id"] for part in parts if part["type"] == "tool_result"}
        kinds = [part["type"] for part in parts]
        if answered and message["role"] != "user":
            return f"messages[{i}] has results and is not the user's"
        if answered != asked:
            return f"messages[{i}] has the results of {answered} and not of {asked}"
        if kinds != sorted(kinds, key="tool_result".__ne__):
            return f"messages[{i}] has results behind other parts"
        asked = {part["id"] for part in parts if part["type"] == "tool_use"}
    return f"results are missing: {asked}" if asked else None
