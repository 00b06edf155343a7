"""An embedding endpoint on loopback, as real as it gets, that also misbehaves on demand."""

import base64
import gzip
import json
import socket
import struct
import threading
import time
from collections import deque
from email.utils import formatdate
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

SIZE = 8
KEY = "sk-proj-Secret42-abcdef"


def vector(text, size=SIZE):
    """The vector of a text: any floats, and the same ones each time."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=64).digest()
    seed = np.frombuffer(digest * (size // 64 + 1), dtype=np.uint8)[:size].astype(np.float64)
    return (seed - 127.3) / 311.7


def expected(texts, size=SIZE):
    return np.array([vector(text, size) for text in texts], dtype=np.float32).reshape(-1, size)


class Endpoint(ThreadingHTTPServer):
    """
    Answers each request by the next of ``script``, a list of behaviours, and well after its end.

    A behaviour takes the handler and the question. ``questions`` and ``headers`` are what was
    asked, ``connections`` how often someone connected, ``most`` how many were answered at once.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = deque()
        self.always = well
        self.questions, self.headers, self.paths = [], [], []
        self.connections = self.busy = self.most = 0
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/v1/embeddings"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.005,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """The clients of these tests leave when they like."""

    def inputs(self):
        return [question["input"] for question in self.questions]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.server.lock:
            self.server.connections += 1

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        question = json.loads(body.decode())
        with self.server.lock:
            self.server.questions.append(question)
            self.server.headers.append(dict(self.headers.items()))
            self.server.paths.append(self.path)
            behave = self.server.script.popleft() if self.server.script else self.server.always
            self.server.busy += 1
            self.is_busy = True
            self.server.most = max(self.server.most, self.server.busy)
        try:
            behave(self, question)
        finally:
            self.rest()

    def rest(self):
        """Count as busy no more: a client that has its answer may ask again at once."""
        with self.server.lock:
            self.server.busy -= self.is_busy
            self.is_busy = False

    do_GET = do_POST  # noqa: N815 - the base class asks for this name

    def log_message(self, *_):
        """Say nothing."""

    def say(self, body, status=200, kind="application/json", **headers):
        body = body if isinstance(body, bytes) else body.encode()
        self.rest()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", headers.pop("content_length", len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def say_slowly(self, parts, pause):
        for part in parts:
            self.wfile.write(part)
            self.wfile.flush()
            if self.server.over.wait(pause):
                return

    def drop(self, *, reset=False):
        if reset:
            option = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RD) if reset else None
        self.connection.close() if reset else self.connection.shutdown(socket.SHUT_RDWR)


def answer(question, size=None):
    size = size or question.get("dimensions") or SIZE
    data = [
        {"object": "embedding", "index": i, "embedding": vector(text, size).tolist()}
        for i, text in enumerate(question["input"])
    ]
    return {"object": "list", "data": data, "model": question["model"], "usage": {}}


def well(handler, question):
    handler.say(json.dumps(answer(question)))


def changed(change):
    """A good answer that *change* was done to, in place or by the answer that it returns."""

    def behave(handler, question):
        good = answer(question)
        other = change(good["data"], good)
        handler.say(json.dumps(other if isinstance(other, dict) and "data" in other else good))

    return behave


def status(number, body='{"error": {"message": "no", "code": "some_code"}}', **headers):
    return lambda handler, _: handler.say(body, number, **headers)


def in_base64(handler, question):
    good = answer(question)
    for item in good["data"]:
        packed = np.array(item["embedding"], dtype="<f4").tobytes()
        item["embedding"] = base64.b64encode(packed).decode()
    handler.say(json.dumps(good))


def zipped(handler, question):
    handler.say(gzip.compress(json.dumps(answer(question)).encode()), Content_Encoding="gzip")


def in_reverse(data, _):
    data.reverse()


def in_chunks(handler, question):
    body = json.dumps(answer(question)).encode()
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    parts = [body[i : i + 50] for i in range(0, len(body), 50)]
    for part in [*parts, b""]:
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))


def to_the_end(handler, question):
    """No length: the answer ends with the connection."""
    handler.close_connection = True
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + json.dumps(answer(question)).encode())


def then_hang_up(handler, question):
    """Promise to keep the connection, and close it behind the answer."""
    well(handler, question)
    handler.close_connection = True


def cut(handler, question):
    body = json.dumps(answer(question))
    handler.say(body[: len(body) // 2])


def short(handler, question):
    """Fewer bytes than promised."""
    body = json.dumps(answer(question))
    handler.say(body[:-20], content_length=len(body))
    handler.drop()


def cut_gzip(handler, question):
    body = gzip.compress(json.dumps(answer(question)).encode())
    handler.say(body[:-12], Content_Encoding="gzip")


def slow_headers(handler, _):
    handler.say_slowly([b"HTTP/1.1 200 OK\r\n", *[b"x: y\r\n"] * 400], 0.05)


def slow_body(handler, _):
    handler.say_slowly([b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", *[b" "] * 400], 0.05)


def silent(handler, _):
    handler.server.over.wait(20)


def huge(handler, _):
    handler.send_response(200)
    handler.send_header("Content-Length", str(1 << 40))
    handler.end_headers()
    while not handler.server.over.is_set():
        handler.wfile.write(b" " * 65_536)


def bomb(handler, _):
    handler.say(gzip.compress(b" " * 50_000_000), Content_Encoding="gzip")


def replaced(value, field="embedding"):
    return changed(lambda data, _: data[0].__setitem__(field, value))


def literal(text):
    """The first number of the answer, as *text* has it."""

    def behave(handler, question):
        good = answer(question)
        good["data"][0]["embedding"][0] = "HERE"
        handler.say(json.dumps(good).replace('"HERE"', text))

    return behave


def http_date(seconds):
    return formatdate(time.time() + seconds, usegmt=True)
