"""Files of calibrations: written whole, read back, and refused where they are damaged."""

import errno
import json
import os

import pytest
from calibration_support import MODEL, pairs_of, taught
from hypothesis import given
from hypothesis import strategies as st

from budgeteer import Calibration, InvalidArgumentError


@given(pairs_of())
def test_a_file_brings_all_back(tmp_path_factory, pairs):
    """What was saved is learned again, and saved again it is the same file."""
    path = tmp_path_factory.getbasetemp() / "bills.json"
    calibration = taught(pairs)
    calibration.observe(8, 9, model='"é\n', counter=len)
    calibration.save(path)
    data = path.read_bytes()
    loaded = Calibration.load(str(path))
    loaded.save(path)

    assert data == path.read_bytes()
    assert calibration.correction(MODEL) == loaded.correction(MODEL)
    assert calibration.counter('"é\n', counter=len) == loaded.counter('"é\n', counter=len)


def test_a_file_leaves_the_quantile_open(tmp_path):
    """The quantile is the reader's."""
    taught([(1_000 + i, 1_000 + 100 * i) for i in range(10)]).save(tmp_path / "bills")

    assert 1.9 > Calibration.load(tmp_path / "bills", quantile=0.5).correction(MODEL).scale
    assert 1.8 < Calibration.load(tmp_path / "bills").correction(MODEL).scale


GOOD = b'{"version": 1, "models": {"m": {"pairs": [[1000, 1100], [2000, 2200]]}}}'


@given(st.integers(0, len(GOOD) - 1), st.binary(max_size=3))
def test_a_damaged_file(tmp_path_factory, at, put):
    """A file that was cut or changed is read or refused by a typed error, never half read."""
    path = tmp_path_factory.getbasetemp() / "damaged.json"
    for data in (GOOD[:at], GOOD[:at] + put + GOOD[at + 1 :]):
        path.write_bytes(data)
        try:
            models = Calibration.load(path)._models
        except InvalidArgumentError:
            continue
        assert json.loads(data)["models"].keys() == models.keys()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "line 1, column 1: invalid JSON"),
        (b"\xff{}", "line 1: not UTF-8"),
        (b"[" * 100_000, "line 1: invalid JSON: nested too deeply"),
        (b"[]", "it must be an object with an object 'models'"),
        (b'{"models": {}}', "its version must be 1, not None"),
        (b'{"models": {}, "version": 2}', "its version must be 1, not 2"),
        (b'{"models": {"m": 3}, "version": 1}', "models['m'] must be an object with a list"),
        (
            b'{"models": {"m": {"pairs": [[9, 9], [9]]}}, "version": 1}',
            "models['m']: pairs[1] must be a list of two numbers",
        ),
        (
            b'{"models": {"m": {"pairs": [[9, 0]]}}, "version": 1}',
            "models['m']: pairs[0]: billed must be from 1 to",
        ),
    ],
)
def test_a_wrong_file(tmp_path, data, message):
    """The error names the file and the place."""
    path = tmp_path / "bills"
    path.write_bytes(data)
    with pytest.raises(InvalidArgumentError) as caught:
        Calibration.load(path)

    assert str(caught.value).startswith(f"{str(path)!r}: {message}")


@pytest.mark.parametrize("bad", [None, 3, [], b"bills"], ids=repr)
def test_no_path(bad):
    """A path is a str or a path."""
    for use in (Calibration.load, Calibration().save):
        with pytest.raises(InvalidArgumentError, match=r"^path must be a str or a path, not "):
            use(bad)
        for name in ("", "a\0b"):
            with pytest.raises(InvalidArgumentError, match=r"^path must be the name of a file"):
                use(name)


def test_a_file_that_is_not_there(tmp_path):
    """A first run has no file, and can tell that from damage."""
    with pytest.raises(FileNotFoundError):
        Calibration.load(tmp_path / "bills")
    path = str(tmp_path / "missing/bills")
    with pytest.raises(FileNotFoundError, match="missing") as caught:
        Calibration().save(path)
    assert path == caught.value.filename  # not a file beside it


def test_a_write_that_fails_leaves_the_file(tmp_path, monkeypatch):
    """A file is replaced as a whole or not at all, and nothing is left beside it."""
    path = tmp_path / "bills"
    taught([(1_000, 1_100)]).save(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError("the disk is full")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(OSError, match="full"):
                taught([(1_000, 2_000)]).save(path)

        assert before == path.read_bytes()
        assert [path] == [*tmp_path.iterdir()]


@pytest.mark.skipif(os.name == "nt", reason="has no such links and modes")
def test_a_circle_of_links(tmp_path):
    """It is refused as by the system, and stays."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)

    with pytest.raises(OSError, match="symbolic links") as caught:
        taught([(1_000, 1_100)]).save(one)
    assert (errno.ELOOP, str(one)) == (caught.value.errno, caught.value.filename)
    assert {one, other} == {*tmp_path.iterdir()}


@pytest.mark.skipif(os.name == "nt", reason="has no such links and modes")
def test_a_link_stays_one(tmp_path):
    """What it links to is replaced, and keeps its permissions."""
    place, link = tmp_path / "bills", tmp_path / "link"
    place.write_bytes(b"old")
    place.chmod(0o640)
    link.symlink_to(place)

    taught([(1_000, 1_100)]).save(link)

    assert link.is_symlink()
    assert "<Calibration of 1 models, quantile 0.99>" == repr(Calibration.load(place))
    assert 0o640 == place.stat().st_mode & 0o777
