"""``budgeteer pack --output FILE``: a file of requests, packed by several processes."""

from __future__ import annotations

import argparse
import math
import stat
import time
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import budgeteer
from budgeteer import Packer, TokenCounter, _validate
from budgeteer._count.sources import path_of
from budgeteer._files import one_line
from budgeteer._pack.packer import prepared_of
from budgeteer._pack.requests import MAX_WORKERS
from budgeteer.cli._arguments import NONE, OneOf
from budgeteer.cli._packer import packer_of
from budgeteer.cli._part import Part
from budgeteer.cli._progress import Bar
from budgeteer.cli._requests import (
    ENDINGS,
    compressor_of,
    ending_of,
    need,
    opened,
    write_table,
)
from budgeteer.cli._streams import STDIN, Answer, say
from budgeteer.errors import InvalidArgumentError

ENDINGS_LISTED = f"{', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
_FAILED = 2
_PAUSE = 0.2
"""Seconds of work that a kill may cost."""
_ALONE = ("query", "explain", "dropped", "report")
"""The options that are about one answer."""


class Output(OneOf):
    """Checks how an answer is written, or the name of a file for the answers of many requests."""

    meaning = ", or where the answers of many requests are, as the ending of its name says"

    def __call__(self, value: str) -> str:
        if ending_of(value):
            return value
        try:
            return super().__call__(value)
        except argparse.ArgumentTypeError as error:
            before, _, after = str(error).partition(", not ")
            said = f"{before}, or a file that ends in {ENDINGS_LISTED}, not {after}"
        raise argparse.ArgumentTypeError(said)

    @property
    def metavar(self) -> str:
        return f"{super().metavar}|FILE"


def run(arguments: argparse.Namespace) -> Answer:
    """Pack the requests of the input, and write their answers to the output."""
    source, output, workers = _checked(arguments)
    packer = packer_of(arguments)
    run = _run_of(source, packer)
    with closing(Part(output, run)) as part:
        try:
            if not part.state.is_done:
                _pack(part, source, output, workers, packer, arguments.bar)
                changed = [
                    name for name, now in _run_of(source, packer).items() if now != run[name]
                ]
                if changed:
                    what = "the file of --counter" if "--counter" in changed[0] else repr(source)
                    raise InvalidArgumentError(
                        f"{what} was changed while it was read: remove {str(part.folder)!r} "
                        f"and begin anew when nobody writes it"
                    )
                part.state.is_done = True
                part.commit()
            state = part.state
            if output.endswith(".parquet") and not part.is_at_its_place:
                bar: Bar = arguments.bar
                bar.stage("Writing the table")
                with part.rewritten() as (rows, table):
                    for place in write_table(rows, table, state.ids):
                        bar.advance(0, place / max(1, state.size))
            part.finish()
        except KeyboardInterrupt:
            say("budgeteer: stopped; the same command goes on\n")
            raise
    if not state.failed:
        return Answer("")
    said = f"{state.failed} of {state.requests} requests could not be packed; {output!r} says why"
    return Answer("", one_line(f"budgeteer: error: {said}") + "\n", _FAILED)


def _checked(arguments: argparse.Namespace) -> tuple[str, str, int]:
    """Return input, output and the number of workers."""
    for name in _ALONE:
        value = getattr(arguments, name)
        if value is not None and value is not False:
            raise InvalidArgumentError(f"--{name} does nothing with --output FILE: leave it out")
    source, output = arguments.input, arguments.output
    workers = 1 if arguments.workers is None else arguments.workers
    workers = _validate.whole("--workers", workers, 1, MAX_WORKERS)
    if source == STDIN:
        raise InvalidArgumentError(
            f"--input must be a file that ends in {ENDINGS_LISTED} with --output FILE: standard "
            f"input cannot be read again after a stop, so save it to a file first"
        )
    if ending_of(source) is None:
        raise InvalidArgumentError(
            f"--input must end in {ENDINGS_LISTED} with --output FILE, not {source[-80:]!r}"
        )
    if not stat.S_ISREG(Path(source).stat().st_mode):
        raise InvalidArgumentError(
            f"--input must be a file, not {source!r}, which cannot be read again after a stop"
        )
    if Path(output).exists() and Path(output).samefile(source):
        raise InvalidArgumentError("--output must not be the input: give another name")
    need(source)
    need(output)
    return source, output, workers


def _run_of(source: str, packer: Packer) -> dict[str, str]:
    """Return what the rows depend on."""
    counter = prepared_of(packer).counter
    run = {
        "the version of budgeteer": budgeteer.__version__,
        "the ending of --input": f"{ending_of(source)}",
        **_about("--input", source),
        **_about("--counter's file", _file_of(counter)),
    }
    values = {
        option.name: getattr(packer, option.name) for option in fields(packer) if option.init
    }
    values["counter"] = counter.name  # whichever way it was given
    for name, value in values.items():
        run[f"--{name.replace('_', '-')}"] = NONE if value is None else f"{value}"
    return run


def _about(name: str, file: str | None) -> dict[str, str]:
    """Return what is another once a file is changed."""
    about = None if file is None else Path(file).stat()
    return {
        f"the size of {name}": NONE if about is None else f"{about.st_size}",
        f"the time of {name}'s last change": NONE if about is None else f"{about.st_mtime_ns}",
    }


def _file_of(counter: TokenCounter) -> str | None:
    """Return the file by which a counter counts; None if there is none."""
    path = path_of(counter._kind, counter._function)  # noqa: SLF001 - of this package
    if path is None:
        return None
    from budgeteer._count.files import file_of  # few have a tokenizer of their own

    return file_of(path)


def _pack(part: Part, source: str, output: str, workers: int, packer: Packer, bar: Bar) -> None:
    """Append the rows of the requests that are left."""
    from budgeteer.cli._workers import answers

    state = part.state
    if state.requests:
        say(f"budgeteer: going on after {state.requests} requests\n")
    endings = f"{ending_of(source)}", f"{ending_of(output)}"
    with opened(source, packer) as requests:
        bar.stage("Packing")
        saved = -math.inf
        batches = requests.batches(state.place, state.line)
        with closing(answers(batches, workers, packer, *endings)) as found:
            for batch, rows in found:
                part.append(rows.data)
                state.place, state.line = batch.end, batch.first + batch.lines
                state.requests += rows.requests
                state.failed += rows.failed
                state.ids |= rows.ids
                bar.advance(rows.requests, requests.share())
                if time.monotonic() - saved > _PAUSE:
                    part.commit()
                    saved = time.monotonic()
    if not state.size:  # of a compressed file, nothing is something
        part.append(compressor_of(endings[1])(b""))
