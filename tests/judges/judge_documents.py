#!/usr/bin/env python3
"""judge_documents.py PRINT_DOCUMENTS: our documents are those that pyarrow, polars, duckdb and datasets wrote: Parquet in
every encoding, compression and page version that their writers have, with null and nested columns beside the text;
JSON Lines; and files that gzip and zstd packed."""
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile

import judges

judges.enter()
judges.versions("pyarrow", "polars", "duckdb", "datasets", "zstandard")

import datasets  # noqa: E402
import duckdb  # noqa: E402
import polars  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import zstandard  # noqa: E402

PRINT = sys.argv[1]
ROOT = tempfile.mkdtemp(prefix="rv-judge-")
RANDOM = random.Random(20261123)
WORDS = ["the", "of", "\u00e9t\u00e9", "\u6f22\u5b57", "\U0001f600", "line\nbreak", "", "quote\"", "\\", "tab\t", "x" * 300]
checked = 0


def texts(n, nulls=0.0, same=0.0, words=8):
    out = []
    for _ in range(n):
        if RANDOM.random() < nulls:
            out.append(None)
        elif out and RANDOM.random() < same:
            out.append(RANDOM.choice(out))
        else:
            out.append(" ".join(RANDOM.choice(WORDS) for _ in range(RANDOM.randint(0, words))) + str(len(out)))
    return out


def ours(path, field="text"):
    """(status, documents or the text of the refusal)"""
    done = subprocess.run([PRINT, path, field], capture_output=True)
    if done.returncode != 0:
        return done.returncode, done.stderr.decode()
    return 0, [d.decode(errors="replace") for d in done.stdout.split(b"\xff")[:-1]]


def expect(path, wanted, field="text"):
    global checked
    status, got = ours(path, field)
    wanted = [t for t in wanted if t is not None]
    if status != 0 or got != wanted:
        what = got if status != 0 else f"{len(got)} documents, {len(wanted)} expected"
        sys.exit(f"{path}: {what}")
    checked += 1


def expect_refusal(path, *parts, field="text"):
    global checked
    status, why = ours(path, field)
    if status == 0 or any(part not in why for part in parts):
        sys.exit(f"{path}: not refused with {parts}: {why}")
    checked += 1


def beside(n):
    """Columns that stand beside the text in files of the hub"""
    return {"id": pa.array(range(n), pa.int64()), "score": pa.array([None if i % 3 else i / 2 for i in range(n)]),
            "meta": pa.array([None if i % 5 == 0 else {"url": f"u{i}", "tags": ["a", None] * (i % 3)} for i in range(n)]),
            "turns": pa.array([[{"role": "user", "content": f"c{i}"}] * (i % 4) for i in range(n)]),
            "blob": pa.array([bytes([i % 256]) for i in range(n)], pa.binary())}


def table(values, type_=pa.string()):
    columns = beside(len(values))
    return pa.table({"id": columns.pop("id"), "text": pa.array(values, type_), **columns})


def pyarrow_files():
    for i, compression in enumerate(["none", "snappy", "gzip", "zstd", "lz4"]):
        for version in ("1.0", "2.0"):
            for options in ({}, {"use_dictionary": False}, {"use_dictionary": ["text"]},
                            {"use_dictionary": False, "column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY"}},
                            {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
                            {"row_group_size": 37, "data_page_size": 200}, {"dictionary_pagesize_limit": 100}):
                for nulls in (0.0, 0.3):
                    path = os.path.join(ROOT, "arrow.parquet")
                    values = texts(RANDOM.choice([0, 1, 7, 500]), nulls, same=RANDOM.choice([0, 0.9]))
                    pq.write_table(table(values, RANDOM.choice([pa.string(), pa.large_string()])), path, compression=compression,
                                   data_page_version=version, **options)
                    expect(path, values)
    path = os.path.join(ROOT, "nothing.parquet")
    pq.write_table(pa.table({"text": pa.array([None] * 100, pa.string())}), path)
    expect(path, [])
    required = pa.schema([pa.field("text", pa.string(), nullable=False)])
    pq.write_table(pa.table({"text": ["a", "b", ""]}, schema=required), path)
    expect(path, ["a", "b", ""])
    long = ["x" * 5_000_000, "y", "z" * 3_000_000]
    pq.write_table(pa.table({"text": long}), path, write_page_checksum=True)
    expect(path, long)


def nested_files():
    path = os.path.join(ROOT, "nested.parquet")
    rows = [None if i % 7 == 0 else {"text": None if i % 5 == 0 else f"t{i}", "n": i} for i in range(300)]
    pq.write_table(pa.table({"meta": pa.array(rows)}), path)
    expect(path, [r["text"] for r in rows if r], field="meta.text")
    pq.write_table(table(texts(50)), path)
    expect_refusal(path, "no column 'body'", "text", field="body")
    expect_refusal(path, "within a list", field="turns.list.element.content")
    expect_refusal(path, "does not hold strings", field="id")
    expect_refusal(path, "does not hold strings", field="blob")
    pq.write_table(table(texts(50)), path, compression="brotli")
    expect_refusal(path, "Brotli", "zstd")


def other_writers():
    values = texts(3000, nulls=0.1, same=0.5)
    path = os.path.join(ROOT, "other.parquet")
    for compression in ("uncompressed", "snappy", "gzip", "zstd", "lz4_raw"):
        name = {"lz4_raw": "lz4"}.get(compression, compression)
        polars.DataFrame({"text": values, "n": list(range(len(values)))}).write_parquet(
            path, compression="uncompressed" if name == "uncompressed" else name, row_group_size=700)
        expect(path, values)
    frame = pa.table({"text": values})  # duckdb finds it by its name
    for version in ("V1", "V2"):
        for compression in ("uncompressed", "snappy", "gzip", "zstd", "lz4_raw"):
            duckdb.sql(f"COPY (SELECT * FROM frame) TO '{path}' (FORMAT parquet, PARQUET_VERSION {version}, "
                       f"COMPRESSION {compression}, ROW_GROUP_SIZE 2048)")
            expect(path, values)
    del frame
    hub = datasets.Dataset.from_dict({"text": values, "label": [0] * len(values)})
    hub.to_parquet(path)
    expect(path, values)
    path = os.path.join(ROOT, "hub.jsonl")
    hub.to_json(path)
    expect(path, values)
    hub.save_to_disk(os.path.join(ROOT, "disk"))
    arrow = [f for f in os.listdir(os.path.join(ROOT, "disk")) if f.endswith(".arrow")]
    expect_refusal(os.path.join(ROOT, "disk", arrow[0]), "Arrow")


def packed_files():
    values = texts(5000)
    lines = "".join(json.dumps({"id": i, "text": t, "meta": {"text": t}}, ensure_ascii=i % 2 == 0) + "\n" +
                    "\n" * (i % 100 == 0) for i, t in enumerate(values)).encode()
    text = "\n".join(values).encode()
    half = len(lines) // 2
    for name, whole, wanted in (("a.jsonl", lines, values), ("b.txt", text, [text.decode()])):
        path = os.path.join(ROOT, name)
        for ending, data in ((".gz", gzip.compress(whole)), (".gz", gzip.compress(whole[:half]) + gzip.compress(whole[half:])),
                             (".zst", zstandard.compress(whole)), (".zst", zstandard.compress(whole[:half]) + zstandard.compress(whole[half:])),
                             (".zst", zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compress(whole)), ("", whole)):
            with open(path + ending, "wb") as f:
                f.write(data)
            expect(path + ending, wanted)
            if ending:
                with open(path + ending, "wb") as f:
                    f.write(data[:-5])
                expect_refusal(path + ending, "cannot be unpacked", "too early")
    expect(os.path.join(ROOT, "a.jsonl"), values, field="meta.text")
    expect_refusal(os.path.join(ROOT, "a.jsonl"), "line 1", "no field 'body'", "'id'", field="body")
    for tool, ending in (("gzip", ".gz"), ("zstd", ".zst")):
        path = os.path.join(ROOT, "tool.txt")
        with open(path, "wb") as f:
            f.write(text)
        if subprocess.run([tool, "-q", "-f", path], stderr=subprocess.DEVNULL).returncode == 0:
            expect(path + ending, [text.decode()])
    path = os.path.join(ROOT, "table.csv.gz")
    with gzip.open(path, "wb") as f:
        f.write(b"a,b\n1,2\n")
    expect_refusal(path, "a table")


def damaged_files():
    """No cut and no changed byte ends the program otherwise than with a text."""
    path, bad = os.path.join(ROOT, "good.parquet"), os.path.join(ROOT, "bad.parquet")
    for encoding in ("PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"):
        pq.write_table(table(texts(60, nulls=0.2)), path, use_dictionary=False, column_encoding={"text": encoding},
                       compression="none", data_page_version=RANDOM.choice(["1.0", "2.0"]))
        whole = open(path, "rb").read()
        for _ in range(150):
            data = bytearray(whole)
            for _ in range(RANDOM.randint(1, 4)):
                data[RANDOM.randrange(4, len(data))] = RANDOM.randrange(256)
            with open(bad, "wb") as f:
                f.write(data[:RANDOM.choice([len(data), RANDOM.randrange(len(data))])])
            status, why = ours(bad)
            if status not in (0, 1) or (status == 1 and not why.strip()):
                sys.exit(f"{bad}: status {status}: {why}")


for part in (pyarrow_files, nested_files, other_writers, packed_files, damaged_files):
    part()
    print(f"{part.__name__}: {checked} files read or refused as they should be")
subprocess.run(["rm", "-r", ROOT], check=True)
