"""A copy of a provider's client that sends what fits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from budgeteer import _validate
from budgeteer.errors import InvalidArgumentError
from budgeteer.integrations._requests import Fitter


def fitted_client(
    client: Any, kinds: tuple[type[Any], ...], paths: Collection[str], fit: Fitter
) -> Any:
    """
    Return a copy of *client*, one of *kinds*, whose bodies to *paths* fit.

    All that the client offers goes through its method ``post``: create, parse, stream, raw
    responses and beta resources, with the body as it will be sent.
    """
    if not isinstance(client, kinds):
        listed = " or ".join(kind.__name__ for kind in kinds)
        raise InvalidArgumentError(f"client must be {listed}, not {_validate.type_name(client)}")
    return _patched(client.copy(), frozenset(paths), fit)


def _patched(client: Any, paths: frozenset[str], fit: Fitter) -> Any:
    post, copy = client.post, client.copy

    def changed(path: str, given: dict[str, Any]) -> dict[str, Any]:
        body, place = given.get("body"), "/" + path.partition("?")[0].strip("/")
        # A whole URL, which the clients take, too, has more before.
        is_fitted = place.endswith(tuple(paths)) if "://" in place else place in paths
        if not is_fitted or not isinstance(body, Mapping):
            return given
        options = dict(given.get("options") or {})
        extra = options.pop("extra_json", None)  # what `extra_body` adds, and may replace
        whole = {**body, **extra} if isinstance(extra, Mapping) else body
        whole = {key: value for key, value in whole.items() if not _is_omitted(value)}
        return {**given, "options": options, "body": fit(whole).request}

    def posted(path: str, **given: Any) -> Any:
        return post(path, **changed(path, given))  # of an asynchronous client, to be awaited

    def copied(**options: Any) -> Any:
        return _patched(copy(**options), paths, fit)

    # On this copy alone: its resources are made when first used, and take the method then.
    client.post = posted
    client.copy = client.with_options = copied
    return client


def _is_omitted(value: object) -> bool:
    """Return whether a value says that there is none; the clients leave it out later."""
    return type(value).__name__ in ("NotGiven", "Omit")
