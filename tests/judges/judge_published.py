#!/usr/bin/env python3
"""judge_published.py RIVULET: what `rivulet data publish` makes of files that datasets, polars, duckdb, gzip, zstd, llm.c's and
nanoGPT's scripts write is, read by numpy as llm.c's token files, what the tokenizers library makes of the same documents."""
import gzip
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile

import judges

judges.enter()
judges.versions("datasets", "polars", "duckdb", "pyarrow", "tokenizers", "zstandard", "numpy")

import datasets  # noqa: E402
import duckdb  # noqa: E402
import numpy  # noqa: E402
import polars  # noqa: E402
import tokenizers  # noqa: E402
import zstandard  # noqa: E402

RIVULET = sys.argv[1]
ROOT = tempfile.mkdtemp(prefix="rv-judge-")
RANDOM = random.Random(20261123)
WORDS = ["the", "of", "\u00e9t\u00e9", "\u6f22\u5b57", "\U0001f600", "line\nbreak", "quote\"", "don't", "1234567", "  ", "x" * 90]
VOCAB, SHARD = 310, 16384


def path(name):
    return os.path.join(ROOT, name)


def rivulet(*args, fails=None):
    status, out, err = judges.run(RIVULET, *args)
    if (status != 0) != (fails is not None) or (fails and fails not in err):
        sys.exit(f"{args}: status {status}: {out}{err}")
    return out


def texts(n, nulls=0.0):
    return [None if RANDOM.random() < nulls else
            " ".join(RANDOM.choice(WORDS) for _ in range(RANDOM.randint(0, 120))) for _ in range(n)]


def read(where):
    """The tokens, each file checked by the hashes of docs/data.md."""
    manifest = json.load(open(os.path.join(where, "manifest.json")))
    page = open(os.path.join(where, "index-0-000000.hashes"), "rb").read()
    assert hashlib.blake2b(page, digest_size=32).hexdigest() == manifest["root"] and len(page) == 32 * manifest["shards"]
    parts = []
    for i in range(manifest["shards"]):
        data = open(os.path.join(where, f"shard-{i:06}.bin"), "rb").read()
        assert hashlib.blake2b(data, digest_size=32).digest() == page[32 * i:32 * i + 32]
        header = numpy.frombuffer(data, numpy.int32, 256)  # as llm.c's dataloader reads it
        assert header[0] == 20240520 and header[1] == 1 and header[2] == (len(data) - 1024) // 2
        parts.append(numpy.frombuffer(data, numpy.uint16, offset=1024))
    return manifest, numpy.concatenate(parts)


def expect(name, wanted, *args):
    out = path("out")
    shutil.rmtree(out, ignore_errors=True)
    rivulet("data", "publish", *args, "--tokenizer", TOKENIZER, "--out", out, "--shard-tokens", str(SHARD))
    manifest, tokens = read(out)
    if not numpy.array_equal(tokens, wanted):
        sys.exit(f"{name}: {len(tokens)} tokens, {len(wanted)} expected, or others")
    rivulet("data", "verify", out)
    print(f"{name}: {len(tokens)} tokens in {manifest['shards']} shards are those of tokenizers")
    return manifest


def write_llmc(name, tokens):
    """llm.c, dev/data/data_common.py: write_datafile, model_desc gpt-2"""
    header = numpy.zeros(256, dtype=numpy.int32)
    header[0], header[1], header[2] = 20240520, 1, len(tokens)
    with open(path(name), "wb") as f:
        f.write(header.tobytes())
        f.write(numpy.array(tokens, dtype=numpy.uint16).tobytes())


def write_nanogpt(name, tokens):
    """nanoGPT, data/openwebtext/prepare.py: a memmap of uint16, filled in batches"""
    arr = numpy.memmap(path(name), dtype=numpy.uint16, mode="w+", shape=(len(tokens),))
    for batch in range(0, len(tokens), 1000):
        arr[batch:batch + 1000] = tokens[batch:batch + 1000]
    arr.flush()


with open(path("train.txt"), "w", encoding="utf-8") as f:
    f.write("\n".join(texts(400)))
TOKENIZER = path("tokenizer.json")
rivulet("tokenizer", "train", "--vocab", str(VOCAB), "--data", path("train.txt"), "--out", TOKENIZER)
THEIRS = tokenizers.Tokenizer.from_file(TOKENIZER)


def tokens_of(documents):
    ids = []
    for text in documents:
        if text:  # an empty document is none
            ids.append(VOCAB - 1)
            ids += THEIRS.encode(text, add_special_tokens=False).ids
    return numpy.array(ids, numpy.uint16)


documents = texts(1500, nulls=0.05)
wanted = tokens_of(documents)

# A data set's directory: two splits of Parquet, and README.md.
os.makedirs(path("hub/data"))
for i, part in enumerate((documents[:700], documents[700:])):
    datasets.Dataset.from_dict({"id": list(range(len(part))), "text": part}).to_parquet(path(f"hub/data/train-{i:05}-of-00002.parquet"))
datasets.Dataset.from_dict({"text": ["held"]}).to_parquet(path("hub/data/test-00000-of-00001.parquet"))
with open(path("hub/README.md"), "w", encoding="utf-8") as f:
    f.write("---\nlicense: cc-by-4.0\n---\n# About\n")
assert expect("a data set's directory of Parquet", wanted, path("hub"))["license"] == "cc-by-4.0"

# The same of JSON Lines, packed.
os.makedirs(path("lines/data"))
datasets.Dataset.from_dict({"text": [t for t in documents if t]}).to_json(path("all.jsonl"))
whole = open(path("all.jsonl"), "rb").read().splitlines(keepends=True)
with open(path("lines/data/train-0.jsonl.zst"), "wb") as f:
    f.write(zstandard.compress(b"".join(whole[:500])))
with gzip.open(path("lines/data/train-1.jsonl.gz"), "wb") as f:
    f.write(b"".join(whole[500:]))
expect("a data set's directory of packed JSON Lines", wanted, path("lines"))

polars.DataFrame({"n": list(range(len(documents))), "body": documents}).write_parquet(path("polars.parquet"), compression="zstd")
expect("polars' Parquet", wanted, path("polars.parquet"), "--field", "body")
frame = polars.DataFrame({"text": documents}).to_arrow()
duckdb.sql(f"COPY (SELECT * FROM frame) TO '{path('duckdb.parquet')}' (FORMAT parquet, COMPRESSION snappy)")
expect("duckdb's Parquet", wanted, path("duckdb.parquet"))

# Several files, in the order that they are given.
expect("two files", numpy.concatenate([wanted, wanted]), path("polars.parquet").replace("polars", "duckdb"), path("hub/data/train-*.parquet"))

write_llmc("llmc.bin", wanted)
expect("llm.c's file", wanted, path("llmc.bin"))
write_nanogpt("nano.bin", wanted)
expect("nanoGPT's file", wanted, path("nano.bin"), "--format", "nanogpt")

saved = datasets.DatasetDict({"train": datasets.Dataset.from_dict({"text": ["a"]})})
saved.save_to_disk(path("saved"))
datasets.Dataset.from_dict({"text": ["a"]}).save_to_disk(path("saved1"))
polars.DataFrame({"text": ["a"]}).write_csv(path("table.csv"))
for name, why in (("saved", "save_to_disk"), ("saved1", "save_to_disk"), ("table.csv", "a table")):
    rivulet("data", "publish", path(name), "--out", path("no"), fails=why)
print("save_to_disk's directories and CSV are refused by name")
shutil.rmtree(ROOT)
