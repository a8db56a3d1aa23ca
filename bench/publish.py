"""publish.py RIVULET [--mb N] [--turns N] [--gb N] [--alone] [--keep DIR] ROOT...: see publish.sh. Each contestant writes llm.c's token files of the same
documents with the same vocabulary; the tokens are compared: of one document in a thousand they
may differ, where ours finds no place to cut a block in half a block of it (train/text/tokenizer/text_blocks.h). One JSON line per contestant: seconds,
seconds of processor time, MB/s of processor time, and the peak memory of its largest process."""
import argparse
import glob
import json
import multiprocessing
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile

import numpy

PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
SHARD, END = 1 << 21, "<|endoftext|>"


def documents_of(roots, most_bytes):
    """The texts of files below the roots, in an order of chance: UTF-8 without control characters."""
    paths = [os.path.join(d, f) for root in roots for d, _, files in os.walk(root) for f in sorted(files)]
    random.Random(1).shuffle(paths)
    n = 0
    for path in paths:
        if n >= most_bytes or os.path.islink(path) or not 500 <= os.path.getsize(path) <= 1 << 20:
            continue
        try:
            with open(path, "rb") as f:
                data = f.read()
            text = data.decode()
        except (OSError, UnicodeDecodeError):
            continue
        if b"\0" not in data and END not in text:
            n += len(data)
            yield text


def write_shards(parts, out):
    """llm.c's files of SHARD tokens, as its write_datafile does."""
    os.makedirs(out)
    held, n_held, shard = [], 0, 0

    def flush(tokens):
        nonlocal shard
        header = numpy.zeros(256, numpy.int32)
        header[:3] = 20240520, 1, len(tokens)
        with open(os.path.join(out, f"shard-{shard:06}.bin"), "wb") as f:
            f.write(header.tobytes() + tokens.tobytes())
        shard += 1

    for part in parts:
        held.append(part)
        n_held += len(part)
        while n_held >= SHARD:
            whole = numpy.concatenate(held)
            flush(whole[:SHARD])
            held, n_held = [whole[SHARD:]], n_held - SHARD
    if n_held:
        flush(numpy.concatenate(held))


def by_datasets(work, workers):
    """nanoGPT's prepare.py: load_dataset, map in batches on processes, then the concatenation in order."""
    import datasets
    import tokenizers
    datasets.disable_caching()
    end = tokenizers.Tokenizer.from_file(f"{work}/tokenizer.json").token_to_id(END)

    def encode(batch):
        t = tokenizers.Tokenizer.from_file(f"{work}/tokenizer.json")
        return {"ids": [[end] + e.ids for e in t.encode_batch(batch["text"], add_special_tokens=False)]}

    data = datasets.load_dataset("parquet", data_files=f"{work}/text.parquet", split="train", cache_dir=f"{work}/cache")
    done = data.map(encode, batched=True, remove_columns=["text"], num_proc=workers)
    write_shards((numpy.concatenate([numpy.array(x, numpy.uint16) for x in batch["ids"]]) for batch in done.iter(1000)), f"{work}/datasets")


ENCODING = None


def tiktoken_of(work):
    """The same vocabulary as tiktoken has it: ranks are the ids of byte strings."""
    import tiktoken
    model = json.load(open(f"{work}/tokenizer.json"))
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(b): b for b in printable}
    table.update({chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in printable)})
    ranks = {bytes(table[c] for c in piece): i for piece, i in model["model"]["vocab"].items() if piece != END}
    end = next(t["id"] for t in model["added_tokens"] if t["content"] == END)
    return tiktoken.Encoding("bench", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={END: end}), end


def encode_one(work, text):
    global ENCODING
    ENCODING = ENCODING or tiktoken_of(work)
    encoding, end = ENCODING
    return numpy.array([end] + encoding.encode_ordinary(text), numpy.uint16)


def encode_llmc(pair):
    return encode_one(*pair)


def by_llmc(work, workers):
    """llm.c's dev/data/fineweb.py: pool.imap over documents, chunks of 16."""
    import pyarrow.parquet
    rows = ((work, text) for batch in pyarrow.parquet.ParquetFile(f"{work}/text.parquet").iter_batches(1000, columns=["text"])
            for text in batch.column(0).to_pylist())
    with multiprocessing.Pool(workers) as pool:
        write_shards(pool.imap(encode_llmc, rows, chunksize=16), f"{work}/llmc")


def varied(texts, rng):
    """The documents in another order, each begun at another of its lines."""
    for text in rng.sample(texts, len(texts)):
        at = text.find("\n", rng.randrange(len(text))) + 1
        yield text[at:] + text[:at]


def write_large(texts, most_bytes, path):
    """Writes the documents again and again, varied, as Parquet, in little memory. Returns the bytes of text."""
    import pyarrow
    import pyarrow.parquet
    rng, n, rows = random.Random(2), 0, []
    schema = pyarrow.schema([("text", pyarrow.string())])
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as out:
        while n < most_bytes:
            for text in varied(texts, rng):
                rows.append(text)
                n += len(text.encode())
                if len(rows) == 1000 or n >= most_bytes:
                    out.write_table(pyarrow.table({"text": rows}, schema=schema), row_group_size=1000)
                    rows = []
                if n >= most_bytes:
                    break
    return n


def tokens_of(out):
    return numpy.concatenate([numpy.fromfile(p, numpy.uint16)[512:] for p in sorted(glob.glob(f"{out}/shard-*.bin"))])


def documents_that_differ(a, b, end):
    """How many documents, each after a token `end`, are not the same in both."""
    parts = [numpy.split(x, numpy.flatnonzero(x == end)) for x in (a, b)]
    if len(parts[0]) != len(parts[1]):
        return len(parts[0])
    return sum(not numpy.array_equal(x, y) for x, y in zip(*parts))


def measure(name, command):
    """Runs it as a child of a child, so that its processor time and memory are its own."""
    script = ("import json,resource,subprocess,sys,time\nb=time.monotonic()\n"
              "r=subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,stderr=subprocess.PIPE,text=True)\n"
              "u=resource.getrusage(resource.RUSAGE_CHILDREN)\n"
              "print(json.dumps([r.returncode,time.monotonic()-b,u.ru_utime+u.ru_stime,u.ru_maxrss/1024,r.stderr[-600:]]))")
    out = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True, check=True).stdout
    status, wall, cpu, mib, why = json.loads(out)
    if status != 0:
        sys.exit(f"{name}: status {status}: {why}")
    return wall, cpu, mib


def say(name, n_bytes, wall, cpu, mib):
    print(json.dumps({"way": name, "text_mb": round(n_bytes / 1e6, 1), "seconds": round(wall, 2), "processor_seconds": round(cpu, 2),
                      "mb_per_second": round(n_bytes / 1e6 / wall, 2), "mb_per_processor_second": round(n_bytes / 1e6 / cpu, 2),
                      "peak_mib": round(mib)}), flush=True)


def compare(a, work, ways, texts, n_bytes):
    """Runs each way, in turns, and compares their tokens."""
    figures = {name: (0.0, 0.0) for name in ways}
    for name, command in [pair for _ in range(a.turns) for pair in ways.items()]:
        shutil.rmtree(f"{work}/{name}", ignore_errors=True)
        wall, cpu, mib = measure(name, command)
        figures[name] = figures[name][0] + wall, figures[name][1] + cpu
        say(name, n_bytes, wall, cpu, mib)
    end = next(t["id"] for t in json.load(open(f"{work}/tokenizer.json"))["added_tokens"] if t["content"] == END)
    want = tokens_of(f"{work}/rivulet")
    for name in ("llmc", "datasets"):
        differ = documents_that_differ(tokens_of(f"{work}/{name}"), want, end)
        print(json.dumps({"way": name, "documents_with_other_tokens": differ}), flush=True)
        if differ > len(texts) // 1000:
            sys.exit(f"{name}: {differ} documents have other tokens")
    for name in ("llmc", "datasets"):
        print(f"{name} takes {figures[name][0] / figures['rivulet'][0]:.1f} times as long as rivulet, "
              f"{figures[name][1] / figures['rivulet'][1]:.1f} times its processor time, of {len(want)} tokens")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("rivulet")
    p.add_argument("roots", nargs="+")
    p.add_argument("--mb", type=int, default=100)
    p.add_argument("--vocab", type=int, default=16384)
    p.add_argument("--turns", type=int, default=1)
    p.add_argument("--gb", type=float, default=0)
    p.add_argument("--alone", action="store_true")
    p.add_argument("--keep")
    p.add_argument("--only")
    a = p.parse_args()
    workers = len(os.sched_getaffinity(0))
    if a.only:
        return {"datasets": by_datasets, "llmc": by_llmc}[a.only](a.roots[0], workers)
    import pyarrow
    import pyarrow.parquet
    work = a.keep or tempfile.mkdtemp(prefix="rv-publish-")
    os.makedirs(work, exist_ok=True)
    texts = list(documents_of(a.roots, a.mb * 10**6))
    n_bytes = sum(len(t.encode()) for t in texts)
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), f"{work}/text.parquet", compression="zstd", row_group_size=1000)
    with open(f"{work}/sample.txt", "w", encoding="utf-8") as f:
        f.write("\n".join(texts)[:8_000_000])
    subprocess.run([a.rivulet, "tokenizer", "train", "--vocab", str(a.vocab), "--data", f"{work}/sample.txt",
                    "--out", f"{work}/tokenizer.json"], check=True, stdout=subprocess.DEVNULL)
    print(json.dumps({"documents": len(texts), "text_mb": n_bytes / 1e6, "vocab": a.vocab, "processors": workers}), flush=True)
    again = [sys.executable, "-B", os.path.abspath(__file__), a.rivulet, work, "--only"]
    ways = {"rivulet": [a.rivulet, "data", "publish", f"{work}/text.parquet", "--tokenizer", f"{work}/tokenizer.json",
                        "--out", f"{work}/rivulet"],
            "llmc": [*again, "llmc"], "datasets": [*again, "datasets"]}
    if not a.alone:
        compare(a, work, ways, texts, n_bytes)
    if a.gb:
        for name in ways:
            shutil.rmtree(f"{work}/{name}", ignore_errors=True)
        n_bytes = write_large(texts, a.gb * 1e9, f"{work}/large.parquet")
        say("rivulet", n_bytes, *measure("rivulet", [
            a.rivulet, "data", "publish", f"{work}/large.parquet", "--tokenizer", f"{work}/tokenizer.json", "--out",
            f"{work}/large"]))
    if not a.keep:
        shutil.rmtree(work)
    return None


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
