"""The deadline of a request holds while its chunks are packed, too."""

import asyncio
import time

import pytest
from service_support import SETTINGS, Fake
from support import sharing_texts

from budgeteer import Packer, Template
from budgeteer.service import LlmSettings, RetrievalService, RetrievalTimeoutError

LATE = "the deadline of {:g} seconds passed before the chunks were packed"


class Slow:
    """Writes chunks, and takes its time once it is told to."""

    seconds = 0.0

    def __call__(self, chunk):
        time.sleep(self.seconds)
        return chunk


@pytest.mark.parametrize("is_async", [False, True])
def test_packing_ends_at_the_deadline(backend, is_async):
    """A request whose packing is late is a timeout, and no more chunks are written for it."""
    slow = Slow()
    retriever = Fake(*[f"Green tea number {i}." for i in range(500)])
    packer = Packer(10**6, template=Template(slow), ranking="input")
    service = RetrievalService(retriever, SETTINGS, packer=packer)
    retrieve = service.retrieve
    if is_async:
        retrieve = lambda *given, **named: asyncio.run(service.aretrieve(*given, **named))  # noqa: E731

    assert retrieve("tea", timeout=60).packing.kept
    slow.seconds = 0.01
    began = time.perf_counter()
    with pytest.raises(RetrievalTimeoutError) as late:
        retrieve("tea", timeout=0.2)
    assert LATE.format(0.2) == str(late.value)
    assert time.perf_counter() - began < 2  # 500 chunks take five seconds
    assert (1, 1) == (service.stats().answered, service.stats().timed_out)


def test_native_packing_ends_at_the_deadline(native):
    """Native code with work for much longer stops, too; nothing else looks at the time then."""
    settings = LlmSettings("gpt-4", context_window=10**9, max_output_tokens=500)
    packer = Packer(10**9, ranking="input", dedupe="near")
    service = RetrievalService(Fake(*sharing_texts(15_000)), settings, packer=packer, limit=15_000)
    with pytest.raises(RetrievalTimeoutError):
        service.retrieve("tea", timeout=0.05)
    assert 1 == service.stats().timed_out
