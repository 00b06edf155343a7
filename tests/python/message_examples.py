"""Messages of every kind for the cases: texts, calls, images, audio and documents."""

import base64
import struct
import zlib


def _png(width, height):
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height)


def _jpeg(width, height):
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"x" * 14
    frame = b"\xff\xff\xc2" + struct.pack(">HBHH", 17, 8, height, width)
    return b"\xff\xd8" + app + frame


def _webp(kind, data):
    return b"RIFF\0\0\0\0WEBP" + kind + b"\0\0\0\0" + data


IMAGES = {
    "png": _png(1024, 1024),
    "png of nothing": _png(0, 7),
    "png cut off": _png(1024, 1024)[:20],
    "gif": b"GIF89a" + struct.pack("<HH", 600, 400),
    "jpeg": _jpeg(2048, 4096),
    "webp lossy": _webp(b"VP8 ", b"\0" * 6 + struct.pack("<HH", 513, 512)),
    "webp lossless": _webp(b"VP8L", b"\x2f" + struct.pack("<I", 699 | 899 << 14) + b"\0" * 8),
    "webp extended": _webp(b"VP8X", b"\0" * 4 + b"\xff\x03\0\xff\x07\0" + b"\0" * 4),
    "noise": b"nothing of the kind",
}


def _url(data, kind="image/png"):
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def image(**fields):
    return {"role": "user", "content": [{"type": "image_url", "image_url": fields}]}


CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
        }
    ],
}
SAID = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "name": "Ada", "content": "How is the weather in Oslo? 🌧️"},
    CALL,
    {"role": "tool", "tool_call_id": "call_1", "content": "Rain, 4 °C."},
]


def _wav(seconds, rate=100, *, chunk=b"fmt "):
    body = b"\0" * round(rate * seconds - 44)
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(body), b"WAVE", chunk, 16, 1, 1,
                       rate, rate, 1, 8, b"data", len(body))  # fmt: skip
    return head + body


def _packed(text, before=b" ", after=b""):
    """Return a stream of objects in a PDF."""
    return b"<< /Type /ObjStm" + before + b"stream\r\n" + zlib.compress(text) + after


_OBJECTS = b"<< /Type /Pages >> << /Type /Page >> <</Type/Page/X 1>> /Type\n\x0b/Page"
FILES = {
    "wav": _wav(7.25),
    "wav of no rate": _wav(9, 0, chunk=b"fmt ") + b"\0" * 60,
    "wav of no format": _wav(9, chunk=b"junk"),
    "wav cut off": _wav(9)[:40],
    "riff": b"RIFF....AVI " + b"\0" * 90,
    "pdf": b"%PDF-1.7 " + _OBJECTS,
    "pdf packed": b"%PDF-1.7 " + _packed(_OBJECTS) + b" endstream /Type /Page",
    "pdf packed twice": b"%PDF-1.7 " + _packed(_OBJECTS) + _packed(_OBJECTS, b" /N 2 >>", b"!"),
    "pdf far off": b"%PDF-1.7 " + _packed(_OBJECTS, b" " * 200) + _packed(_OBJECTS, b" " * 201),
    "pdf of another name": b"%PDF-1.7 /ObjStms stream\n" + zlib.compress(_OBJECTS),
    "pdf cut off": b"%PDF-1.7 " + _packed(_OBJECTS)[:70],
    "pdf spoilt": b"%PDF-1.7 /Type /Page " + _packed(_OBJECTS).replace(b"\r\nx", b"\n?"),
    "pdf of nothing": b"%PDF-1.7",
    "noise": b"nothing of the kind",
}
_TEXTS = {name: base64.b64encode(data).decode() for name, data in FILES.items()}
MEDIA = [
    *({"type": "input_audio", "input_audio": {"data": _TEXTS[name]}} for name in ("wav", "pdf")),
    *({"type": "document", "source": {"data": text}} for text in _TEXTS.values()),
    {"type": "file", "file": {"file_data": "data:application/pdf;base64," + _TEXTS["pdf"]}},
    {"type": "file", "file": {"file_data": "data:" + _TEXTS["pdf"], "data": ""}},
    {"type": "input_file", "file_data": _TEXTS["pdf packed"].rstrip("=") + "=="},
    {"type": "input_file", "file_id": "file_1", "data": 7},
    {"type": "picture", "data": _TEXTS["pdf"]},
    {"document": {"data": _TEXTS["pdf"]}},
    {"type": "document", "data": "grün", "source": {"data": _TEXTS["pdf"]}},
]
CALLED = [
    {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "status": "completed",
        "usage": {"input_tokens": 9},
        "content": [{"type": "output_text", "text": "Rain."}],
    },
    {"role": "developer", "content": "Be brief."},
    {"role": "assistant", "content": [], "tool_calls": []},
    {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
    {"role": "function", "name": "f", "content": "1"},
    {"role": "assistant", "function_call": {}, "tool_calls": "a"},
    {"role": "assistant", "function_call": True, "tool_calls": 0},
    {
        "role": "user",
        "content": [
            {"type": "tool_use", "id": "a", "name": "f", "input": {"a": 1}},
            {"type": "tool_result", "tool_use_id": "a", "content": [{"text": "2"}]},
            {"type": "tool_result", "content": None},
        ],
    },
]
MODELS = [
    *("qwen2.5-72b-instruct", "Qwen/QwQ-32B", "deepseek-r1-distill-qwen-32b", "qwen3:8b"),
    *("qwen-3", "llama3.2:3b", "llama-v3p1-8b"),
    *("meta-llama/Llama-3.3-70B-Instruct", "mistral-large-2411", "mistral-7b", "mixtral-8x7b"),
    *("ministral-8b", "codestral", "devstral", "magistral", "pixtral", "gemma-3-27b-it"),
    *("openai/gpt-oss-120b", "gpt-oss:20b", "claude-opus-4-8", "gemini-2.5-pro", "gpt-4o"),
    *("claude-opus-4-7", "anthropic/claude-opus-4.7"),
    *("chatgpt-4o-latest", "codex-mini", "o3", "grok-4", "acme/7b", "acme/", ""),
    *("ft:gpt-3.5-turbo-0301", "ft:gpt-4o:acme"),
]
MESSAGES = {
    "none": [],
    "hello": [{"role": "user", "content": "Hello, world!"}],
    "empty": [{"role": "user", "content": ""}, {"role": "assistant"}],
    "openai": SAID,
    "names": [{"role": "user", "name": name, "content": "x"} for name in ("", "Ada", None)],
    "extra": [
        {
            "role": "assistant",
            "content": "x",
            "reasoning": {"a": ["long", 1, 2.5, 1e16, True, None], "b": {}},
            "index": 7,
            "function_call": {"name": "f", "arguments": "{}"},
        }
    ],
    "parts": [
        {
            "role": "user",
            "content": [
                "plain",
                {"type": "text", "text": "text"},
                {"type": "input_text", "text": "input"},
                {"type": "output_text", "text": "output"},
                {"type": "refusal", "refusal": "no"},
                {"type": "thinking", "thinking": "hm", "signature": "abc"},
            ],
        }
    ],
    "omitted thought": [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "", "signature": "RXhhbXBsZQ=="},
                {"type": "thinking", "thinking": "", "signature": ""},
                {"type": "thinking", "thinking": ""},
            ],
        }
    ],
    "anthropic": [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Ålesund"}},
                {"type": "tool_use", "name": "now"},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "Rain."},
                {
                    "type": "tool_result",
                    "content": [
                        {"type": "text", "text": "A picture:"},
                        {
                            "type": "image",
                            "source": {
                                "type": "base64",
                                "media_type": "image/png",
                                "data": base64.b64encode(IMAGES["png"]).decode(),
                            },
                        },
                    ],
                },
                {"type": "tool_result", "tool_use_id": "t2", "content": None},
            ],
        },
    ],
    "unknown parts": [
        {
            "role": "user",
            "content": [
                {"type": "input_audio", "input_audio": {"data": "é" * 7}},
                {"type": "file", "file": {"file_data": "a"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "s", "name": "web", "input": {"q": 1.0}},
                {"type": "document", "source": {"type": "url", "url": "https://a.example"}},
                {"type": "video_url", "video_url": {"url": "https://a.example"}},
                {"type": "", "x": None},
            ],
        },
    ],
    "parts without a type": [
        {
            "role": "user",
            "content": [
                {"text": "hi"},
                {"type": None, "text": "there"},
                {},
                {"text": 7},
                {"document": {"name": "a"}},
                {"toolResult": {"toolUseId": "a", "content": [{"text": "12 degrees"}]}},
                {"image": {"format": "png"}, "tool_use": "a"},
                {"inline_data": {"mime_type": "image/png", "data": "a"}},
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "a",
            "content": [{"text": "12 degrees"}],
        },
    ],
    "documents of plain text": [
        {
            "role": "user",
            "content": [
                {
                    "type": "document",
                    "title": "A log",
                    "source": {"type": "text", "media_type": "text/plain", "data": "a\nb " * 9},
                    "citations": {"enabled": True},
                },
                {"type": "document", "source": {"type": "text", "data": 7}},
            ],
        },
    ],
    "image of a url": [image(url="https://a.example/b.png")],
    "image of low detail": [image(url="https://a.example/b.png", detail="low")],
    "image of a size": [
        {
            "role": "user",
            "content": [
                {"type": "input_image", "image_url": "https://a.example", "width": w, "height": h}
            ],
        }
        for w, h in [(1, 1), (512, 512), (513, 512), (1024, 1024), (2048, 4096), (9000, 1)]
    ],
    "image with spaces": [image(url=_url(IMAGES["png"]).replace("A", "A \n", 3))],
    "image unpadded": [image(url=_url(IMAGES["gif"]).rstrip("="))],
    "image not in base64": [image(url=_url(IMAGES["png"]).replace(";base64", ""))],
    "image with rubbish": [image(url=_url(IMAGES["png"]).replace("A", "A-é", 1))],
    **{f"image: {name}": [image(url=_url(data))] for name, data in IMAGES.items()},
}
