"""The example of an HTTP service runs, and answers over loopback."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from budgeteer.window import count_messages

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def url():
    """Start the service on a port of its own, and stop it at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES), "retrieval_api:app"]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("BUDGETEER_LLM_")
    }
    with subprocess.Popen(
        [*command, "--port", str(port), "--log-level", "warning"],
        env={
            **environment,
            "BUDGETEER_LLM_MODEL": "gpt-4",
            "BUDGETEER_LLM_MAX_OUTPUT_TOKENS": "9",
        },
    ) as process:
        address = f"http://127.0.0.1:{port}"
        try:
            wait_for(address, process)
            yield address
        finally:
            process.terminate()
            process.wait(30)


def wait_for(address, process):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            call(f"{address}/stats")
        except urllib.error.URLError:  # noqa: PERF203
            time.sleep(0.1)
        else:
            return
    pytest.fail("the service did not start")


def call(address, body=None, method=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(address, data, headers, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_a_query(url):
    """A query is answered with messages that fit, the best section first."""
    status, answer = call(f"{url}/retrieve", {"query": "What is the remote work policy?"})

    assert 200 == status
    assert "Remote Work Policy" in answer["packing"]["text"]
    assert answer["messages"][1]["content"].endswith("What is the remote work policy?")
    total = count_messages(answer["messages"], model="gpt-4")
    assert total == answer["tokens"]["input"] <= 8192 - 9


def test_many_queries_at_once(url):
    """Many at once get what each gets alone."""
    queries = [f"{word} policy" for word in ("remote", "travel", "security", "holiday")]
    expected = [call(f"{url}/retrieve", {"query": query}) for query in queries]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda q: call(f"{url}/retrieve", {"query": q}), queries * 10))

    assert expected * 10 == found


def test_a_huge_query(url):
    """What leaves nothing is refused as too large, with the arithmetic."""
    status, answer = call(f"{url}/retrieve", {"query": "tea " * 20_000})

    assert (413, "InputValidationError") == (status, answer["error"])
    assert "nothing is left for retrieval: context_window 8192" in answer["message"]
    assert call(f"{url}/stats")[1]["rejected"] >= 1


def test_halves_of_characters(url):
    """What JSON can spell and no answer could hold is refused, in queries and names."""
    for path, body, method in [
        ("retrieve", {"query": "tea \ud800"}, "POST"),
        ("model", {"model": "\ud800"}, "PUT"),
    ]:
        status, answer = call(f"{url}/{path}", body, method)
        assert (422, "RequestValidationError") == (status, answer["error"])
        assert answer["message"].startswith("body.")


def test_a_swap(url):
    """The model is changed while the service runs; a bad one is refused and changes nothing."""
    assert (200, {"model": "gpt-4o", "context_window": 128_000}) == call(
        f"{url}/model", {"model": "gpt-4o"}, "PUT"
    )
    assert 422 == call(f"{url}/model", {"model": ""}, "PUT")[0]
    assert 128_000 == call(f"{url}/retrieve", {"query": "q"})[1]["tokens"]["context_window"]
    assert 200 == call(f"{url}/model", {"model": "gpt-4", "max_output_tokens": 9}, "PUT")[0]


def test_a_misspelt_field(url):
    """A field that is not there is an error that names it, and changes nothing."""
    for path, body, method in (
        ("retrieve", {"query": "tea", "querry": "rye"}, "POST"),
        ("model", {"model": "gpt-4o", "max_output_token": 9}, "PUT"),
    ):
        status, answer = call(f"{url}/{path}", body, method)
        assert 422 == status
        assert f"body.{[*body][1]}: Extra inputs are not permitted" == answer["message"]
