"""What the tests with canaries share: the canaries, what holds them, and the search for them."""

import json

from budgeteer import Chunk

SECRETS = {
    "key": "CANARYKEY0a1",
    "server's key": "CANARYKEY1b2",
    "password": "CANARYPASS2c3",
    "token": "CANARYTOKEN3d4",
}
TEXTS = {
    "query": "canaryquery4e5",
    "text": "canarytext5f6",
    "title": "canarytitle6a7",
    "metadata": "canarymeta7b8",
    "message": "canarymessage8c9",
    "result": "canaryresult9d0",
    "system": "canarysystem0e1",
    "tool": "canarytool1f2",
}
ALL = {**SECRETS, **TEXTS}
KEY, PASSWORD, TOKEN = SECRETS["key"], SECRETS["password"], SECRETS["token"]
QUERY, TEXT, TITLE, META = (TEXTS[name] for name in ("query", "text", "title", "metadata"))
URL = f"https://user:{PASSWORD}@host.example/v1/embeddings?token={TOKEN}"


def told(shown, canaries=ALL):
    """Return the names of the canaries that something shows, in whatever letters."""
    shown = shown if isinstance(shown, bytes) else shown.encode("utf-8", "surrogatepass")
    return [name for name, canary in canaries.items() if canary.lower().encode() in shown.lower()]


def chunks():
    """Chunks of each kind, some too long for any budget here."""
    metadata = {"mtime": 3, "owner": META, "title": TITLE}
    return [
        Chunk(f"{TEXT} is mild, and {QUERY} too.", id="a", title=TITLE, metadata=metadata),
        {
            "text": f"{TEXT} again. It is said that {QUERY} is.",
            "title": TITLE,
            "metadata": metadata,
        },
        f"{TEXT} and {QUERY}.\n\n" + f"{TEXT} of no end. " * 60,
        f"{TEXT} and {QUERY}.\n\n" + f"{TEXT} of no end. " * 60,
        "",
    ]


MESSAGES = [
    {"role": "system", "content": TEXTS["system"]},
    {"role": "user", "content": f"{TEXTS['message']} one"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "find", "arguments": json.dumps({"q": TEXTS["message"]})},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": f"{TEXTS['result']} " * 300},
    {"role": "user", "content": f"{TEXTS['message']} two"},
]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find",
            "description": TEXTS["tool"],
            "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
        },
    }
]
