"""
The counts by which tokenizers are tested, from the packages that define them.

    python tests/python/tokenizer_cases.py FILES

FILES is the folder that ``scripts/generate_vocabularies.py --keep`` wrote. This needs the packages
tokenizers, tiktoken, mistral-common and sentencepiece. It writes `tests/cases/tokenizers.json`, of
texts and their counts, and the small tokenizers in `tests/cases/tokenizers/`, which are trained on
a short text. `tests/rust/tokenizers.rs` counts the same.
"""

import base64
import io
import json
import random
import sys
from pathlib import Path

import oracle
from cases import write

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import generate_vocabularies as vocabularies  # noqa: E402
import oracle_vocabularies as references  # noqa: E402

FILE = ROOT / "tests/cases/tokenizers.json"
FOLDER = ROOT / "tests/cases/tokenizers"

PROSE = """
The teapot stood on the table in the kitchen. The tea in the teapot was green, and the cups on the
table were green, too. Two of the cups were broken; the third had no handle. "It doesn't matter,"
she said, "I'll drink from the broken one." They'd been there since 1984, or since 12 o'clock.
Cafe or caf\u00e9, na\u00efve or naive: the caf\u00e9 was \u00e9tonn\u00e9.
\u4e2d\u6587\u7684\u8336 \u4e2d\u6587.
def pour(cup):
    if cup.is_broken:
        return None
    return cup.fill(100, unit="ml")
"""

PATTERN = r"[\p{L}\p{N}_]+|[^\p{L}\p{N}_\s]+|\s+"

ODD = [
    *("", " ", "  ", "   ", " " * 7, " " * 33, "\n", "\n\n\n", "\t\t", "\r\n\r\n", " \n "),
    *("the teapot", " The teapot's", "don't I'LL THEY'D", "1234567 12 3", "a  b   c"),
    *("\u4e2d\u6587\u7684", "\u52a0\u62ff\u5927", "\u4ff1\u4e50\u90e8 \u6bdb\u6cfd\u4e1c"),
    *(" \u738b", "vi\u1ec7c", "caf\u00e9 cafe\u0301", "\u2581", "\u2581\u2581a", " \u2581 "),
    *("<unk>", "<s>a</s>", "<0x41>", "<|endoftext|>", "[INST]", "<blockquote>", "</div>"),
    *(">\u2581</", "            field", "\U0001f600\u200d\U0001f525", "\x00\x01"),
    *("\U00011935\U00011930", " \u1ac1\u0349", " \u1df8\u0347", "\U000105d2\u0307"),
    *("\u0344\u0958\u1100\u1161", "a" * 300, "ab" * 90, "=" * 100, "\u00e9" * 40),
    *("e\u0301" * 40, "1" * 50, "\u3000" * 5, "x\u00a0y", "\u0661\u0662\u0663\u0664"),
    *("\u2167\u00bd", "\u01c5ungla", "\u017fs'\u017f", "\ufeffa", "\ue000", "\u0378"),
]
"""Where tokenizers differ: runs, wholes, composition, names of special tokens."""


def texts():
    """Return the texts that all count."""
    make = oracle.RandomTexts(18, words=[word for word in PROSE.split() if word.isprintable()])
    odd = (make().encode("utf-8", "replace").decode()[:200] for _ in range(260))
    return [*dict.fromkeys([*ODD, *oracle.SAMPLES, PROSE, *odd])]


TEXTS = texts()


def encodings():
    """Return the counts of the texts by each encoding that is shipped."""
    entries = json.loads(references.SOURCES.read_text("utf-8"))["families"]
    names = [entry["name"] for entry in entries if entry["ship"]]
    counts = {name: references.reference(name, Path(sys.argv[1]))[0](TEXTS) for name in names}
    return [
        {"text": text, "counts": {name: counts[name][nth] for name in names}}
        for nth, text in enumerate(TEXTS)
    ]


# Small tokenizers of the package tokenizers.


def trained(split, size=340, normalizer=None, **options):
    """Return a byte-level tokenizer that was trained on the prose."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(**options))
    if normalizer:
        tokenizer.normalizer = normalizer
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split is None)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*(split or []), level])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(PROSE.splitlines(keepends=True) * 3, trainer)
    return json.loads(tokenizer.to_str())


def by(regex):
    """Return the step that splits by a pattern."""
    from tokenizers import Regex, pre_tokenizers

    return pre_tokenizers.Split(Regex(regex), "isolated")


def pattern_of(name):
    """Return the pattern of a family."""
    entries = json.loads(references.SOURCES.read_text("utf-8"))["families"]
    ((pattern,),) = [entry["patterns"] for entry in entries if entry["name"] == name]
    return pattern


def with_wholes(file):
    """Return a tokenizer with tokens that no merge makes."""
    vocab = file["model"]["vocab"]
    for token in ("teapots", "\u0120handle", "1984"):
        vocab.setdefault(token, len(vocab))
    file["model"]["ignore_merges"] = True
    return file


def byte_level():
    """Return the byte-level tokenizers by the names of their files."""
    from tokenizers import normalizers, pre_tokenizers

    digits = pre_tokenizers.Digits(individual_digits=True)
    runs = pre_tokenizers.Digits(individual_digits=False)
    punctuation = pre_tokenizers.Split(".", "isolated")
    old = trained(None)
    old["model"]["merges"] = [" ".join(pair) for pair in old["model"]["merges"]]
    return {
        "gpt2": trained(None),
        "old-merges": old,
        "llama3": with_wholes(trained([by(pattern_of("llama3"))])),
        "qwen2-pattern": trained([by(pattern_of("qwen2"))], normalizer=normalizers.NFC()),
        "tekken-pattern": trained([by(pattern_of("tekken"))]),
        "pattern": trained([by(PATTERN)]),
        "two-patterns": trained([by(r"\p{N}{1,2}"), by(PATTERN)]),
        "digits": trained([digits, by(PATTERN)]),
        "digit-runs": trained([runs, punctuation, by(PATTERN)]),
        "no-pattern": trained([]),
    }


def pieces_of(model):
    """Return the pieces of a model of SentencePiece, by number."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(number) for number in range(processor.get_piece_size())]


def of_characters(model, steps, runs=0):
    """Return a `tokenizer.json` that merges the characters of a model of SentencePiece."""
    pieces = pieces_of(model)
    for length in range(2, runs + 1):
        if "\u2581" * length not in pieces:
            pieces.append("\u2581" * length)
    ids = {piece: number for number, piece in enumerate(pieces)}
    lengths = range(runs, 0, -1)
    pairs = ((one, two) for one in lengths for two in lengths if one + two <= runs)
    merges = [["\u2581" * one, "\u2581" * two] for one, two in pairs]
    for piece in pieces:
        splits = ((piece[:at], piece[at:]) for at in range(1, len(piece)))
        known = [list(pair) for pair in splits if pair[0] in ids and pair[1] in ids]
        if set(piece) != {"\u2581"} and not piece.startswith("<0x"):
            merges += sorted(known, key=lambda pair: (ids[pair[0]], ids[pair[1]]))
    options = {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
    return {
        "version": "1.0",
        "added_tokens": [],
        **steps,
        "model": {"type": "BPE", "dropout": None, **options, "vocab": ids, "merges": merges},
    }


SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
PREPEND = {"type": "Prepend", "prepend": "\u2581"}


def characters():
    """Return the tokenizers of characters by the names of their files."""
    model = piece_model(add_dummy_prefix=False)
    meta = {"type": "Metaspace", "replacement": "\u2581", "split": False}
    behind = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious"}
    steps = {
        "characters": {"normalizer": SPACES},
        "characters-prefix": {
            "normalizer": {"type": "Sequence", "normalizers": [PREPEND, SPACES]}
        },
        "metaspace": {"pre_tokenizer": {**meta, "prepend_scheme": "never"}},
        "metaspace-prefix": {"pre_tokenizer": {**meta, "prepend_scheme": "first"}},
    }
    found = {name: of_characters(model, step) for name, step in steps.items()}
    gemma = {"normalizer": SPACES, "pre_tokenizer": {**behind, "invert": False}}
    return {**found, "characters-runs": of_characters(model, gemma, runs=4)}


# Models of SentencePiece.


def piece_model(**options):
    """Return a model that was trained on the prose."""
    import sentencepiece

    out = io.BytesIO()
    given = {
        "model_type": "bpe",
        "vocab_size": 400,
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "character_coverage": 1.0,
        "minloglevel": 2,
        "num_threads": 1,
        **options,
    }
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(PROSE.splitlines() * 3), model_writer=out, **given
    )
    return out.getvalue()


RUNS = ["\u2581" * length for length in range(2, 9)] + ["\n" * length for length in range(2, 5)]


def piece_models():
    """Return the models by the names of their files."""
    return {
        "pieces": piece_model(add_dummy_prefix=False),
        "pieces-prefix": piece_model(add_dummy_prefix=True),
        "pieces-runs": piece_model(add_dummy_prefix=False, user_defined_symbols=RUNS),
    }


# The ranks of tiktoken.


def tekken_of(file):
    """Return a `tekken.json` of a byte-level tokenizer, with tokens that are not used."""
    values = {char: byte for byte, char in vocabularies.SPELLED.items()}
    tokens = sorted(file["model"]["vocab"].items(), key=lambda item: item[1])
    spelled = [bytes(map(values.__getitem__, token)) for token, _ in tokens] + [b"unused token"]
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for rank, token in enumerate(spelled)
    ]
    config = {
        "pattern": pattern_of("tekken"),
        "num_vocab_tokens": len(vocab),
        "default_vocab_size": len(tokens) + 10,
        "default_num_special_tokens": 10,
        "version": "v3",
    }
    return {"config": config, "vocab": vocab}


def tekken_counts(file):
    """Return the counts of the texts by tiktoken, by which Mistral's own package counts."""
    import tiktoken

    config = file["config"]
    used = config["default_vocab_size"] - config["default_num_special_tokens"]
    vocab = file["vocab"][:used]
    ranks = {base64.b64decode(entry["token_bytes"]): entry["rank"] for entry in vocab}
    encoding = tiktoken.Encoding(
        "small", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={}
    )
    return [len(encoding.encode_ordinary(text)) for text in TEXTS]


def files():
    """Write the small tokenizers, and return the counts of the texts by each."""
    import sentencepiece
    from tokenizers import Tokenizer

    found = []
    for name, file in {**byte_level(), **characters()}.items():
        save(f"{name}.json", file)
        tokenizer = Tokenizer.from_file(str(FOLDER / f"{name}.json"))
        counts = [len(tokenizer.encode(text, add_special_tokens=False).ids) for text in TEXTS]
        found.append({"file": f"{name}.json", "counts": counts})
    small = tekken_of(trained([by(pattern_of("tekken"))]))
    save("tekken.json", small)
    found.append({"file": "tekken.json", "counts": tekken_counts(small)})
    for name, model in piece_models().items():
        (FOLDER / f"{name}.model").write_bytes(model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        counts = [len(processor.encode(text)) for text in TEXTS]
        found.append({"file": f"{name}.model", "counts": counts})
    return found


def refused():
    """Write tokenizers that are not counted, and return the names of their files."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    small = {"vocab_size": 60, "show_progress": False}
    kinds = {
        "wordpiece": (models.WordPiece(unk_token="?"), trainers.WordPieceTrainer(**small)),
        "unigram": (models.Unigram(), trainers.UnigramTrainer(**small)),
        "wordlevel": (models.WordLevel(unk_token="?"), trainers.WordLevelTrainer(**small)),
        "suffix": (
            models.BPE(end_of_word_suffix="</w>"),
            trainers.BpeTrainer(**small, end_of_word_suffix="</w>"),
        ),
        "no-fallback": (models.BPE(), trainers.BpeTrainer(**small)),
    }
    for name, (model, trainer) in kinds.items():
        tokenizer = Tokenizer(model)
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.train_from_iterator(PROSE.split(), trainer)
        save(f"refused-{name}.json", json.loads(tokenizer.to_str()))
    save("refused-lowercase.json", trained(None, 256, normalizer=normalizers.Lowercase()))
    rules = FOLDER / "rules.tsv"
    rules.write_text("FF41\t61\n", "utf-8")
    models_of_pieces = {
        "unigram": {"model_type": "unigram"},
        "rules": {"normalization_rule_tsv": rules},
        "drops-spaces": {"remove_extra_whitespaces": True},
        "no-fallback": {"byte_fallback": False},
        "suffix": {"treat_whitespace_as_suffix": True},
    }
    for name, options in models_of_pieces.items():
        size = 90 if name == "no-fallback" else 330
        model = piece_model(**{"vocab_size": size, **options})
        (FOLDER / f"refused-{name}.model").write_bytes(model)
    rules.unlink()
    return sorted(path.name for path in FOLDER.glob("refused-*"))


def save(name, file):
    """Write a file of JSON."""
    text = json.dumps(file, ensure_ascii=False, separators=(",", ":"))
    (FOLDER / name).write_text(text, "utf-8")


KINDS = (encodings, files, refused)


if __name__ == "__main__":
    random.seed(18)
    FOLDER.mkdir(exist_ok=True)
    write(FILE, KINDS)
