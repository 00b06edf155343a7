"""What the types of the public names say at run time."""

import ast
import importlib
import inspect
from dataclasses import fields
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

import budgeteer
from budgeteer import (
    InvalidArgumentError,
    Packer,
    Section,
    get_counter,
    parse_context,
    presets,
    ranking,
    trim_messages,
    window,
)
from budgeteer._count.counter import KEEP
from budgeteer._count.names import ESTIMATORS
from budgeteer._layout.section import ROLES
from budgeteer._messages.history import StartOn
from budgeteer._messages.messages import ToolChoice
from budgeteer._pack import packer as packer_module
from budgeteer._pack.options import DEDUPES, ORDERS, OVERFLOWS, SELECTIONS, STYLES, UNITS
from budgeteer._rank.rankings import FUSIONS, NAMES
from budgeteer._rank.terms import LISTED, STEMMED

MODULES = ("", ".config", ".embedding", ".errors", ".presets", ".ranking", ".service", ".window")
CLASSES = sorted(
    {
        item
        for module in map(importlib.import_module, (f"budgeteer{name}" for name in MODULES))
        for item in (getattr(module, name) for name in getattr(module, "__all__", dir(module)))
        if inspect.isclass(item) and item.__module__.startswith("budgeteer")
    },
    key=lambda item: f"{item.__module__}.{item.__name__}",
)
TEA = [{"role": "user", "content": "tea"}]


def words_of(hint):
    """Return every word of the literals in a type."""
    if get_origin(hint) is Literal:
        return {word for word in get_args(hint) if isinstance(word, str)}
    return set().union(*map(words_of, get_args(hint)))


@pytest.mark.parametrize("item", CLASSES, ids=lambda item: f"{item.__module__}.{item.__name__}")
def test_hints_of_classes(item):
    """The annotations of a public class, and those of its constructor, are types at run time."""
    hints = get_type_hints(item)
    for base in item.__mro__:
        assert set(vars(base).get("__annotations__", ())) <= set(hints)
    if inspect.isfunction(item.__init__):
        assert set(inspect.signature(item.__init__).parameters) - {"self"} <= {
            *get_type_hints(item.__init__),
            *("args", "kwargs"),
        }


def test_options_of_pack():
    """What `pack` takes beside its arguments are the options of `Packer`, of the same types."""
    tree = ast.parse(inspect.getsource(packer_module))
    annotated = {
        node.name: [
            (item.target.id, ast.unparse(item.annotation))
            for item in node.body
            if isinstance(item, ast.AnnAssign) and not item.target.id.startswith("_")
        ]
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    (first, _), *options = annotated["Packer"]
    assert annotated["Options"] == options
    assert [first, *(name for name, _ in options)] == [
        item.name for item in fields(Packer) if item.init
    ]
    assert len(options) == 12


CHOICES = {
    "ranking": (NAMES, lambda word: Packer(9, ranking=word)),
    "overflow": (OVERFLOWS, lambda word: Packer(9, overflow=word)),
    "dedupe": (DEDUPES[1:], lambda word: Packer(9, dedupe=word)),
    "selection": (SELECTIONS, lambda word: Packer(9, selection=word)),
    "units": (UNITS, lambda word: Packer(9, units=word)),
    "order": (ORDERS, lambda word: Packer(9, order=word)),
    "template": (STYLES, lambda word: Packer(9, template=word)),
}


@pytest.mark.parametrize("name", CHOICES)
def test_words_of_a_packer(name):
    """The words in the type of an option are those that a packer takes, and it takes no other."""
    words, make = CHOICES[name]
    assert words_of(get_type_hints(Packer)[name]) == {*words}
    assert [getattr(make(word), name) for word in words] == [*words]
    with pytest.raises(InvalidArgumentError, match="'nearly-that'"):
        make("nearly-that")


@pytest.mark.parametrize(
    ("words", "use"),
    [
        (KEEP, lambda word: get_counter("words").truncate("a b", 1, keep=word)),
        (ROLES, lambda word: Section("a", "b", role=word)),
        (get_args(StartOn), lambda word: trim_messages(TEA, 9, start_on=word)),
        (get_args(ToolChoice), lambda word: window.count_tools([], tool_choice=word)),
        (("auto",), lambda word: window.safe_message_count(model="gpt-4o", safety_margin=word)),
        (FUSIONS, lambda word: ranking.Hybrid(fusion=word)),
        (("bm25",), lambda word: ranking.Hybrid({word: 1})),
        (("lexical", "bm25"), lambda word: ranking.Embedding(Embeds(), fallback=word)),
        (STEMMED, lambda word: ranking.Bm25(stemming=word)),
        (LISTED, lambda word: ranking.Bm25(stopwords=word)),
        (STEMMED, lambda word: ranking.Lexical(stemming=word)),
        (LISTED, lambda word: ranking.Lexical(stopwords=word)),
        (STYLES[1:], lambda word: parse_context("", word)),
        (ESTIMATORS, lambda word: presets.context_router(estimator=word)),
        (get_args(presets.RouterRanking), lambda word: presets.context_router(ranking=word)),
        (get_args(presets.Truncation), lambda word: presets.context_router(truncation=word)),
    ],
)
def test_words_of_arguments(words, use):
    """The words in the type of an argument are those that it takes, and no other."""
    for word in words:
        use(word)
    with pytest.raises(InvalidArgumentError, match="'nearly-that'"):
        use("nearly-that")


class Embeds:
    """The least that embeds."""

    def embed(self, texts):
        """Answer nothing."""
        return texts


def test_classes_are_found():
    """The tests above see every wing."""
    assert {item.__module__ for item in CLASSES} == {
        *("budgeteer", "budgeteer.config", "budgeteer.embedding", "budgeteer.errors"),
        *("budgeteer.presets", "budgeteer.ranking", "budgeteer.service", "budgeteer.window"),
    }
    assert budgeteer.Packing in CLASSES
