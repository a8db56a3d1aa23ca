"""The steps that compare: each operation with the reference, graphs with plain launches, the GPU's losses with the
CPU's, and our kernels under compute-sanitizer."""
import json

from context import Failed, Skipped, describe, json_lines, tail, tool
from models import models
from step import Item

OWN, FIXED = {"RIVULET_CUDA_ATTENTION": "own"}, {"RIVULET_CUDA_DETERMINISTIC": "1"}
VARIANTS = {"bf16 cuDNN": ("bf16", {}), "bf16 own": ("bf16", OWN), "bf16 fixed": ("bf16", FIXED), "fp32": ("fp32", {})}

# --- operations ---


def _conformance(c, name, dtype):
    sizes = ["--sizes", "light", "--repetitions", 1] if c.emulated else []
    return [c.bin / "device_conformance", "--only", name, "--dtype", dtype] + sizes


def _last_words(ended):
    return (ended.err.strip().splitlines() or [ended.how()])[-1][-300:]


def _rerun(c, words, variables):
    """Repeats a crash: with launches that wait, which names the call, and under memcheck, which names the line."""
    found = {}
    blocking = c.run(words, 60, env=c.env(CUDA_LAUNCH_BLOCKING="1", **variables))
    found["blocking"] = "%s: %s" % (blocking.how(), _last_words(blocking))
    memcheck = tool("compute-sanitizer")
    if memcheck and not c.emulated:
        ended = c.under([memcheck, "--tool", "memcheck", "--error-exitcode", 9], words, 120, **variables)
        found["memcheck"] = "%s: %s" % (ended.how(), tail(ended.out + ended.err, 12))
    return found


def _summary(rows):
    """The worst error of a class of sizes, and the times at those of GPT-2."""
    data = {"rows": len(rows), "differences": sum(r["differences"] for r in rows), "worst": {}, "times": []}
    for r in rows:
        if r["worst"] >= data["worst"].get(r["sizes"], {"worst": -1})["worst"]:
            data["worst"][r["sizes"]] = {"worst": r["worst"], "shape": r["shape"], "at": r["at"]}
        if r["sizes"] == "gpt2":
            data["times"] += [dict(p, shape=r["shape"]) for p in r["parts"]]
    return data


def _operation(name, variant):
    dtype, variables = VARIANTS[variant]

    def run(c):
        words = _conformance(c, name, dtype)
        ended = c.run(words, 60, env=c.env(**variables))
        data = _summary(json_lines(ended.out))
        data["describe"] = describe(ended.err)
        if ended.rc == 0:
            return data
        if ended.crashed():
            data["crash"] = dict(_rerun(c, words, variables), first="%s: %s" % (ended.how(), _last_words(ended)))
            raise Failed(data["crash"]["first"], data, "crashed")
        raise Failed(ended.how() if ended.timed_out else tail(ended.err, 1), data,
                     "timed out" if ended.timed_out else "failed")
    return run


def operations(c):
    ended = c.run([c.bin / "device_conformance", "--list"], 20)
    return [Item("%s, %s" % (name, variant), _operation(name, variant), 4)
            for variant in VARIANTS for name in ended.out.split()]


# --- graphs, and the CPU's losses ---


def steps_words(c, model, batch, *more):
    return [c.bin / "bench_gpu", "--device", "cuda"] + model.words(batch) + list(more)


def _graphs(model, batch):
    def run(c):
        data = {}
        for graphs in ("1", "0"):
            words = steps_words(c, model, batch, "--steps", 3 if c.emulated else 6, "--digest")
            ended = c.run(words, 90, env=c.env(RIVULET_CUDA_GRAPHS=graphs, **FIXED))
            rows = json_lines(ended.out)
            digests = [r["digest"] for r in rows if "digest" in r]
            if ended.rc != 0 or not digests:
                raise Failed("graphs=%s: %s" % (graphs, tail(ended.err) or ended.how()), data)
            data[graphs] = {"digest": digests[0], "ms": min(r["step_ms"] for r in rows if "step_ms" in r),
                            "said": [line for line in ended.err.splitlines() if "graph" in line][:3]}
        if data["1"]["digest"] != data["0"]["digest"]:
            raise Failed("the weights differ with and without graphs", data)
        if data["1"]["said"]:
            raise Failed("no graph was used: %s" % data["1"]["said"][0], data)
        return data
    return run


def write_text(c):
    """Words of a small vocabulary: a model that learns lowers its loss on it quickly."""
    words = ["the ", "river ", "runs ", "into ", "sea ", "and ", "many ", "streams "]
    state, out = 1, []
    for _ in range(200000):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(words[state >> 61])
    path = c.work / "text.txt"
    path.write_text("".join(out))
    return path


def small_model(c):
    shape = (1, 2, 32, 16, 2) if c.emulated else (4, 4, 256, 128, 8)
    return dict(zip(("n-layer", "n-head", "n-embd", "context", "batch"), shape))


def round_losses(directory):
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [line["train_loss"] for line in lines if line["kind"] == "round"]


def _parity(dtype, tolerance):
    def run(c):
        text, losses = write_text(c), {}
        settings = dict(small_model(c), **{"steps-per-round": 3 if c.emulated else 50, "eval-every": 0, "eval-tokens": 64,
                                           "data-shards": 1, "workers": 1, "rounds": 2, "dtype": dtype})
        for device in ("cpu", "cuda"):
            out = c.fresh("parity-" + device)
            words = [w for k, v in settings.items() for w in ("--" + k, v)]
            ended = c.run([c.bin / "rivulet", "train", "--device", device, "--data", text, "--out", out] + words, 90)
            if ended.rc != 0:
                raise Failed("%s: %s" % (device, tail(ended.err) or ended.how()))
            losses[device] = round_losses(out)
        worst = max(abs(a - b) / abs(b) for a, b in zip(losses["cuda"], losses["cpu"]))
        data = {"worst": worst, "limit": tolerance, "losses": losses}
        if not worst <= tolerance:
            raise Failed("losses differ by %.2g of themselves, allowed %g" % (worst, tolerance), data)
        return data
    return run


def graphs(c):
    model = models(c.emulated)[0]
    return [Item("%s B%d" % (model.name, model.batches[0]), _graphs(model, model.batches[0]), 10),
            Item("losses as on the CPU, fp32", _parity("fp32", 1e-3), 10),
            Item("losses as on the CPU, bf16", _parity("bf16", 2e-2), 10)]


# --- sanitizer ---

# All our kernels are called *_kernel. The option's name has changed between versions; the last try
# is without it.
FILTERS = (["--kernel-regex", "kns=_kernel"], ["--filter", "kns=_kernel"], [])


def _sanitized(check, name):
    def run(c):
        tool_path = tool("compute-sanitizer")
        if c.emulated or not tool_path:
            raise Skipped("emulated" if c.emulated else "compute-sanitizer is not installed")
        program = [c.bin / "device_conformance", "--sizes", "light", "--repetitions", 0, "--only", name]
        for words in FILTERS:
            ended = c.under([tool_path, "--tool", check, "--error-exitcode", 9] + words, program, 100, **OWN)
            rows = json_lines(ended.out)
            if rows or ended.timed_out:
                break
        data = {"rows": len(rows), "filter": words}
        if ended.rc != 0:
            raise Failed("%s: %s" % (ended.how(), tail(ended.out + ended.err, 8)), data,
                         "timed out" if ended.timed_out else "failed")
        return data
    return run


SANITIZED = ("attention", "layernorm", "classifier", "embed", "linear", "adamw")


def sanitizer(c):
    return [Item("%s, %s" % (check, name), _sanitized(check, name), 20)
            for check in ("memcheck", "racecheck") for name in SANITIZED]
