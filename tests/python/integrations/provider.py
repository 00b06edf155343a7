"""A provider on loopback, which notes the requests that reach it and answers in their shape."""

import json
import threading
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def chat(body):
    content = '{"text": "ok", "sources": []}' if body.get("response_format") else "ok"
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    head = {"id": "c1", "created": 1, "model": body["model"]}
    if body.get("stream"):
        delta = {
            "index": 0,
            "finish_reason": None,
            "delta": {"role": "assistant", "content": "ok"},
        }
        end = {"index": 0, "finish_reason": "stop", "delta": {}}
        chunk = {**head, "object": "chat.completion.chunk"}
        return [
            ("", {**chunk, "choices": [delta]}),
            ("", {**chunk, "choices": [end]}),
            ("", "[DONE]"),
        ]
    return {**head, "object": "chat.completion", "choices": [choice], "usage": USAGE}


def response(body):
    text = {"type": "output_text", "text": "ok", "annotations": []}
    output = {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    answer = {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": body["model"],
        "output": [output],
        "status": "completed",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 1,
            "output_tokens": 1,
            "total_tokens": 2,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }
    if body.get("stream"):
        kinds = ("response.created", "response.completed")
        return [
            (kind, {"type": kind, "response": answer, "sequence_number": i})
            for i, kind in enumerate(kinds)
        ]
    return answer


def message(body):
    answer = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "text", "text": "ok"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    if not body.get("stream"):
        return answer
    text = {"type": "text_delta", "text": "ok"}
    events = [
        {"type": "message_start", "message": {**answer, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": text},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    ]
    return [(event["type"], event) for event in events]


ANSWERS = {"completions": chat, "responses": response, "messages": message}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append(body)
        self.server.headers.append(self.headers)
        kind = self.path.partition("?")[0].rpartition("/")[2]
        answer = ANSWERS[kind](body) if kind in ANSWERS else {"input_tokens": 7}
        if self.server.status != 200:
            answer = {"error": {"message": f"refused {body} of {dict(self.headers)}"}}
        if isinstance(answer, list):
            events = [
                (f"event: {name}\n" if name else "")
                + f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"
                for name, data in answer
            ]
            data, media = "".join(events).encode(), "text/event-stream"
        else:
            data, media = json.dumps(answer).encode(), "application/json"
        self.send_response(self.server.status)
        self.send_header("content-type", media)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Provider(ThreadingHTTPServer):
    """
    Notes the bodies of requests in ``seen``, and their headers.

    With another ``status`` than 200 each answer is an error that quotes both.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen = []
        self.headers = []
        self.status = 200
        self.clients = ExitStack()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.005,), daemon=True).start()
        return self

    def made(self, kind, url, key="none"):
        """Return a client of the provider that is closed with it."""
        return self.clients.enter_context(kind(api_key=key, base_url=url, max_retries=0))

    def __exit__(self, *_):
        self.clients.close()
        self.shutdown()
        self.server_close()


def history(turns, result=300):
    """Return turns of a chat in OpenAI's shape, each with a call of a tool."""
    messages = [{"role": "system", "content": "Be brief."}]
    for i in range(turns):
        function = {"name": "read", "arguments": '{"path": "a"}'}
        call = {"id": f"c{i}", "type": "function", "function": function}
        messages += [
            {"role": "user", "content": f"What is in file {i}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{i}", "content": "Started. " * result},
            {"role": "assistant", "content": "It started."},
        ]
    return [*messages, {"role": "user", "content": "Which one failed?"}]


def claude_history(turns, result=300):
    """Return the same in Anthropic's shape."""
    messages = []
    for i in range(turns):
        call = {"type": "tool_use", "id": f"c{i}", "name": "read", "input": {"path": "a"}}
        answer = {"type": "tool_result", "tool_use_id": f"c{i}", "content": "Started. " * result}
        messages += [
            {"role": "user", "content": f"What is in file {i}?"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [answer]},
            {"role": "assistant", "content": "It started."},
        ]
    return [*messages, {"role": "user", "content": "Which one failed?"}]


SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOL = {
    "type": "function",
    "function": {"name": "read", "description": "Read a file", "parameters": SCHEMA},
}
RESPONSES_TOOL = {"type": "function", **TOOL["function"]}
CLAUDE_TOOL = {"name": "read", "description": "Read a file", "input_schema": SCHEMA}
