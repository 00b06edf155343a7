"""
The cases of tokenizers that are found by the names of models, which both languages answer alike.

    python tests/python/find_files_cases.py

writes `tests/cases/find_files.json` anew, with what Python answers. `test_find_files.py` holds it
against Python, `window/find_files.rs` of the Rust crate against Rust.
"""

import os
import tempfile
from pathlib import Path
from unittest import mock

from cases import write
from window_cases import ODD_NAMES

from budgeteer._count import find_files, ways

FILE = Path(__file__).parents[1] / "cases/find_files.json"
FOLDERS = ("", "none", "own", "other")

LLAMA = "meta-llama/Llama-3.3-70B-Instruct"
SNAPSHOTS = "hub/models--meta-llama--Llama-3.3-70B-Instruct/snapshots"
MAIN = "hub/models--meta-llama--Llama-3.3-70B-Instruct/refs/main"

OWN = [
    f"{LLAMA}.json",
    f"{LLAMA}/tokenizer.json",
    f"{LLAMA.lower()}.model",
    "meta-llama-llama-3.3-70b-instruct.tiktoken",
    "meta-llama--llama-3.3-70b-instruct.json",
    "Llama-3.3-70B-Instruct.json",
    *("llama-3.3.json", "llama-3.json", "llama3/any"),
    *("llama-3.3-70b.json", "llama3.txt", "llama4.json", "Llama-3.3-70B-Instruct"),
]
OUTSIDE = ["llama3.1:70b.json", "own/x.json", "x-7b.json"]
OUT = [
    "../llama3.1:70b",
    "x/..-7b",
    "own/../x-7b",
    "..\\x-7b",
    "..",
    ".",
    "/x-7b",
    "a\u200b/x",
    "",
]
ODD = [
    *("e\u0301-7b", "\u4e2d\u6587-7b", 'it\'s "7b"', "a b", "a\u00a0b", "a\u00adb", "a\ue000b"),
    *("y" * 195, "\u00e9" * 100, "x\\y"),
]

SEARCHES = [
    # A name as it is, in lower case, flat, and without what is in front of it.
    *((LLAMA, [f"own/{file}"]) for file in OWN),
    ("together_ai/meta-llama/llama-3.1-8b:free", ["own/llama-3.1-8b.json"]),
    *(("llama3.1:70b", [f"own/{file}.json"]) for file in ("llama3.1-70b", "llama3.1")),
    *(("deepseek-r1-distill-llama-70b", [f"own/{file}.json"]) for file in ("llama3", "deepseek")),
    *((name, ["own/kimi-k2.json"]) for name in ("moonshotai/Kimi-K2-Instruct", "kimi-k9")),
    *((name, ["own/gemma-3.json"]) for name in ("gemini-2.5-pro", "gemma-3-27b", "gemma-4-27b")),
    *((name, ["own/qwen.json", "own/other.json"]) for name in ("qwen-max", "x", "qwen3-8b")),
    # Of several, the first folder goes first, then the name, then the ending.
    ("acme-7b", ["other/acme-7b.json", "own/acme-7b.tiktoken"]),
    ("acme/x-7b", ["other/acme/x-7b.json", "own/x-7b.json"]),
    ("acme-7b", ["own/acme-7b.tiktoken", "own/acme-7b.model", "own/acme-7b/any"]),
    ("Acme-7B", ["own/acme-7b.json", "own/Acme-7B.model"]),
    # No name leads out of the folder, or is odd.
    *((name, OUTSIDE) for name in OUT),
    *((name, [f"own/{name}.json"]) for name in ODD),
    ("z" * 201, ["own/x.json"]),
    # The cache: the main snapshot, or else the newest one, of those with a tokenizer.
    *(
        (name, [f"{SNAPSHOTS}/{file}" for file in ("aa/tokenizer.json", "bb/tekken.json", "cc/x")])
        for name in (LLAMA, LLAMA.upper(), LLAMA[11:], f"groq/{LLAMA}", "llama3", "70B-Instruct")
    ),
    (LLAMA, [MAIN, f"{SNAPSHOTS}/aa/tokenizer.model", f"{SNAPSHOTS}/bb/tokenizer.json"]),
    (LLAMA, [MAIN, f"{SNAPSHOTS}/aa/any", f"{SNAPSHOTS}/bb/tiktoken.model"]),
    (LLAMA, [f"{SNAPSHOTS}/aa/tokenizer.json", "own/llama3.json"]),
    (LLAMA, [f"{SNAPSHOTS.replace('models', 'datasets')}/aa/tokenizer.json", "hub/models"]),
    ("x", ["hub/models--x/snapshots/aa/tokenizer.json"]),
    ("x--y", ["hub/models--x--y/snapshots/aa/tokenizer.json"]),
    ("y", [f"hub/models--{maker}--y/snapshots/aa/tekken.json" for maker in "xa"]),
]
"""Models, and the files that there are. A folder is the newer, the later a file of it stands."""


def names():
    """Return the names under which a model's file is looked for."""
    return [{"model": name, "names": ways.file_names(name)} for name in ODD_NAMES]


def found():
    """Return what is found."""
    return [
        {"model": name, "files": files, "found": search(name, files)} for name, files in SEARCHES
    ]


def search(name, files):
    """Return what is found for a model among these files, each of which says ``aa``."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for seconds, file in enumerate(files):
            path = root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("aa", encoding="ascii")
            os.utime(path.parent, (seconds, seconds))
        environment = {
            find_files.VARIABLE: os.pathsep.join(it and str(root / it) for it in FOLDERS),
            "HF_HUB_CACHE": str(root / "hub"),
        }
        with mock.patch.dict(os.environ, environment):
            path = find_files.path_of(ways.file_names(name))
        return None if path is None else Path(path).relative_to(root).as_posix()


KINDS = [names, found]

if __name__ == "__main__":
    write(FILE, KINDS)
