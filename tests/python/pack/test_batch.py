"""pack_batch: packings in order, errors that name their request, threads that end."""

import itertools
import sys
import threading

import numpy as np
import pytest

from budgeteer import Packer
from budgeteer.errors import CounterError, EmbeddingError, InvalidArgumentError
from budgeteer.ranking import Embedding

GOOD = ("tea", ["Green tea.", "Rye bread."])
WORKERS = pytest.mark.parametrize("workers", [None, 1, 2, 5])


def of_ours():
    """Return the threads of batches that are alive."""
    return [one for one in threading.enumerate() if one.name.startswith("budgeteer-pack")]


@WORKERS
def test_in_order(backend, workers):
    """Whoever packs, the packings come in the order of the requests, each as pack's."""
    packer = Packer(20)
    requests = [("tea", [f"{i} cups of tea."] * (1 + 400 * (i % 3 == 0))) for i in range(30)]

    packings = list(packer.pack_batch(iter(requests), workers=workers))

    expected = [packer.pack(*request).to_dict() for request in requests]
    assert expected == [packing.to_dict() for packing in packings]
    assert [] == of_ours()


@WORKERS
def test_an_error_names_its_request(backend, workers):
    """What is wrong with an argument of a request says which request, in its turn."""
    packings = Packer(20).pack_batch([GOOD, ("tea", ["tea", 3]), GOOD], workers=workers)

    assert next(packings).kept
    with pytest.raises(InvalidArgumentError, match=r"^requests\[1\]: chunks\[1\] must be a str"):
        next(packings)
    assert [] == list(packings)
    assert [] == of_ours()


@WORKERS
def test_one_bad_row_loses_no_other(backend, workers):
    """With on_error="yield" the exception stands where the packing would."""
    requests = [GOOD, ("tea", [3]), GOOD, None, {"query": 1, "chunks": []}, GOOD]

    found = list(Packer(20).pack_batch(requests, on_error="yield", workers=workers))

    assert [True, False, True, False, False, True] == [bool(getattr(f, "text", "")) for f in found]
    assert {InvalidArgumentError} == {type(found[place]) for place in (1, 3, 4)}
    assert str(found[1]).startswith("requests[1]: chunks[0] must be a str")
    assert str(found[3]).startswith("requests[3] must be a pair")
    assert "requests[4]: query must be a str, not int" == str(found[4])


@WORKERS
def test_another_s_exception(backend, workers):
    """What a caller's counter raises passes as it is, with a note that names the request."""

    class OwnError(Exception):
        pass

    raised = OwnError("mine")

    def count(text):
        if "bread" in text:
            raise raised
        return len(text)

    packer = Packer(20, counter=count)
    good, bad = packer.pack_batch(
        [("", ["tea"]), ("", ["bread"])], on_error="yield", workers=workers
    )

    assert "tea" == good.text
    assert raised is bad
    assert ("mine",) == bad.args
    if sys.version_info >= (3, 11):
        assert ["in requests[1]"] == bad.__notes__
    with pytest.raises(OwnError):
        list(packer.pack_batch([("", ["bread"])], workers=workers))


@WORKERS
def test_errors_of_ours_keep_their_class(backend, workers):
    """An error of a counter or an embedder is that error, its figures with it."""

    class Endpoint:
        def embed(self, texts):
            raise EmbeddingError("no", status=429, is_retryable=True)

    packer = Packer(9, ranking=Embedding(Endpoint()))
    [error] = packer.pack_batch([GOOD], on_error="yield", workers=workers)
    [answer] = Packer(9, counter=lambda _: -1).pack_batch([GOOD], on_error="yield")

    assert isinstance(error, EmbeddingError)
    assert ("no", 429, True) == (str(error), error.status, error.is_retryable)
    assert isinstance(answer, CounterError)


def test_threads_end_with_the_iterator(backend):
    """A batch that is closed early stops its threads, which are no daemons."""
    packings = Packer(20).pack_batch(itertools.repeat(GOOD), workers=3)
    assert next(packings).kept
    assert 1 <= len(of_ours()) <= 3
    assert not any(one.daemon for one in of_ours())

    packings.close()

    assert [] == of_ours()


@WORKERS
def test_requests_are_not_read_far_ahead(backend, workers):
    """Several threads read twice their number of requests ahead; one reads none."""
    read = itertools.count()
    requests = (GOOD for _ in iter(lambda: next(read), None))
    packings = Packer(20).pack_batch(requests, workers=workers)

    for done in range(1, 20):
        next(packings)
        assert int(repr(read)[6:-1]) == (done if workers in (None, 1) else done - 1 + 2 * workers)
    packings.close()


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (("tea",), "not a tuple of 1"),
        (["tea", [], 5], "not a list of 3: a mapping may have more than query and chunks"),
        (7, "not int"),
    ],
)
def test_no_pair(given, found):
    """A tuple or list of another length is not said to be a tuple, which is allowed."""
    with pytest.raises(InvalidArgumentError, match=r"requests\[0\] must be a pair") as caught:
        next(Packer(5).pack_batch([given]))
    assert str(caught.value).endswith(found)


@WORKERS
@pytest.mark.parametrize("on_error", ["raise", "yield"])
def test_requests_that_fail(backend, workers, on_error):
    """What the requests themselves raise ends the batch, behind what they gave before."""

    def requests():
        yield GOOD
        yield GOOD
        raise OSError("disk")

    packings = Packer(20).pack_batch(requests(), on_error=on_error, workers=workers)

    assert next(packings).kept
    assert next(packings).kept
    with pytest.raises(OSError, match=r"^disk$"):
        next(packings)
    assert [] == of_ours()


def test_spans_stand_in_the_caller_s(backend):
    """A thread packs in the context of the caller, as spans need it."""
    from contextvars import ContextVar

    where = ContextVar("where", default="lost")
    seen = []

    def count(text):
        seen.append(where.get())
        return len(text)

    token = where.set("here")
    list(Packer(20, counter=count).pack_batch([GOOD] * 4, workers=2))
    where.reset(token)

    assert {"here"} == set(seen)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_error": "skip"}, "^on_error must be one of 'raise', 'yield', not 'skip'"),
        ({"on_error": None}, "^on_error must be one of 'raise', 'yield', not None$"),
        ({"workers": 0}, "^workers must be from 1 to 256, not 0$"),
        ({"workers": 257}, "^workers must be from 1 to 256, not 257$"),
        ({"workers": True}, "^workers must be an int, not bool$"),
        ({"workers": "2"}, "^workers must be an int, not str$"),
    ],
)
def test_bad_options(backend, options, message):
    """What pack_batch itself is given is checked before anything is asked for."""
    with pytest.raises(InvalidArgumentError, match=message):
        Packer(5).pack_batch([], **options)


def test_threads_wait_at_the_same_time(backend):
    """Two workers ask an embedder at once: neither waits until the other has its answer."""
    both = threading.Barrier(2, timeout=30)

    class Endpoint:
        def embed(self, texts):
            both.wait()
            return np.ones((len(texts), 2), dtype="float32")

    packings = Packer(20, ranking=Embedding(Endpoint())).pack_batch([GOOD] * 4, workers=2)

    assert 4 == len(list(packings))
