"""``budgeteer pack --output FILE``: what is written, and what is refused."""

import gzip
import io
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from bulk_support import (
    ENDINGS,
    NEEDS_ZSTD,
    STOP,
    packed,
    process,
    read,
    requests,
    write,
)
from support import on_both

from budgeteer import Packer, get_counter
from budgeteer.cli import _requests
from budgeteer.cli._part import Part

ARGUMENTS = ("-n", 40, "-m", "words")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(*items):
    """Write requests, or lines as they are."""
    data = (item if isinstance(item, bytes) else json.dumps(item).encode() for item in items)
    Path("in.jsonl").write_bytes(b"".join(line + b"\n" for line in data))


def names(folder="."):
    return {path.name for path in Path(folder).iterdir()}


# What is written.


@pytest.mark.parametrize(
    ("source", "output"),
    [
        (".jsonl", ".jsonl"),
        pytest.param(".jsonl.gz", ".jsonl.zst", marks=NEEDS_ZSTD),
        pytest.param(".jsonl.zst", ".parquet", marks=NEEDS_ZSTD),
        (".parquet", ".jsonl.gz"),
        (".parquet", ".parquet"),
    ],
)
def test_every_request_has_a_row(run, source, output):
    """In the input's order, with what `Packer.pack` answers; the part is gone."""
    given = [*requests(60)]
    write(f"in{source}", given)
    arguments = ("--input", f"in{source}", *ARGUMENTS, "-o", f"out{output}", "--workers", 2)
    assert (0, "", "") == run("pack", *arguments)
    assert packed(given, Packer(40, counter="words")) == read(f"out{output}")
    assert {f"in{source}", f"out{output}"} == names()


@pytest.mark.parametrize("ending", [*ENDINGS])
def test_the_number_of_workers_changes_nothing(ending):
    """Not a byte, though the batches are answered in another order."""
    write("in.jsonl", requests(300))
    for workers in (1, 3):
        process("in.jsonl", f"{workers}{ending}", workers=workers)
    assert 300 == len(read(f"1{ending}"))
    assert Path(f"1{ending}").read_bytes() == Path(f"3{ending}").read_bytes()


@on_both
def test_backends_write_the_same(name):
    """Each row, errors included."""
    given = [{"id": 1, "query": "tea", "chunks": [{"text": "Tea.", "score": "x"}]}, {"id": 2}]
    write("in.jsonl", [*requests(8), *given])
    options = ("-n", "30", "--ranking", "score")
    done = process("in.jsonl", "out.jsonl", *options, check=False, backend=name)
    rows = read("out.jsonl")
    assert packed([*requests(8), *given], Packer(30, ranking="score")) == rows
    assert 2 == done.returncode
    assert b"budgeteer: error: 2 of 10 requests could not be packed; 'out.jsonl'" in done.stderr


def test_a_request_has_a_budget_of_its_own(run):
    """max_tokens replaces -n; no text has more tokens than its budget."""
    (request,) = requests(1)
    write("in.jsonl", [{**request, "max_tokens": n} for n in (0, 1, 7, 30)] + [request])
    assert 0 == run("pack", "--input", "in.jsonl", *ARGUMENTS, "-o", "out.jsonl")[0]
    counter = get_counter("words")
    found = [(row["total_tokens"], counter.count(row["text"])) for row in read("out.jsonl")]
    assert all(said == counted for said, counted in found)
    assert all(counted <= n for (_, counted), n in zip(found, (0, 1, 7, 30, 40), strict=True))
    assert found[3] < found[4]


def test_the_options_are_those_of_packer(run):
    """A template, an order and others are as in one packing."""
    (request,) = requests(1)
    write("in.jsonl", [request])
    options = ("--template", "xml", "--max-chunks", 2, "--notice", "--ranking", "keyword")
    arguments = ("--input", "in.jsonl", *ARGUMENTS, *options, "-o", "out.jsonl")
    assert (0, "", "") == run("pack", *arguments)
    packer = Packer(
        40, counter="words", template="xml", max_chunks=2, notice=True, ranking="keyword"
    )
    assert packed([request], packer) == read("out.jsonl")


def test_no_query_is_needed_where_none_is_read(run):
    """As by score; else a request without one has an error."""
    lines({"chunks": [{"text": "Tea.", "score": 1}]})
    arguments = ("pack", "--input", "in.jsonl", "-n", 9, "-o", "out.jsonl")
    assert 0 == run(*arguments, "--ranking", "score")[0]
    assert ["Tea."] == [row["text"] for row in read("out.jsonl")]
    assert 2 == run(*arguments)[0]
    assert ["query must be a str, not None"] == [row["error"] for row in read("out.jsonl")]


def test_what_cannot_be_packed_has_an_error(run):
    """The others go on; a blank line is none."""
    lines(
        {"id": "a", "query": "tea", "chunks": ["Tea."], "other": 5},
        b"{not json",
        b"",
        b"\xff",
        [1],
        {"id": 1.5, "query": "tea", "chunks": ["Tea."]},
        {"id": "b", "query": "tea"},
        {"id": "c", "query": "tea", "chunks": ["Tea.", 5]},
        {"id": "d", "query": "tea", "chunks": [{"title": "Tea."}]},
        {"id": "e", "query": 5, "chunks": ["Tea."]},
        {"id": "f", "query": "tea", "chunks": ["Tea."], "max_tokens": -1},
        {"id": 9, "query": "tea", "chunks": []},
        b'{"query": "tea", "chunks": [{"text": "Tea.", "score": NaN}]}',
    )
    status, out, err = run("pack", "--input", "in.jsonl", "-n", 9, "-o", "out.jsonl")
    assert (2, "") == (status, out)
    said = "10 of 12 requests could not be packed; 'out.jsonl' says why"
    assert f"budgeteer: error: {said}\n" == err
    rows = read("out.jsonl")
    assert {"id": "a", "text": "Tea.", "total_tokens": 2, "kept": [0], "error": None} == rows[0]
    assert {"id": 9, "text": "", "total_tokens": 0, "kept": [], "error": None} == rows[10]
    failed = [row for row in rows if row["error"] is not None]
    assert [None, None, None, None, *"bcdef", None] == [row.get("id") for row in failed]
    assert all(row["text"] is row["total_tokens"] is row["kept"] is None for row in failed)
    starts = (
        *("line 2, column 2: invalid JSON", "line 4: not UTF-8"),
        *("a request must be a JSON object, not list",),
        *("id must be a str or a whole number, not float",),
        *("chunks must be a list, not None",),
        *("chunks[1] must be a str or a JSON object, not int",),
        *("chunks[0] must have a key ", "query must be a str, not int"),
        *("max_tokens must be", "line 13: invalid JSON: NaN"),
    )
    assert [*starts] == [
        row["error"][: len(start)] for row, start in zip(failed, starts, strict=True)
    ]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([1, None, -5], [1, None, -5]),
        ([1, "a", None], ["1", "a", None]),
        ([2**63, 1, 2], [f"{2**63}", "1", "2"]),
        ([None, None, None], None),
    ],
    ids=["numbers", "both", "large", "none"],
)
def test_a_column_of_ids_has_one_type(run, ids, expected):
    """Numbers of 64 bits, or strings; without any there is no column."""
    lines(*({"id": name, "query": "", "chunks": ["Tea."]} for name in ids))
    assert 0 == run("pack", "--input", "in.jsonl", "-n", 9, "-o", "out.parquet")[0]
    rows = read("out.parquet")
    assert (expected or [0, 0, 0]) == [row.get("id", 0) for row in rows]


def test_lone_surrogates_are_escapes_in_json_and_errors_in_tables(run):
    """Arrow cannot hold them."""
    lines(
        {"id": "\ud800", "query": "", "chunks": ["Tea."]},
        {"id": "b", "query": "", "chunks": ["\udfff Tea."]},
    )
    arguments = ("pack", "--input", "in.jsonl", "-n", 9, "-o")
    assert 0 == run(*arguments, "out.jsonl")[0]
    assert ["\ud800", "b"] == [row["id"] for row in read("out.jsonl")]
    assert "\udfff Tea." == read("out.jsonl")[1]["text"]
    assert 2 == run(*arguments, "out.parquet")[0]
    said = "has a lone surrogate, which Arrow cannot hold"
    assert [f"id {said}", f"the text {said}"] == [row["error"] for row in read("out.parquet")]
    assert [None, "b"] == [row["id"] for row in read("out.parquet")]


@pytest.mark.parametrize("ending", [*ENDINGS])
def test_no_requests_are_an_output_without_rows(run, ending):
    """It is a whole file of its kind."""
    lines(b"", b"  ")
    assert (0, "", "") == run("pack", "--input", "in.jsonl", "-n", 9, "-o", f"out{ending}")
    assert [] == read(f"out{ending}")


def test_an_output_is_replaced_at_the_end(run):
    """What was there stays until all is packed."""
    write("in.jsonl", requests(1))
    Path("out.jsonl").write_text("before")
    assert 0 == run("pack", "--input", "in.jsonl", *ARGUMENTS, "-o", "out.jsonl")[0]
    assert 1 == len(read("out.jsonl"))


def test_tables_of_other_types(run):
    """Chunks as strings, large strings and dictionaries; nulls where none are needed."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = {
        "query": pa.array(["tea", None], pa.large_string()).dictionary_encode(),
        "chunks": [["Tea.", "Rye."], ["Rye."]],
        "max_tokens": [2, None],
        "more": [1.5, 2.5],
    }
    parquet.write_table(pa.table(table), "in.parquet")
    arguments = ("pack", "--input", "in.parquet", "-n", 9, "-o", "out.jsonl")
    assert 2 == run(*arguments)[0]
    rows = read("out.jsonl")
    assert ["Tea.", None] == [row["text"] for row in rows]
    assert "query must be a str, not None" == rows[1]["error"]


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-q", "tea"], "--query does nothing with --output FILE: leave it out"),
        (["--explain"], "--explain does nothing with --output FILE: leave it out"),
        (["--dropped", "none"], "--dropped does nothing with --output FILE: leave it out"),
        (["--report", "why.html"], "--report does nothing with --output FILE: leave it out"),
        (["--workers", 0], "--workers must be from 1 to 256, not 0"),
        (["--workers", "x"], "argument --workers: must be a whole number from 1 to 256"),
        (["--input", "-"], "--input must be a file that ends in .jsonl, .jsonl.gz, .jsonl.zst or"),
        (["--input", "in.csv"], "--input must end in .jsonl, .jsonl.gz, .jsonl.zst or .parquet"),
        (["--input", "gone.jsonl"], "cannot read gone.jsonl: No such file or directory"),
        (["--input", "folder.jsonl"], "--input must be a file, not 'folder.jsonl'"),
        (["-o", "in.jsonl"], "--output must not be the input: give another name"),
        (["-o", "gone/out.jsonl"], "--output: there is no folder 'gone'; make it first"),
        (["-o", "folder.jsonl"], "--output: 'folder.jsonl' is a folder, not a file"),
        (["-o", "b.jsonl"], "--output: 'b.jsonl.part' is a file, and the rows are in a folder of"),
        (["-o", "out.csv"], "argument -o/--output: must be one of 'text', "),
        (["--min-score", "auto", "--ranking", "keyword"], "--min-score auto is for --ranking"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused(refused, arguments, message):
    """Each by one line, and nothing is written."""
    Path("folder.jsonl").mkdir()
    Path("b.jsonl.part").touch()
    lines({"query": "", "chunks": []})
    before = names()
    assert refused("pack", "--input", "in.jsonl", "-o", "out.jsonl", *arguments).startswith(
        message
    )
    assert before == names()


def test_workers_are_for_many_requests(refused):
    """One answer has none."""
    said = refused("pack", "-q", "tea", "--workers", 2, stdin="[]")
    assert "--workers does nothing with one answer: give --output FILE, or leave it out" == said


def test_a_pipe_is_no_input(refused):
    """It cannot be read again."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("has no named pipes")
    os.mkfifo("in.jsonl")
    said = refused("pack", "--input", "in.jsonl", "-o", "out.jsonl")
    assert said.startswith("--input must be a file, not 'in.jsonl', which cannot be read again")


@pytest.mark.parametrize("ending", [".jsonl.gz", pytest.param(".jsonl.zst", marks=NEEDS_ZSTD)])
def test_an_input_that_is_cut_off_is_no_output(refused, ending):
    """Not even of the requests before its end."""
    write(f"in{ending}", requests(200))
    Path(f"in{ending}").write_bytes(Path(f"in{ending}").read_bytes()[:-3])
    said = refused("pack", "--input", f"in{ending}", *ARGUMENTS, "-o", "out.jsonl")
    assert said.startswith(f"cannot read 'in{ending}': Compressed file ended before")
    assert {f"in{ending}"} == names()


@pytest.mark.parametrize(
    "ending", [".jsonl.gz", pytest.param(".jsonl.zst", marks=NEEDS_ZSTD), ".parquet"]
)
def test_an_input_of_another_kind_is_named(refused, ending):
    """The ending of its name is what it is."""
    Path(f"in{ending}").write_bytes(b"garbage " * 9)
    said = refused("pack", "--input", f"in{ending}", "-n", 9, "-o", "out.jsonl")
    assert said.startswith(f"cannot read 'in{ending}': ")
    assert {f"in{ending}"} == names()


def test_a_table_without_its_columns_is_refused(refused):
    """With a hint."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for columns, message in (
        ({"query": ["tea"], "chunk": [["Tea."]]}, "'chunks'; did you mean 'chunk'?; it has"),
        ({"chunks": [["Tea."]]}, "'query'; it has 'chunks'"),
    ):
        parquet.write_table(pa.table(columns), "in.parquet")
        said = refused("pack", "--input", "in.parquet", "-n", 9, "-o", "out.jsonl")
        assert said.startswith(f"'in.parquet' must have a column {message}")


@pytest.mark.parametrize("module", ["pyarrow.parquet", "compression.zstd"])
def test_packages_are_named(refused, monkeypatch, module):
    """What is missing is in the extra."""
    lines({"query": "", "chunks": []})
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    name = "out.parquet" if module == "pyarrow.parquet" else "out.jsonl.zst"
    said = refused("pack", "--input", "in.jsonl", "-n", 9, "-o", name)
    assert said.startswith(f"'{name}' needs pip install 'budgeteer[bulk]': ")


# Going on.


@pytest.fixture(scope="module")
def stop(tmp_path_factory):
    """Return a folder with a run that was stopped after the first batch, and what it was to be."""
    folder = tmp_path_factory.mktemp("stopped")
    write(folder / "in.jsonl", requests(200))
    done = process("in.jsonl", "out.jsonl", check=False, code=STOP, cwd=folder)
    assert 9 == done.returncode
    assert not (folder / "out.jsonl").exists()
    return folder, packed(requests(200), Packer(40, counter="words"))


@pytest.fixture
def stopped(stop, folder):
    """Have such a run here; the value is what it was to be."""
    shutil.copytree(stop[0], folder, dirs_exist_ok=True)
    return stop[1]


def test_the_same_command_goes_on(run, stopped):
    """It says after how many requests, and packs no more than the rest."""
    status, out, err = run("pack", "--input", "in.jsonl", *ARGUMENTS, "-o", "out.jsonl")
    assert (0, "") == (status, out)
    with Path("in.jsonl").open("rb") as file:
        first = len(file.readlines(_requests._BATCH))
    assert f"budgeteer: going on after {first} requests\n" == err
    assert stopped == read("out.jsonl")
    assert 0 < first < len(stopped)


def change_input():
    os.utime("in.jsonl", ns=(1, 1))


def damage_rows():
    with Path("out.jsonl.part/rows").open("r+b") as file:
        file.write(b"x")


def cut_rows():
    os.truncate("out.jsonl.part/rows", 5)


def remove_rows():
    Path("out.jsonl.part/rows").unlink()


def damage_state():
    Path("out.jsonl.part/state.json").write_text('{"run": 5')


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (None, ["-n", 41], "of a run that was stopped, and --max-tokens is 41 now and was 40: "),
        (None, ["-m", "chars_div4"], "and --counter is chars_div4 now and was words"),
        (None, ["--k1", 2], "and --ranking is Lexical("),
        (change_input, [], "and the time of --input's last change is 1 now and was "),
        (damage_rows, [], "is damaged, rows is not what was written: remove it to begin anew"),
        (cut_rows, [], "is damaged, rows is not what was written: remove it to begin anew"),
        (remove_rows, [], "is damaged, rows is missing: remove it to begin anew"),
        (damage_state, [], "is damaged, state.json cannot be read: remove it to begin anew"),
    ],
    ids=["tokens", "counter", "ranking", "input", "rows", "cut", "gone", "state"],
)
@pytest.mark.usefixtures("stopped")
def test_another_run_is_refused(refused, change, options, message):
    """With the name of what is another, and without losing what is there."""
    if change is not None:
        change()
    arguments = ("pack", "--input", "in.jsonl", *ARGUMENTS, "-o", "out.jsonl")
    before = names("out.jsonl.part")
    said = refused(*arguments, *options)
    assert said.startswith("'out.jsonl.part' is ")
    assert message in said
    assert before == names("out.jsonl.part")


@pytest.mark.usefixtures("stopped")
def test_two_processes_do_not_write_one_output(refused):
    """The second is refused while the first runs."""
    holder = process("in.jsonl", "out.jsonl", wait=False, code=HOLD)
    try:
        assert b"held\n" == holder.stdout.readline()
        said = refused("pack", "--input", "in.jsonl", *ARGUMENTS, "-o", "out.jsonl")
    finally:
        holder.kill()
        holder.communicate()
    assert "another process is writing 'out.jsonl': let it end, or give another --output" == said


HOLD = (
    "import sys, time, budgeteer.cli._bulk as bulk, budgeteer.cli as cli\n"
    "def hold(*_): print('held', flush=True); time.sleep(60)\n"
    "bulk._pack = hold\n"
    "cli.main(sys.argv[1:])"
)


def test_an_input_that_grows_meanwhile_is_no_output(refused, monkeypatch):
    """Its last line may have been half a line."""
    write("in.jsonl", requests(9))
    append = Part.append

    def grow(self, data):
        append(self, data)
        with Path("in.jsonl").open("a") as file:
            file.write("{}\n")

    monkeypatch.setattr(Part, "append", grow)
    said = refused("pack", "--input", "in.jsonl", *ARGUMENTS, "-o", "out.jsonl")
    assert said.startswith("'in.jsonl' was changed while it was read: remove 'out.jsonl.part'")
    assert not Path("out.jsonl").exists()


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_a_stop_before_the_last_step_loses_nothing(run, ending):
    """Where only the folder was to be removed, it is."""
    name = f"out{ending}"
    write("in.jsonl", requests(9))
    code = (
        "import os, sys, budgeteer.cli._part as part, budgeteer.cli as cli\n"
        "part._sync = lambda folder: os._exit(9)\n"
        "cli.main(sys.argv[1:])"
    )
    assert 9 == process("in.jsonl", name, check=False, code=code).returncode
    assert Path(f"{name}.part/state.json").exists()
    rows = read(name)
    assert (0, "", "") == run("pack", "--input", "in.jsonl", *ARGUMENTS, "-o", name)
    assert rows == read(name)
    assert {"in.jsonl", name} == names()


def test_what_others_put_into_the_folder_stays(run):
    """Only what is ours is removed."""
    write("in.jsonl", requests(1))
    Path("out.jsonl.part").mkdir()
    Path("out.jsonl.part/mine").write_text("tea")
    assert 0 == run("pack", "--input", "in.jsonl", *ARGUMENTS, "-o", "out.jsonl")[0]
    assert ["mine"] == [*names("out.jsonl.part")]


@pytest.mark.skipif(os.name == "nt", reason="has no such links and pipes")
def test_the_output_is_a_link_or_a_pipe(run):
    """What a link leads to is replaced, and keeps its permissions; a pipe stays one."""
    write("in.jsonl", requests(1))
    Path("there").mkdir()
    Path("there/out.jsonl").touch(0o640)
    Path("out.jsonl").symlink_to("there/out.jsonl")
    Path("circle.jsonl").symlink_to("circle.jsonl")
    os.mkfifo("pipe.jsonl")

    def packs(output):
        return run("pack", "--input", "in.jsonl", *ARGUMENTS, "-o", output)

    assert (0, "", "") == packs("out.jsonl")
    assert Path("out.jsonl").is_symlink()
    assert 1 == len(read("out.jsonl"))
    assert 0o640 == Path("there/out.jsonl").stat().st_mode & 0o777
    assert {"out.jsonl"} == names("there")
    for output, said in ("pipe", "is a pipe or a device"), ("circle", "symbolic links"):
        status, _, error = packs(f"{output}.jsonl")
        assert (2, True) == (status, said in error), error
    assert Path("pipe.jsonl").is_fifo()
    assert {"in.jsonl", "there", "out.jsonl", "circle.jsonl", "pipe.jsonl"} == names()


def test_batches_begin_alike_wherever_reading_begins():
    """What is read from any of their ends on is the rest of them."""
    write("in.jsonl.gz", requests(120))
    write("in.parquet", requests(120), group=50)
    for name, least in (("in.jsonl.gz", 2), ("in.parquet", 3)):
        with _requests.opened(name, Packer(9)) as source:
            batches = [*source.batches(0, 1)]
        assert least <= len(batches)
        for i, batch in enumerate(batches):
            with _requests.opened(name, Packer(9)) as source:
                rest = [*source.batches(batch.end, batch.first + batch.lines)]
                assert rest == batches[i + 1 :]
                assert 1 == pytest.approx(source.share())


def test_rows_that_were_not_committed_are_cut_off():
    """What is behind the state is written again."""
    part = Part("out.jsonl", {})
    part.append(b"one\n")
    part.state.requests = 1
    part.commit()
    part.append(b"two\n")
    part.close()
    part = Part("out.jsonl", {})
    part.append(b"three\n")
    part.finish()
    assert b"one\nthree\n" == Path("out.jsonl").read_bytes()


def test_members_are_a_gzip_file():
    """What other programs read."""
    compress = _requests.compressor_of(".jsonl.gz")
    assert b"ab" == gzip.GzipFile(fileobj=io.BytesIO(compress(b"a") + compress(b"b"))).read()
