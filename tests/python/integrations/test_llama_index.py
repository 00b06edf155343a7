"""LlamaIndex: nodes and chat histories within a budget."""

import asyncio
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llama_index.core")

from llama_index.core import Settings, get_response_synthesizer
from llama_index.core.base.llms.types import MessageRole
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.chat_engine import ContextChatEngine, SimpleChatEngine
from llama_index.core.constants import DEFAULT_NUM_OUTPUTS
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import (
    ImageNode,
    MetadataMode,
    Node,
    NodeWithScore,
    QueryBundle,
    TextNode,
)

from budgeteer import Packer, get_counter
from budgeteer.errors import BudgetExhaustedError, InvalidArgumentError
from budgeteer.integrations.llama_index import BudgetMemory, BudgetPostprocessor, tokenizer
from budgeteer.window import count_messages

COUNT = get_counter("o200k_base").count
TEXTS = ["Green tea is mild. ", "Rye bread is dark and dense. ", "茶は緑です。", "def tea(): x\n"]


def nodes(sizes):
    return [
        NodeWithScore(
            node=TextNode(
                text=TEXTS[i % 4] * size,
                id_=str(i),
                metadata={"file": f"tea-{i}.md", "secret": "s" * 40},
                excluded_llm_metadata_keys=["secret"] if i % 2 else [],
            ),
            score=1 / (i + 1),
        )
        for i, size in enumerate(sizes)
    ]


class Noting(MockLLM):
    """A model that notes its prompts."""

    _prompts: list = PrivateAttr(default_factory=list)

    def complete(self, prompt, formatted=False, **kwargs):
        self._prompts.append(prompt)
        return super().complete(prompt, formatted=formatted, **kwargs)


class Retriever(BaseRetriever):
    """Returns what it was given."""

    def __init__(self, found):
        super().__init__()
        self.found = found

    def _retrieve(self, query_bundle):
        return self.found


def asked(found, postprocessors, mode):
    """Return what LlamaIndex's query engine puts into its prompts for the context."""
    llm = Noting()
    only = PromptTemplate("{context_str}")
    synthesizer = get_response_synthesizer(
        llm=llm, response_mode=mode, text_qa_template=only, summary_template=only
    )
    engine = RetrieverQueryEngine(
        Retriever(found), synthesizer, node_postprocessors=postprocessors
    )
    answer = engine.query("Is tea mild?")
    return llm._prompts, answer.source_nodes


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 30), max_size=8),
    st.integers(0, 300),
    st.sampled_from(["skip", "stop"]),
    st.sampled_from(["input", "lexical", "score"]),
    st.sampled_from(["compact", "tree_summarize"]),
)
def test_what_reaches_the_model_fits(sizes, limit, overflow, ranking, mode):
    """The law: what the engine writes of the nodes into its prompt is within the budget."""
    packer = Packer(limit, overflow=overflow, ranking=ranking)
    found = nodes(sizes)

    prompts, sources = asked(found, [BudgetPostprocessor(packer=packer)], mode)

    assert len(prompts) <= 1
    assert all(COUNT(prompt) <= limit for prompt in prompts)
    assert all(any(source is node for node in found) for source in sources)
    written = [node.node.get_content(metadata_mode=MetadataMode.LLM).strip() for node in sources]
    assert prompts in ([], ["\n\n".join(written)])


def test_metadata_count():
    """Without the postprocessor's counting of metadata, the prompt would be over."""
    found = nodes(range(1, 21))
    packing = Packer(200, ranking="input").pack("", [node.text for node in found])
    by_texts = [found[kept.index] for kept in packing.kept]

    prompts, _ = asked(by_texts, [], "compact")
    assert COUNT(prompts[0]) > 200
    prompts, _ = asked(found, [BudgetPostprocessor(packer=200)], "compact")
    assert 150 < COUNT(prompts[0]) <= 200


def test_scores_ids_and_kinds_of_nodes():
    """The given objects come back, whatever kind of node; one without text is left out."""
    found = [
        NodeWithScore(node=TextNode(text="Green tea."), score=None),
        NodeWithScore(node=ImageNode(image="aGk="), score=0.2),
        NodeWithScore(node=Node(text_resource={"text": "Rye."}), score=0.1),
    ]
    fits = BudgetPostprocessor(packer=50)

    kept = fits.postprocess_nodes(found, query_str="tea")
    assert [id(found[0]), id(found[2])] == [*map(id, kept)]
    assert kept == asyncio.run(fits.apostprocess_nodes(found, QueryBundle("tea")))
    assert kept == fits.postprocess_nodes(found)


def test_wrong_options():
    """What LlamaIndex would not write is refused when the postprocessor is made."""
    for packer, message in (
        ("9", "packer must be a Packer, a mapping"),
        (Packer(9, template="xml"), "packer must have template='plain'"),
        (Packer(9, overflow="truncate_end"), "overflow must be 'skip' or 'stop'"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            BudgetPostprocessor(packer=packer)
    for options, message in (
        ({"max_tokens": -1}, "max_tokens must be from 0"),
        ({"max_tokens": 9, "model": 3}, "model must be a str"),
        ({"max_tokens": 9, "chat_store": 3}, "chat_store must be a BaseChatStore, not int"),
        ({"max_tokens": 9, "chat_store_key": 3}, "chat_store_key must be a str, not int"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            BudgetMemory(**options)
    with pytest.raises(InvalidArgumentError, match="max_tokens must be given"):
        BudgetMemory.from_defaults()
    for options, message in (
        ({"llm": "gpt-4o"}, "llm must be a LLM, not str"),
        ({"chat_history": ["Tea?"]}, r"chat_history\[0\] must be a ChatMessage, not str"),
        ({"chat_store": {}}, "chat_store must be a BaseChatStore, not dict"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            BudgetMemory.from_defaults(max_tokens=9, **options)
    fits = BudgetPostprocessor(packer=9)
    message = r"nodes\[0\] must be a NodeWithScore, not TextNode"
    with pytest.raises(InvalidArgumentError, match=message):
        fits.postprocess_nodes([TextNode(text="Tea.")], query_str="tea")
    with pytest.raises(InvalidArgumentError, match=message):
        asyncio.run(fits.apostprocess_nodes([TextNode(text="Tea.")], query_str="tea"))
    with pytest.raises(
        InvalidArgumentError, match=r"modle is not an option of .*did you mean 'model'\?"
    ):
        BudgetMemory(max_tokens=9, modle="gpt-4o")
    with pytest.raises(InvalidArgumentError, match="limit is not an option of BudgetPostproc"):
        BudgetPostprocessor(packer=9, limit=9)


def test_a_postprocessor_is_read_back():
    """What LlamaIndex writes of it makes another one; a packer that is assigned is heeded."""
    fits = BudgetPostprocessor(packer={"max_tokens": 99, "ranking": "bm25"})
    found = nodes([1, 9, 2])
    kept = fits.postprocess_nodes(found, query_str="tea")
    read = BudgetPostprocessor.from_dict(fits.to_dict())
    assert kept == read.postprocess_nodes(found, query_str="tea")
    assert kept == pickle.loads(pickle.dumps(fits)).postprocess_nodes(found, query_str="tea")
    read.packer = 0
    assert [] == read.postprocess_nodes(found, query_str="tea")
    with pytest.raises(Exception, match=r"Packer\.counter is a builtin"):
        BudgetPostprocessor(packer=Packer(9, counter=len)).to_dict()


def test_a_memory_is_not_written_with_another_counter():
    """Its model and counter are written by their names, or not at all."""
    options = {"max_tokens": 20, "model": "gpt-4", "counter": "words"}
    assert options.items() <= BudgetMemory(**options).model_dump(exclude={"chat_store"}).items()
    with pytest.raises(Exception, match="counter is a builtin_function_or_method"):
        BudgetMemory(max_tokens=20, counter=len).model_dump(include={"counter"})


def test_the_tokenizer():
    """LlamaIndex splits by it, and each piece has at most the tokens that it was asked for."""
    Settings.tokenizer = tokenizer("gpt-4o")
    try:
        pieces = TokenTextSplitter(chunk_size=20, chunk_overlap=0).split_text(TEXTS[1] * 30)
    finally:
        Settings.tokenizer = None
    assert 1 < len(pieces)
    assert all(COUNT(piece) <= 20 for piece in pieces)


def turn(i):
    call = {"id": f"c{i}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    return [
        ChatMessage(f"What is in file {i}?", role="user"),
        ChatMessage("", role="assistant", additional_kwargs={"tool_calls": [call]}),
        ChatMessage(TEXTS[0] * 40, role="tool", additional_kwargs={"tool_call_id": f"c{i}"}),
        ChatMessage("Tea.", role="assistant"),
    ]


def test_a_memory_fits():
    """The law: what the memory returns, and what stands around it, is within the limit."""
    memory = BudgetMemory.from_defaults(
        chat_history=[ChatMessage("Be brief.", role="system")], max_tokens=400, model="gpt-4o"
    )
    for i in range(12):
        for message in turn(i):
            memory.put(message)
            for around in (0, 100):
                found = memory.get(initial_token_count=around)
                assert count_messages(found, model="gpt-4o") + around <= 400
            assert found[0].role == MessageRole.SYSTEM
            assert found[1].role == MessageRole.USER
            calls = [m for m in found if "tool_calls" in m.additional_kwargs]
            results = [m for m in found if m.role == MessageRole.TOOL]
            assert len(results) in (len(calls), len(calls) - 1)
    assert 49 == len(memory.get_all())
    assert asyncio.run(memory.aget()) == memory.get()
    memory.reset()
    assert [] == memory.get()
    with pytest.raises(BudgetExhaustedError, match="400 - 401 around them = -1"):
        memory.get(initial_token_count=401)


LONG = ChatMessage("Rye. " * 700, role="assistant")


def test_an_answer_that_does_not_fit():
    """The conversation goes on after an answer that is larger than the memory."""
    brief = ChatMessage("Be brief.", role="system")
    for before in ([], [brief], [brief, *turn(0)]):
        memory = BudgetMemory.from_defaults(
            chat_history=[*before, ChatMessage("Rye?", role="user")],
            max_tokens=300,
            model="gpt-4o",
        )
        memory.put(LONG)
        system = before[:1]
        assert system == memory.get(input="And tea?") == asyncio.run(memory.aget())
        asked = [ChatMessage("And tea?", role="user"), ChatMessage("Mild.", role="assistant")]
        for i in range(2):
            memory.put(asked[i])
            assert [*system, *asked[: i + 1]] == memory.get()
        assert len(before) + 4 == len(memory.get_all())


def test_what_waits_for_an_answer_stays():
    """A question, a call or a result that does not fit is an error, as the model must see it."""
    rounds = turn(0)[1:]
    for turns in ([], [LONG], [rounds[0], LONG], rounds[:2] * 30):
        memory = BudgetMemory(max_tokens=300, model="gpt-4o")
        for message in [ChatMessage("Rye? " * 200, role="user"), *turns]:
            memory.put(message)
        if turns == [LONG]:
            assert [] == memory.get()
            continue
        with pytest.raises(BudgetExhaustedError, match="newest message of the user"):
            memory.get()
    memory = BudgetMemory(max_tokens=300, model="gpt-4o")
    for message in (ChatMessage("Be brief. " * 200, role="system"), *turn(0)):
        memory.put(message)
    with pytest.raises(BudgetExhaustedError, match="system messages do not fit"):
        memory.get()


def test_a_chat_engine_goes_on():
    """A chat engine that reads the memory before it asks goes on after a large turn."""
    memory = BudgetMemory(max_tokens=300, model="gpt-4o")
    options = {"retriever": Retriever(nodes([1])), "llm": MockLLM(max_tokens=9)}
    engine = ContextChatEngine.from_defaults(memory=memory, **options)
    for text in ("Rye? " * 400, "And tea?", "And?"):
        assert str(engine.chat(text))
    assert 6 == len(memory.get_all())
    assert ["And tea?", "And?"] == [message.content for message in memory.get()[::2]]


def test_a_chat_engine_with_a_memory():
    """What a chat engine sends to its model is within the limit, turn after turn."""
    seen = []

    class Chat(MockLLM):
        def chat(self, messages, **kwargs):
            seen.append([*messages])
            return super().chat(messages, **kwargs)

    memory = BudgetMemory(max_tokens=150, model="gpt-4o")
    engine = SimpleChatEngine.from_defaults(llm=Chat(max_tokens=20), memory=memory)
    for i in range(20):
        engine.chat(f"What is {i} and {i}? " * 3)

    assert all(count_messages(messages, model="gpt-4o") <= 150 for messages in seen)
    assert 40 == len(memory.get_all())
    assert BudgetMemory.from_defaults(llm=MockLLM(max_tokens=20)).max_tokens > 0


def test_a_model_that_states_no_answer():
    """A model without a number for its answer leaves what LlamaIndex itself reserves for it."""
    for most, answer in ((None, DEFAULT_NUM_OUTPUTS), (20, 20)):
        llm = MockLLM(max_tokens=most)
        memory = BudgetMemory.from_defaults(llm=llm)
        assert llm.metadata.context_window - answer == memory.max_tokens
