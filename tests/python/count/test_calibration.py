"""Calibration: what bills teach, within which bounds, and that it never teaches itself."""

import copy
import json
import math
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random

import numpy as np
import pytest
from calibration_support import COUNTS, MODEL, pairs_of, taught
from hypothesis import given
from hypothesis import strategies as st
from support import EXACT

from budgeteer import Calibration, Correction, InvalidArgumentError, get_counter, pack
from budgeteer.window import ModelLimits, count_messages, model_limits

NAN, INF = float("nan"), float("inf")


def learned(pairs, **options):
    return taught(pairs, **options).correction(MODEL)


def share_covered(correction, pairs):
    return sum(billed <= correction.bound(size) for size, billed in pairs) / len(pairs)


# What is fitted.


@given(pairs_of(max_size=32), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_it_covers_its_quantile(pairs, quantile):
    """At least the stated share of the pairs has a bill within the bound."""
    correction = learned(pairs, quantile=quantile)

    assert len(pairs) == correction.pairs
    assert share_covered(correction, pairs) >= quantile


@given(pairs_of())
def test_few_pairs_are_all_covered(pairs):
    """Below a hundred pairs the quantile of 0.99 leaves none out, but for those displaced."""
    correction = learned(pairs)

    if correction.pairs == len(pairs):
        assert 1 == share_covered(correction, pairs)


@given(pairs_of())
def test_it_is_clamped(pairs):
    """Scale and frame are in their ranges, whatever was billed."""
    correction = learned(pairs)

    assert 0.25 <= correction.scale <= 4
    assert 0 == correction.scale * 256 % 1
    assert 0 <= correction.frame_tokens <= 131_072


def test_a_frame_is_clamped():
    """What a frame beyond the range would cover at less is left to the scale."""
    pairs = [(100_000, 500_000), (2_000_000, 2_400_000), (2_100_000, 2_500_000)]
    correction = learned(pairs)

    assert 100_000 < correction.frame_tokens <= 131_072
    assert 1 == share_covered(correction, pairs)


@given(pairs_of(), COUNTS, COUNTS)
def test_a_bound_grows_with_the_count(pairs, one, other):
    """What counts more is bounded by no less."""
    correction = learned(pairs)

    assert correction.bound(min(one, other)) <= correction.bound(max(one, other))
    assert correction.frame_tokens == correction.bound(0)


@given(pairs_of(), st.randoms(use_true_random=False))
def test_the_order_does_not_matter(pairs, random):
    """Pairs that are all kept give one fit, in whatever order they came."""
    shuffled = random.sample(pairs, len(pairs))

    if learned(pairs).pairs == len(pairs):
        assert learned(pairs) == learned(shuffled)


@given(pairs_of(max_size=63))
def test_few_pairs_do_not_lower(pairs):
    """Below 64 pairs the scale is at least 1."""
    assert learned(pairs).scale >= 1


def test_a_narrow_range_does_not_lower():
    """Any number of pairs of about one size leaves the scale at 1; sizes by four lower it."""
    narrow = [(1_000 + i, 500) for i in range(400)]
    thrice = [(n + 8 * i, n // 2 + 4 * i) for n in (700, 2_200) for i in range(32)]
    wide = [(100 + 40 * i, 50 + 20 * i) for i in range(100)]

    assert 1 == learned(narrow).scale
    assert 1 == learned(thrice).scale
    assert 1 == learned(wide[:60]).scale
    assert 0.5 == learned(wide).scale


def test_some_stray_sizes_do_not_lower():
    """The smallest and largest tenth of the sizes are no range."""
    pairs = [(1_000 + i % 24, 500) for i in range(32)] + [(600, 300)] * 32 + [(9_000, 4_500)] * 6

    assert 1 == learned(pairs).scale


def test_no_data_is_not_no_drift():
    """None says that nothing was seen, and a scale of 1 without a frame that nothing drifts."""
    assert Calibration().correction(MODEL) is None
    assert Correction(1.0, 0, 1) == learned([(8_000, 8_000)])


@pytest.mark.parametrize("scale", [1.0, 1.25, 2.0, 3.5])
@pytest.mark.parametrize("frame", [0, 7, 2_000, 60_000])
def test_a_line_is_found(scale, frame):
    """Without noise the fit is the line that made the bills, from two sizes on."""
    pairs = [(n, frame + math.ceil(n * scale)) for n in (1_000, 4_000, 40_000)]

    for seen in (pairs, pairs[:2], pairs[1:]):
        found = learned(seen)
        assert (scale, frame) == (found.scale, found.frame_tokens)


def test_one_size_is_taken_for_scale():
    """Where nothing tells them apart the scale takes all that it can, which errs high."""
    assert Correction(1.5, 0, 2) == learned([(1_000, 1_400), (1_100, 1_650)])
    assert Correction(4.0, 1_000, 1) == learned([(1_000, 5_000)])


def test_a_drift_below_a_step_is_a_frame():
    """A counter that is exact stays so beside the tokens of a frame that changes."""
    random = Random(18)
    pairs = [(n, n + random.choice([7, 11, 30])) for n in random.sample(range(300, 9_000), 300)]

    assert (1.0, 30) == (learned(pairs).scale, learned(pairs).frame_tokens)
    assert (1.0, 30) == (learned([(8_000, 8_030)]).scale, learned([(8_000, 8_030)]).frame_tokens)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.1])
def test_bills_without_the_cache_do_not_lower(share):
    """A tenth of bills that are far too low changes the bound of the others by little."""
    random = Random(18)
    sizes = [round(200 * 500 ** random.random()) for _ in range(400)]
    pairs = [(n, 400 + int(n * random.uniform(1.2, 1.3))) for n in sizes]
    mixed = [(n, n // 5 + 1) if random.random() < share else (n, billed) for n, billed in pairs]
    correction = learned(mixed)

    assert share_covered(correction, pairs) >= 0.97
    assert 1.15 <= correction.scale <= 1.4
    assert correction.frame_tokens <= 600


def test_bills_of_another_model_count_as_seen():
    """A tenth of bills at twice the tokens is covered, and costs no more than those bills."""
    random = Random(18)
    sizes = [round(200 * 500 ** random.random()) for _ in range(300)]
    pairs = [(n, (100 + n) * (2 if i % 10 == 0 else 1)) for i, n in enumerate(sizes)]
    correction = learned(pairs)

    assert share_covered(correction, pairs) >= 0.98
    assert all(correction.bound(n) <= 2.1 * (100 + n) for n in sizes)


def test_a_bill_that_left_is_forgotten():
    """The newest 32 pairs of a size decide: an outlier goes when they have come."""
    pairs = [(1_100, 3_300), *[(1_100 + i, 1_100 + i) for i in range(32)]]

    assert 3 == learned(pairs[:32]).scale
    assert Correction(1.0, 0, 32) == learned(pairs)


def test_small_requests_do_not_displace_large_ones():
    """What was seen of a large request stays, however many small ones follow."""
    calibration = taught([(40_000, 60_000)] + [(20 + i % 10, 20 + i % 10) for i in range(5_000)])

    assert calibration.correction(MODEL).bound(40_000) >= 60_000


def test_memory_is_bounded(tmp_path):
    """However many pairs and models are observed, the file that holds them all stays small."""
    calibration = Calibration()
    random = Random(18)
    for i in range(30_000):
        size = 1 << random.randrange(26)
        calibration.observe(size, size, model=f"chars_per_token:{2 + i % 300}")
    calibration.save(tmp_path / "bills")
    models = json.loads((tmp_path / "bills").read_text())["models"]

    assert 256 == len(models)
    assert "chars_per_token:2" not in models or "chars_per_token:301" in models
    assert all(len(fields["pairs"]) <= 32 * 26 for fields in models.values())


def test_what_was_not_observed_for_longest_goes():
    """Of more than 256 models the one that was observed last stays."""
    calibration = Calibration()
    names = [f"chars_per_token:{i}" for i in range(1, 258)]
    for name in [*names[:256], names[0], names[256]]:
        calibration.observe(9, 9, model=name)

    assert [names[1]] == [name for name in names if calibration.correction(name) is None]


# What is refused.


@pytest.mark.parametrize("name", ["estimated", "billed"])
@pytest.mark.parametrize("bad", [None, True, 1.0, NAN, INF, "9", [9], np.float64(9)], ids=repr)
@pytest.mark.parametrize("by", ["calibration", "counter"])
def test_numbers_are_ints(name, bad, by):
    """A count and a bill are ints; nothing else is learned."""
    calibration = Calibration()
    counts = {"estimated": 100, "billed": 100} | {name: bad}
    observe = partial(calibration.observe, model=MODEL)
    if by == "counter":
        observe = calibration.counter(MODEL).observe
    with pytest.raises(InvalidArgumentError, match=rf"^{name} must be an int, not "):
        observe(**counts)

    assert calibration.correction(MODEL) is None


@pytest.mark.parametrize(
    ("estimated", "billed", "message"),
    [
        (0, 1, "estimated must be from 1 to"),
        (-5, 1, "estimated must be from 1 to"),
        ((1 << 25) + 1, 1 << 25, "estimated must be from 1 to 33554432, not 33554433"),
        (1, 0, "billed must be from 1 to"),
        (1, -7, "billed must be from 1 to"),
        (1, 10**400, "billed must be from 1 to"),
        (10, 131_113, "billed must be at most 4 * 10 + 131072 = 131112 for a count of 10, not"),
        (50_000, 12, "billed must be at least a tenth of the count 50000, not 12: a bill has the"),
    ],
)
def test_pairs_out_of_reach(estimated, billed, message):
    """What no correction can cover, and a bill without cached tokens, is refused."""
    calibration = taught([(1_000, 1_100)])
    before = calibration.correction(MODEL)
    with pytest.raises(InvalidArgumentError) as caught:
        calibration.observe(estimated, billed, model=MODEL)

    assert str(caught.value).startswith(message)
    assert before == calibration.correction(MODEL)


@pytest.mark.parametrize("bad", [0.49, 1.01, 99, -1, INF, NAN, None, "0.9", True], ids=repr)
def test_quantile_out_of_range(bad):
    """A quantile is a number from 0.5 to 1."""
    with pytest.raises(InvalidArgumentError, match=r"^quantile must be "):
        Calibration(quantile=bad)


@pytest.mark.parametrize("bad", [None, 3, "nobody", ["gpt-4o"]], ids=repr)
def test_no_model(bad):
    """A model is what `get_counter` takes."""
    for use in (Calibration().correction, Calibration().counter):
        with pytest.raises(InvalidArgumentError, match=r"^counter must be "):
            use(bad)


def test_numpy_ints_are_ints():
    """A count from an array is a count."""
    assert Correction(1.0, 0, 1) == learned([(np.int64(8_000), np.int32(8_000))])


def test_a_bound_is_of_a_count():
    """The bound of something else is an error."""
    with pytest.raises(InvalidArgumentError, match=r"^estimated must be an int, not float$"):
        Correction(1.5, 3, 9).bound(2.0)


# Models and counters.


def test_counters_of_one_model_are_kept_apart():
    """Pairs belong to a model and to what counted; neither stands for another."""
    calibration = taught([(1_000, 2_000)], model="qwen3-32b")

    assert calibration.correction("qwen3-32b").scale == 2
    assert calibration.correction("qwen3-32b", counter=MODEL) is None
    assert calibration.correction("qwen3-14b") is None
    assert calibration.correction(model_limits("qwen3-32b")).scale == 2
    limits = ModelLimits("qwen3-32b", 9, 9, None, "o200k_base", 1.25, None, True, "own")
    assert calibration.correction(limits) is None


def test_a_function_is_kept_under_its_name():
    """A caller's own function counts by its name, beside a model if one is given."""
    calibration = Calibration()
    calibration.observe(100, 150, model=len)
    calibration.observe(100, 350, model="gpt-4o", counter=len)

    assert calibration.counter(get_counter(len)).count("x" * 100) == 150
    assert calibration.counter("gpt-4o", counter=len).count("x" * 100) == 350
    assert calibration.counter("gpt-4o").is_exact


@given(st.text(max_size=200), st.integers(1_000, 4_000))
def test_a_counter_multiplies(text, billed):
    """A corrected count is the scale times the count, rounded up, one by one and in batches."""
    calibration = taught([(1_000, billed)])
    scale = calibration.correction(MODEL).scale
    raw, counter = get_counter(MODEL), calibration.counter(MODEL)
    expected = math.ceil(raw.count(text) * scale)  # exact: 1/256 is a float

    assert expected == counter.count(text)
    assert [expected] == counter.count_batch([text]).tolist()
    assert expected == counter.count_till_limit(text, expected)
    assert (expected == 0) == (text == "")


@pytest.mark.parametrize("model", ["chars_div4", "words", *EXACT])
def test_no_drift_keeps_the_counter(model):
    """Without data, and without drift, it is the model's own counter, as exact as that is."""
    calibration = Calibration()
    assert get_counter(model) == calibration.counter(model)

    calibration.observe(8_000, 8_030, model=model)
    assert get_counter(model) == calibration.counter(model)

    calibration.observe(8_000, 9_000, model=model)
    assert not calibration.counter(model).is_exact
    assert get_counter(model).name == calibration.counter(model).name


@pytest.mark.usefixtures("backend")
@given(st.lists(st.text(max_size=60), max_size=9), st.integers(0, 90), st.integers(300, 4_000))
def test_a_packing_keeps_the_budget(texts, budget, billed):
    """The law holds under a corrected counter, and so does the bound of the bill."""
    calibration = taught([(1_000, billed), (4_000, 4 * billed - 20)])
    counter, correction = calibration.counter(MODEL), calibration.correction(MODEL)
    packing = pack(
        "tea", texts, budget + correction.frame_tokens, counter=counter, ranking="input",
        reserve_tokens=correction.frame_tokens,
    )  # fmt: skip

    assert counter.count(packing.text) == packing.total_tokens <= budget
    most = correction.bound(get_counter(MODEL).count(packing.text))
    assert most <= budget + correction.frame_tokens


def test_a_counter_never_changes():
    """What is learned later is in later counters only."""
    calibration = taught([(1_000, 1_500)])
    counter = calibration.counter(MODEL)
    counter.observe(1_500, 3_000)

    assert (6, 12) == (counter.count("x" * 16), calibration.counter(MODEL).count("x" * 16))


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_a_copy_teaches_nothing(scale):
    """A copy of another process counts alike, and says that nobody would learn from it."""
    counter = taught([(1_000, int(scale * 1_000))]).counter(MODEL)
    for other in (pickle.loads(pickle.dumps(counter)), copy.deepcopy(counter)):
        assert counter == other
        assert hash(counter) == hash(other)
        assert counter.count("x" * 99) == other.count("x" * 99)
        with pytest.raises(InvalidArgumentError, match="has no calibration to teach"):
            other.observe(10, 10)


def test_a_counter_without_a_calibration_says_so():
    """`get_counter` makes counters that learn nothing."""
    with pytest.raises(InvalidArgumentError, match=r"^counter 'words' has no calibration to tea"):
        get_counter("words").observe(10, 10)


# It never teaches itself.


@pytest.mark.parametrize("pairs", [[], [(1_000, 1_000)], [(1_000, 2_000)]])
def test_a_corrected_counter_is_not_corrected_again(pairs):
    """A counter that a calibration made is refused as one to correct."""
    calibration = taught(pairs)
    counter = calibration.counter(MODEL)
    for use in (calibration.correction, calibration.counter, Calibration().counter):
        with pytest.raises(InvalidArgumentError, match=r"^model must not be a counter that a cal"):
            use(counter)
        with pytest.raises(InvalidArgumentError, match=r"^counter must not be a counter that a c"):
            use(MODEL, counter=counter)
    with pytest.raises(InvalidArgumentError, match=r"^model must not be"):
        calibration.observe(1_000, 2_000, model=counter)


@given(st.integers(1, 8_000_000), st.integers(1_000, 4_000))
def test_a_corrected_count_is_taken_back(raw, billed):
    """From a scale of 1 on, what the counter observes is the very count before the correction."""
    calibration = taught([(1_000, billed)])
    scale = calibration.correction(MODEL).scale
    calibration.counter(MODEL).observe(math.ceil(raw * scale), raw)

    assert [raw, raw] in kept(calibration)


def kept(calibration):
    """Return the pairs that a calibration has of the model."""
    return [list(pair) for pair in calibration._models[MODEL]]


# Threads and processes.


def test_threads_share_it(tmp_path):
    """Threads that observe, fit, count and save at once lose nothing."""
    calibration = Calibration()
    start = threading.Barrier(8)

    def work(n):
        start.wait()
        for i in range(200):
            size = 1_000 * (n + 1) + i
            calibration.observe(size, 2 * size, model=f"chars_per_token:{2 + n}")
            calibration.observe(size, 2 * size, model=MODEL)
            assert calibration.counter(MODEL).count("x" * 400) == 200
            if i % 50 == 0:
                calibration.save(tmp_path / "bills")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))

    assert 9 == len(calibration._models)
    assert Calibration.load(tmp_path / "bills").correction(MODEL).scale == 2
    assert [tmp_path / "bills"] == [*tmp_path.iterdir()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_is_not_locked_out():
    """A child that was forked while a thread held the lock observes all the same."""
    calibration = Calibration()
    held, done = threading.Event(), threading.Event()

    def hold():
        with calibration._lock:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = os.fork()
    if child == 0:
        calibration.observe(1_000, 1_000, model=MODEL)
        os._exit(7)
    done.set()
    thread.join()

    assert 7 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_messages_count_once():
    """The frame is no part of the counts that messages add up."""
    calibration = taught([(1_000, 5_000), (4_000, 8_000)])
    messages = [{"role": "user", "content": "Green tea."}] * 3

    assert Correction(1.0, 4_000, 2) == calibration.correction(MODEL)
    assert count_messages(messages, counter=MODEL) == count_messages(
        messages, counter=calibration.counter(MODEL)
    )
