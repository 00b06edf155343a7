"""What the processes of a cluster run: batches of a table, packed one by one."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any
from uuid import uuid4

from budgeteer import _validate
from budgeteer._pack.state import Indexed
from budgeteer._table.table import ANSWERED, TablePacker
from budgeteer.errors import InvalidArgumentError

_JOBS = 4
"""How many jobs a process remembers."""


class Columns:
    """
    Packs batches of a table, and keeps some of their columns beside the answers.

    It is made, and its arguments are checked, in the process that asks for the job. It is pickled
    for those that do the work. Each of them restores it once, however many batches it gets:
    options are prepared and a corpus is opened once a process.
    """

    def __init__(
        self, max_tokens: int, query: Any, chunks: Any, keep: Sequence[str] | None, options: Any
    ) -> None:
        self._packer = TablePacker(max_tokens, query, chunks, None, options)
        self._left_out = None if isinstance(chunks, Indexed) else chunks
        self._keep = None if keep is None else _names(keep)
        self._job = uuid4().hex
        self.minds_case = True
        self._dumps: Callable[[Any], bytes] = pickle.dumps
        self._parts: bytes | None = None

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that are packed."""
        return self._packer.read

    def over(self, schema: Any, dumps: Callable[[Any], bytes]) -> Columns:
        """
        Return the same, made for tables with a schema of Arrow, None if it is not known yet.

        Args:
            schema: The types of the columns.
            dumps: What pickles functions of the caller's.

        Raises:
            InvalidArgumentError: There is no such column, or it has a wrong type.
            BudgeteerError: The corpus was not opened from a file.

        """
        self._dumps = dumps
        if schema is not None:
            self(schema.empty_table())
        self.__reduce__()
        return self

    def kept(self, names: Sequence[str]) -> list[str]:
        """
        Return which of a table's columns are kept.

        Raises:
            InvalidArgumentError: One is not there, or there twice, or has the name of a column of
                the answer.

        """
        folded = [*names] if self.minds_case else [name.lower() for name in names]
        wanted = self._keep
        if wanted is None:
            wanted = [name for name in names if name != self._left_out]
        for name in wanted:
            own = name if self.minds_case else name.lower()
            if own in ANSWERED:
                raise InvalidArgumentError(
                    f"the column {name!r} has the name of a column of the answer, so it cannot be "
                    f"kept: rename it in the table, or leave it out of keep"
                )
            if folded.count(own) > 1:
                raise InvalidArgumentError(
                    f"the table has several columns {name[:80]!r}, so none can be kept: rename "
                    f"them, or leave them out of keep"
                )
            if name not in names:
                listed = ", ".join(repr(known[:80]) for known in names[:20]) or "none"
                raise InvalidArgumentError(
                    f"keep must have names of columns, not {name[:80]!r}"
                    f"{_validate.did_you_mean(name, names)}; the table has {listed}"
                )
        return [*wanted]

    def answer(self, batch: Any) -> Any:
        """Return the columns of the answer, as pyarrow's."""
        import pyarrow as pa  # as each of these packages does

        return pa.table(self._packer.pack(batch))

    def __call__(self, batch: Any) -> Any:
        """Return the columns that are kept, and then those of the answer, as pyarrow's."""
        kept = self.kept(batch.schema.names)
        answer = self.answer(batch)
        for place, name in enumerate(kept):
            answer = answer.add_column(place, batch.schema.field(name), batch.column(name))
        return answer

    def __reduce__(self) -> Any:
        """Pickle the parts as bytes, of which a process knows whether it has read them before."""
        if self._parts is None:
            self._parts = self._dumps(self.__dict__)
        return _restored, (self._job, self._parts)


@lru_cache(maxsize=_JOBS)
def _restored(job: str, parts: bytes) -> Columns:
    del job  # it is part of the key: another job may find another corpus at the same path
    columns = Columns.__new__(Columns)
    columns.__dict__.update(pickle.loads(parts), _parts=parts)  # noqa: S301 - it made them
    return columns


def given(argument: str, value: object, method: str, what: str) -> None:
    """Refuse other values than a table of a framework, which has the *method* that packs it."""
    if not callable(getattr(value, method, None)):
        raise InvalidArgumentError(f"{argument} must be {what}, not {_validate.type_name(value)}")


def _names(keep: object) -> list[str]:
    """Return names of columns, of which none is there twice."""
    if isinstance(keep, str):
        raise InvalidArgumentError(
            f"keep must be a sequence of names, not str: put {keep[:80]!r} into a list"
        )
    names = [
        _validate.text(f"keep[{i}]", name) for i, name in enumerate(_validate.batch("keep", keep))
    ]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InvalidArgumentError(f"keep[{i}] must not be {name[:80]!r} again")
    return names
