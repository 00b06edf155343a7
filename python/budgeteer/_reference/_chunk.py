"""Reference of ``rust/binding/src/chunk.rs``: texts and titles of chunks of any type."""

from collections.abc import Mapping, Sequence

from budgeteer._codes import NO_TEXT, TEXT_ATTRIBUTES, TEXT_KEYS, TEXT_TYPE, TITLE_TYPE


def read(
    chunks: Sequence[object], with_titles: bool
) -> tuple[list[str], list[str]] | tuple[int, int]:
    """Return texts and titles; or a code and the index of the first chunk that cannot be read."""
    texts: list[str] = []
    titles: list[str] = []
    attributes: dict[type, tuple[str | None, bool]] = {}
    for i, chunk in enumerate(chunks):
        text: object
        title: object = None
        if isinstance(chunk, str):
            text = chunk
        elif isinstance(chunk, Mapping):
            key = next((key for key in TEXT_KEYS if key in chunk), None)
            if key is None:
                return NO_TEXT, i
            text = chunk[key]
            if with_titles:
                title = chunk.get("title")
        else:
            kind = type(chunk)
            if kind not in attributes:
                name = next((name for name in TEXT_ATTRIBUTES if hasattr(chunk, name)), None)
                attributes[kind] = name, with_titles and hasattr(chunk, "title")
            name, has_title = attributes[kind]
            if name is None or not hasattr(chunk, name):
                return NO_TEXT, i
            text = getattr(chunk, name)
            if has_title:
                title = getattr(chunk, "title", None)
        if not isinstance(text, str):
            return TEXT_TYPE, i
        if title is not None and not isinstance(title, str):
            return TITLE_TYPE, i
        texts.append(str.__str__(text))
        titles.append("" if title is None else str.__str__(title))
    return texts, titles
