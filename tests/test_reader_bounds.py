"""Hostile files are refused before they take memory or time, whatever they say of themselves."""

import gzip
import io
import json
import struct
import subprocess
import sys
import zipfile
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import memframe as mf
from memframe.archive import bounds
from memframe.frames import MEMORY_KINDS, TEXT

MIB = 1 << 20
MEASURE = """
import resource, sys, time, warnings
import memframe as mf
warnings.simplefilter("ignore")
small, *jobs = sys.argv[1:]
mf.read_memories(small)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for job in jobs:
    read, path = job.split("=", 1)
    began = time.process_time()
    try:
        getattr(mf, read)(path)
    except mf.FrameError as error:
        said = str(error).replace("\\n", " ")
    else:
        said = "READ"
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    print(megabytes, time.process_time() - began, said)
"""


def check_refused(small, jobs):
    """Read files in a process of their own: each is refused within 100 MB beyond a small file, and 10 s of work."""
    asked = [f"{read}={path}" for read, path, _ in jobs]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(small), *asked], capture_output=True, text=True, check=True
    )
    for job, (*_, words), line in zip(asked, jobs, done.stdout.splitlines(), strict=True):
        megabytes, seconds, said = line.split(" ", 2)
        assert said != "READ", job
        assert words in said, said
        assert (int(megabytes) < 100, float(seconds) < 10) == (True, True), (job, megabytes, seconds)


def parquet_of(column):
    """Return a Parquet file of one column."""
    buffer = io.BytesIO()
    pq.write_table(pa.table({"content": column}), buffer, compression="zstd", store_schema=False)
    return buffer.getvalue()


def repeated(text, n):
    return pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array([text]))


def in_lists(text, n):
    return pa.ListArray.from_arrays(pa.array([0, n], pa.int32()), repeated(text, n))


def zipped(name, data, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr(name, data)
    return buffer.getvalue()


def lying(packed, n_bytes, n_said):
    """Return a zip archive whose directory says another size than its member has."""
    return packed.replace(struct.pack("<I", n_bytes), struct.pack("<I", n_said))


N_BLANKS = 125 * MIB


@cache
def blanks(method):
    """Return so many blanks that they take more than is allowed, packed; made once, as it takes a second."""
    data = b" " * N_BLANKS
    return gzip.compress(data) if method == "gzip" else zipped("a.json", data, method)


BOMBS = {
    "a short text in many rows": ("bomb.parquet", lambda: parquet_of(repeated("x" * 400, 1_000_000))),
    "a long text in few rows": ("bomb.parquet", lambda: parquet_of(repeated("x" * MIB, 4_000))),
    "a list of a million texts": ("bomb.parquet", lambda: parquet_of(in_lists("x" * 4_000, 1_000_000))),
    "rows of nothing": ("bomb.parquet", lambda: parquet_of(pa.nulls(20_000_000, pa.string()))),
    "a member that grows": ("bomb.zip", lambda: blanks(zipfile.ZIP_DEFLATED)),
    "a member that is larger than said": ("bomb.zip", lambda: lying(blanks(zipfile.ZIP_DEFLATED), N_BLANKS, 9)),
    "a member packed in one piece": ("bomb.zip", lambda: blanks(zipfile.ZIP_BZIP2)),
    "gzip": ("bomb.jsonl.gz", lambda: blanks("gzip")),
    "gzip in a zip": ("bomb.zip", lambda: zipped("a.json.gz", blanks("gzip"), zipfile.ZIP_STORED)),
    "gzip of many members": ("bomb.gz", lambda: gzip.compress(b" " * MIB) * 150),
    "many small members": ("bomb.zip", lambda: small_members(150)),
}  # fmt: skip


def small_members(n):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(n):
            archive.writestr(f"{number}.txt", b" " * (MIB - 1))
    return buffer.getvalue()


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.parquet"
    mf.export_memories(mf.read_memories('[{"content": "Likes tea"}]'), path)
    return path


def bombs_of_one_file(folder):
    for name, (file, make) in BOMBS.items():
        path = folder / name / file
        path.parent.mkdir()
        path.write_bytes(make())
        assert path.stat().st_size < MIB
        yield "read_memories", path, ""


def many_in_a_folder(folder):
    path = folder / "bombs"
    path.mkdir()
    packed = gzip.compress(b" " * (MIB - 1))
    for number in range(150):
        (path / f"{number}.txt.gz").write_bytes(packed)
    yield "read_memories", path, "grows more than 200 times"


def files_of_holes(folder):
    for name in ("a.json", "a.jsonl", "a.csv", "a.md", "a.parquet"):
        with (folder / name).open("wb") as file:
            file.truncate(1 << 40)
        yield from ((read, folder / name, "") for read in ("read_memories", "load_archive"))


def an_archive(folder):
    text = repeated("x" * 400, 500_000)
    columns = {name: text if kind is TEXT else pa.nulls(len(text)) for name, kind in MEMORY_KINDS.items()}
    path = folder / "archive.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd", store_schema=False)
    yield from ((read, path, "grows more than 200 times") for read in ("read_memories", "load_archive"))


LONG, SHORT = "x" * (MIB - 200_000), [f"fact {number}" for number in range(10_000)]
REPEATED = {
    "the name of an entity": {"entities": [{"name": LONG, "entityType": "person", "observations": SHORT}]},
    "a document of a bank": {"id": LONG, "chunks": [], "facts": [{"text": text} for text in SHORT]},
}


def what_is_repeated_in_each_row(folder):
    for name, content in REPEATED.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(content))
        assert path.stat().st_size < 2 * MIB
        yield "read_memories", path, "repeat a long text"


def test_bombs_are_refused_within_little_memory_and_time(tmp_path, small):
    """A child costs seconds to start, so one reads them all: none may take what the others left."""
    kinds = (bombs_of_one_file, many_in_a_folder, files_of_holes, an_archive, what_is_repeated_in_each_row)
    check_refused(small, [job for jobs_of in kinds for job in jobs_of(tmp_path)])


def test_long_keys_of_a_profile_are_cut(tmp_path):
    path = tmp_path / "profile.json"
    path.write_text(json.dumps({"preferences": {LONG: {str(number): {"text": "x"} for number in range(3)}}}))
    frame = mf.read_memories(path)
    assert frame["entity"].tolist() == [f"preferences.{'x' * 60}.{number}" for number in range(3)]


def test_honest_files_are_within_the_bounds(tmp_path):
    texts = (" ".join(str(number * factor) for factor in range(200)) for number in range(1, 2_000))
    rows = [{"content": f"Likes tea: {text}", "source": "chat"} for text in texts]
    assert len(json.dumps(rows)) > bounds.RATIO_BYTES
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(json.dumps(rows).encode()))
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd")
    for name in ("a.json.gz", "a.parquet"):
        assert len(mf.read_memories(tmp_path / name)) == len(rows)


def test_a_gzip_file_of_several_members_is_read_whole(tmp_path):
    path = tmp_path / "memories.jsonl.gz"
    members = [gzip.compress(json.dumps({"content": f"Likes tea {n}"}).encode() + b"\n") for n in range(3)]
    path.write_bytes(b"".join(members) + b"\0" * 100)
    assert mf.read_memories(path)["content"].tolist() == ["Likes tea 0", "Likes tea 1", "Likes tea 2"]
    path.write_bytes(members[0] + members[1][:-12])
    with pytest.raises(mf.FrameError, match="cut off"):
        mf.read_memories(path)
    path.write_bytes(members[0] + b"something else")
    with pytest.raises(mf.FrameError, match="damaged archive"):
        mf.read_memories(path)


def linked():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.md", "Likes tea")
        link = zipfile.ZipInfo("link.md")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "a.md")
    return buffer.getvalue()


def test_links_in_archives_are_not_followed_and_not_read(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(linked())
    frame = mf.read_memories(path)
    assert frame["content"].tolist() == ["Likes tea"]
    assert frame.attrs["memframe_read"]["unread_files"] == 1


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json", '[{"content": "one"}]')
        archive.writestr("a.json", '[{"content": "two"}]')
    with pytest.raises(mf.FrameError, match=r"several files named a\.json"):
        mf.read_memories(path)


def test_a_locked_archive_says_so(tmp_path):
    path = tmp_path / "a.zip"
    data = bytearray(zipped("a.json", b"[]", zipfile.ZIP_STORED))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    path.write_bytes(data)
    with pytest.raises(mf.FrameError, match=r"a\.json in .* is locked with a password: unpack it yourself"):
        mf.read_memories(path)


def test_a_repeated_key_and_half_a_character_are_named():
    with pytest.raises(mf.FrameError, match=r"two values of one key, 'content'"):
        mf.read_memories('[{"content": "one", "content": "two"}]')
    with pytest.warns(UserWarning, match="line with a repeated key"):
        frame = mf.read_memories('{"content": "a"}\n{"content": "b", "content": "c"}\n{"content": "d"}\n')
    assert frame["content"].tolist() == ["a", "d"]
    frame = mf.read_memories('[{"content": "a\\ud83d"}]')
    assert frame["content"].tolist() == ["a\ufffd"]
    assert "lone surrogate" in frame.attrs["memframe_read"]["summary"]


def test_deep_nesting_is_named():
    nested = f'[{{"content": "Likes tea", "metadata": {"[" * 100_000}{"]" * 100_000}}}]'
    with pytest.raises(mf.FrameError, match="is nested too deeply"):
        mf.read_memories(nested)


def test_more_values_than_fit_are_refused(monkeypatch):
    monkeypatch.setattr(bounds, "MAX_VALUES", 10)
    with pytest.raises(mf.FrameError, match="more than 10 values"):
        mf.read_memories("[" + "[]," * 20 + "[]]")
