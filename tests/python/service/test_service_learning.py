"""A service learns from bills: the prompt's bill, not only its count, fits the window."""

import threading
from random import Random

import pytest
from service_support import Fake, service_of, text_of

from budgeteer import Calibration, Correction, InvalidArgumentError, Packer
from budgeteer.service import InputValidationError, LlmSettings, RetrievalService
from budgeteer.window import count_messages

SETTINGS = LlmSettings("acme-7b", context_window=1_000, max_output_tokens=100, counter="words")
PACKER = Packer(1 << 40, dedupe=None, ranking="input")


def service_with(calibration, *chunks, settings=SETTINGS, **options):
    chunks = chunks or [text_of(40)] * 60
    return RetrievalService(
        Fake(*chunks), settings, packer=PACKER, calibration=calibration, **options
    )


def raw_count(result, settings=SETTINGS):
    return count_messages(result.messages, counter=settings.counter, model=settings.model)


def correction_of(calibration):
    return calibration.correction("acme-7b", counter="words")


@pytest.mark.usefixtures("backend")
def test_no_data_changes_nothing():
    """A calibration that has seen nothing leaves every figure as it is."""
    result = service_with(Calibration()).retrieve("tea")

    assert service_with(None).retrieve("tea").to_dict() == result.to_dict()


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("system", ["", "Answer from the context."])
@pytest.mark.parametrize(("scale", "frame"), [(1.0, 60), (1.5, 0), (2.75, 130), (4.0, 7)])
def test_the_bill_fits(scale, frame, system):
    """The input is the bound of the bill, the frame once and the scale for all of it."""
    calibration = Calibration()
    for count in (100, 400, 900):
        bill = frame + int(count * scale)
        calibration.observe(count, bill, model="acme-7b", counter="words")
    correction = correction_of(calibration)
    assert (scale, frame) == (correction.scale, correction.frame_tokens)
    service = service_with(calibration, system_prompt=system)

    for query in ("tea", text_of(90)):
        result = service.retrieve(query)
        tokens = result.tokens
        assert correction.bound(raw_count(result)) == tokens.input
        assert tokens.input + tokens.output <= tokens.context_window
        assert tokens.input + tokens.remaining == 900
        assert tokens.remaining < scale * 50
        assert not tokens.is_exact


def test_it_learns_from_bills():
    """After some requests no bill is above the window, and little of the window is unused."""
    random, calibration = Random(18), Calibration()
    service, bills = service_with(calibration), []
    for _ in range(120):
        result = service.retrieve(text_of(random.randrange(1, 200)))
        bills.append(45 + int(1.6 * raw_count(result)))
        service.observe(result, bills[-1])

    assert 900 < max(bills[:3])
    assert max(bills[20:]) <= 900
    assert min(bills[20:]) > 750


def test_a_service_observes_raw_counts():
    """What is learned is the count before any correction, exactly, each time."""
    calibration = Calibration()
    service, seen = service_with(calibration), []
    for times in (2, 3, 2, 1):
        result = service.retrieve("tea")
        seen.append((raw_count(result), times * raw_count(result)))
        service.observe(result, seen[-1][1])

    [pairs] = calibration._models.values()
    assert sorted(seen) == sorted(pairs)


def test_services_share_a_calibration():
    """What one service was taught, another one uses from its next bill on."""
    calibration = Calibration()
    one, other = service_with(calibration), service_with(calibration)
    result, before = one.retrieve("tea"), other.retrieve("tea")
    one.observe(result, 2 * raw_count(result))

    assert before.tokens.input == other.retrieve("tea").tokens.input
    other.observe(before, 2 * raw_count(before))
    assert 2 == correction_of(calibration).scale
    assert raw_count(other.retrieve("tea")) < raw_count(before) * 0.6


def test_a_new_service_begins_with_what_is_known(tmp_path):
    """A service of a new process starts where the last one was."""
    calibration = Calibration()
    calibration.observe(500, 1_000, model="acme-7b", counter="words")
    calibration.save(tmp_path / "bills")
    result = service_with(Calibration.load(tmp_path / "bills")).retrieve("tea")

    assert 2 * raw_count(result) == result.tokens.input <= 900


def test_settings_may_change():
    """Other settings have pairs of their own; a result of the old model is refused."""
    calibration = Calibration()
    service = service_with(calibration)
    old = service.retrieve("tea")
    service.observe(old, 2 * raw_count(old))
    service.settings = LlmSettings("acme-9b", context_window=1_000, counter="words")
    new = service.retrieve("tea")

    assert raw_count(new) == new.tokens.input
    with pytest.raises(InvalidArgumentError, match="'acme-9b' of the settings, not 'acme-7b': "):
        service.observe(old, 900)
    service.settings = SETTINGS
    assert 2 == correction_of(calibration).scale
    assert raw_count(service.retrieve("tea")) < raw_count(old) * 0.6


def test_a_window_without_a_model():
    """Without a model the pairs are kept for the counter."""
    calibration = Calibration()
    settings = LlmSettings(context_window=1_000, max_output_tokens=0)
    service = service_with(calibration, settings=settings)
    result = service.retrieve("tea")
    service.observe(result, 2 * result.tokens.input)

    assert 2 == calibration.correction("o200k_base").scale


def test_a_frame_that_fills_the_window():
    """A request is refused before retrieving if the frame leaves nothing."""
    calibration = Calibration()
    for count in (100, 400):
        calibration.observe(count, 2_000 + count, model="acme-7b", counter="words")
    service = service_with(calibration)

    with pytest.raises(InputValidationError, match=r"message_tokens 200. = "):
        service.retrieve("tea")


def test_a_native_counter_stays_quick():
    """A correction of a counter that is not the caller's own does not send work to threads."""
    calibration = Calibration()
    calibration.observe(500, 1_000, model="acme-7b", counter="words")
    calibration.observe(500, 1_000, model="acme-7b", counter=len)
    own = LlmSettings("acme-7b", context_window=1_000, counter=len)

    assert not service_with(calibration)._active.is_slow
    assert service_with(calibration, settings=own)._active.is_slow


def test_a_bill_does_not_undo_a_change_of_settings():
    """Threads that observe never bring back settings that another one replaced."""
    calibration = Calibration()
    service = service_with(calibration)
    result = service.retrieve("tea")
    is_over, wrong = threading.Event(), []

    def observe():
        random = Random(18)
        while not is_over.is_set():
            service.observe(result, raw_count(result) * random.randrange(100, 200) // 100)

    threads = [threading.Thread(target=observe) for _ in range(3)]
    for thread in threads:
        thread.start()
    for window in range(1_000, 1_150):
        mine = LlmSettings("acme-7b", context_window=window, counter="words")
        service.settings = mine
        if service.settings is not mine:
            wrong.append(window)
    is_over.set()
    for thread in threads:
        thread.join()

    assert not wrong
    assert service.settings is mine


def test_without_a_calibration():
    """A service that learns nothing says so, and what it needs."""
    service = service_of("tea")
    with pytest.raises(InvalidArgumentError, match=r"^this service has no calibration: Retriev"):
        service.observe(service.retrieve("tea"), 9)


@pytest.mark.parametrize("bad", [None, "result", {"tokens": 3}], ids=repr)
def test_no_result(bad):
    """A result is what the service returned."""
    with pytest.raises(InvalidArgumentError, match=r"^result must be a RetrievalResult, not "):
        service_with(Calibration()).observe(bad, 9)


@pytest.mark.parametrize("bad", [0, None, 1.5, 10**9], ids=repr)
def test_no_bill(bad):
    """A bill is refused as by the calibration, and nothing is learned."""
    calibration = Calibration()
    service = service_with(calibration)
    with pytest.raises(InvalidArgumentError, match=r"^billed must be "):
        service.observe(service.retrieve("tea"), bad)

    assert correction_of(calibration) is None


@pytest.mark.parametrize("bad", ["bills.json", {}, Correction(1.0, 0, 1), Calibration], ids=repr)
def test_no_calibration(bad):
    """A calibration is one, or None."""
    with pytest.raises(InvalidArgumentError, match=r"^calibration must be a Calibration or None"):
        service_with(bad)
