"""The steps that take times: whole training steps of ours, one step under a profiler, and the peers beside it."""
import csv
import os
import pathlib
import re
import statistics
import struct

from checks import FIXED, OWN, steps_words
from context import Failed, Skipped, describe, json_lines, tail, tool
from inventory import need_torch
from models import models
from step import Item

NEEDS_S = {"124M": 8, "350M": 12, "774M": 20, "1558M": 35, "tiny": 1}  # with the drawing of the weights
HERE = pathlib.Path(__file__).resolve().parent

# --- ours alone ---


def _times(ended):
    return [r["step_ms"] for r in json_lines(ended.out) if "step_ms" in r]


def _outcome(ended, ms):
    """Returns a contestant's figures, also of one that was cut short after some steps."""
    data = {"ms": statistics.median(ms), "fastest_ms": min(ms), "steps": len(ms)} if ms else {}
    data["describe"] = describe(ended.err)
    if ended.rc != 0:
        raise Failed(tail(ended.err) or ended.how(), data, "timed out" if ended.timed_out else "failed")
    return data


def _ours(model, batch, variables):
    def run(c):
        ended = c.run(steps_words(c, model, batch, "--steps", 2 if c.emulated else 15), 120, env=c.env(**variables))
        data = _outcome(ended, _times(ended))
        started = [r["start_ms"] for r in json_lines(ended.out) if "start_ms" in r]
        return dict(data, batch=batch, model=model.name, start_s=started[0] / 1e3 if started else None)
    return run


def _phases(model, batch):
    def run(c):
        ended = c.run(steps_words(c, model, batch, "--measure", "phases", "--steps", 1 if c.emulated else 5), 120)
        rows = [r for r in json_lines(ended.out) if "phase" in r]
        if ended.rc != 0 or not rows:
            raise Failed(tail(ended.err) or ended.how())
        return {"phases": rows, "model": model.name, "batch": batch}
    return run


def row_name(model, batch, variant=""):
    return "%s B%d%s" % (model.name, batch, variant)


def ours(c):
    measured = models(c.emulated)
    found = [Item(row_name(m, m.batches[k]), _ours(m, m.batches[k], {}), NEEDS_S[m.name])
             for k in (0, 1) for m in measured]
    first = measured[0]
    for variant, variables in ((", own attention", OWN), (", no graphs", {"RIVULET_CUDA_GRAPHS": "0"}),
                               (", fixed algorithms", FIXED)):
        found.append(Item(row_name(first, first.batches[0], variant), _ours(first, first.batches[0], variables),
                          NEEDS_S[first.name]))
    return found + [Item("phases of " + row_name(m, m.batches[0]), _phases(m, m.batches[0]), NEEDS_S[m.name])
                    for m in measured[:2]]


# --- one step under a profiler ---

METRICS = "gpu__time_duration.sum,dram__bytes.sum"
TOP = 20


def kernels_of(lines):
    """Sums ncu's CSV by kernel: [{kernel, calls, ms, gb}], the longest first."""
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    sums = {}
    for row in csv.DictReader(lines[start:]):
        try:
            value = float(row["Metric Value"].replace(",", ""))
        except (KeyError, ValueError, AttributeError, TypeError):
            continue
        name = re.sub(r"[<(].*", "", row["Kernel Name"])[-60:]
        k = sums.setdefault(name, {"kernel": name, "calls": 0, "ms": 0.0, "gb": 0.0})
        if row["Metric Name"].startswith("gpu__time"):
            k["calls"] += 1
            k["ms"] += value * 1e-6
        elif row["Metric Name"].startswith("dram__bytes"):
            k["gb"] += value * 1e-9
    return sorted(sums.values(), key=lambda k: -k["ms"])


def _profile(model):
    def run(c):
        ncu = tool("ncu")
        if c.emulated or not ncu:
            raise Skipped("emulated" if c.emulated else "ncu (Nsight Compute) is not installed")
        listing = c.work / "ncu.csv"
        words = [ncu, "--clock-control", "none", "--profile-from-start", "off", "--metrics", METRICS, "--csv",
                 "--print-units", "base", "--log-file", listing]
        ended = c.under(words, steps_words(c, model, model.batches[0], "--steps", 1, "--profile"), 180,
                        RIVULET_CUDA_GRAPHS="0")
        kernels = kernels_of(listing.read_text(errors="replace").splitlines()) if listing.exists() else []
        if not kernels:
            raise Failed(tail(ended.err + ended.out, 4) or ended.how())
        return {"model": model.name, "batch": model.batches[0], "kernels": kernels[:TOP],
                "ms": sum(k["ms"] for k in kernels), "calls": sum(k["calls"] for k in kernels)}
    return run


def profile(c):
    return [Item("kernels of " + row_name(m, m.batches[0]), _profile(m), 2 * NEEDS_S[m.name])
            for m in models(c.emulated)[:2]]


# --- peers ---


def _torch(model, batch):
    def run(c):
        need_torch(c)
        shape = [model.layers, model.heads, model.channels, model.vocab, model.context, batch]
        env = dict(os.environ, PYTHONPATH=str(HERE.parent), TORCHINDUCTOR_CACHE_DIR=str(c.work / "inductor"))
        ended = c.run([c.python, "-B", HERE / "torch_step.py"] + shape, 200, env=env)
        return dict(_outcome(ended, _times(ended)), model=model.name, batch=batch)
    return run


LLMC_MAGIC, LLMC_HEADER_WORDS = 20240520, 256  # llm.c's files of tokens: dev/data/data_common.py there


def _write_llmc_tokens(path, n):
    header = [LLMC_MAGIC, 1, n] + [0] * (LLMC_HEADER_WORDS - 3)
    tokens = bytes(b for i in range(n) for b in (32 + (i * i + 7 * i) % 95, 0))
    path.write_bytes(struct.pack("<%di" % LLMC_HEADER_WORDS, *header) + tokens)


def _llmc(model, batch):
    def run(c):
        if not c.llmc:
            raise Skipped("--llmc FILE names a built train_gpt2cu of llm.c, which is not included")
        tokens = c.work / "llmc.bin"
        _write_llmc_tokens(tokens, 4 * batch * model.context + 1)
        words = ["-e", "d%d" % model.layers, "-i", tokens, "-j", tokens, "-b", batch, "-t", model.context,
                 "-d", batch * model.context, "-x", 15, "-v", 1000, "-m", 1, "-s", 1000, "-h", 0]
        ended = c.run([c.llmc] + words, 120, env=dict(os.environ))
        ms = [float(m) for m in re.findall(r"^step .*?([0-9.]+) ms", ended.out, re.MULTILINE)]
        return dict(_outcome(ended, ms[3:]), model=model.name, batch=batch)
    return run


def peers(c):
    measured = models(c.emulated)
    found = []
    for m in measured:
        found.append(Item("PyTorch, " + row_name(m, m.batches[0]), _torch(m, m.batches[0]), 30 + 2 * NEEDS_S[m.name]))
        found.append(Item("llm.c, " + row_name(m, m.batches[0]), _llmc(m, m.batches[0]), 10 + NEEDS_S[m.name]))
    return found + [Item("PyTorch, " + row_name(m, m.batches[1]), _torch(m, m.batches[1]), 30 + 2 * NEEDS_S[m.name])
                    for m in measured]
