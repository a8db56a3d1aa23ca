#!/usr/bin/env python3
"""What ./dev gpu does once everything is built: checks and measures the CUDA plugin on this machine's GPU.

Writes report.json and report.md into --out. Exit status: 0 all passed, 1 something failed, 3 there is no GPU.
--emulate PLUGIN runs the same on the emulated plugin, at sizes that it can do: a trial of this script, not of a GPU; what is
measured then says so and is no figure of speed.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

NO_GPU = 3
SKIPPED = 77
# Dense bf16 with fp32 sums, from the makers' data sheets.
PEAK_TFLOPS = {"H200": 989, "H100 PCIe": 756, "H100": 989, "A100": 312, "L40S": 362, "4090": 165, "3090": 71}
SHAPES = {  # layers, heads, channels, vocab, context, batch
    "GPT-2 124M": (12, 12, 768, 50304, 1024, 16),
    "GPT-2 350M": (24, 16, 1024, 50304, 1024, 16),
    "GPT-2 774M": (36, 20, 1280, 50304, 1024, 8),
    "GPT-2 1558M": (48, 25, 1600, 50304, 1024, 8),
}
GOALS = {"GPT-2 124M": (0.42, 1.05), "GPT-2 350M": (0.47, 1.03), "GPT-2 774M": (0.51, 1.0), "GPT-2 1558M": (0.55, 1.0)}
TINY_SHAPES = {"tiny": (1, 2, 32, 256, 16, 2)}


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


class Session:
    def __init__(self, args):
        self.bin = pathlib.Path(args.bin).resolve()
        self.out = pathlib.Path(args.out).resolve()
        self.emulated = bool(args.emulate)
        self.env = dict(os.environ)
        if args.emulate:
            self.env["RIVULET_CUDA_PLUGIN"] = str(pathlib.Path(args.emulate).resolve())
        self.peak_tflops = args.peak_tflops
        self.deadline = time.monotonic() + args.minutes * 60
        self.children = []

    def run(self, words, timeout=300, **options):
        left = max(1.0, self.deadline - time.monotonic())
        return subprocess.run([str(w) for w in words], env=self.env, capture_output=True, text=True,
                              timeout=min(timeout, left), **options)

    def start(self, words, log):
        with open(log, "w") as f:
            p = subprocess.Popen([str(w) for w in words], env=self.env, stdout=f, stderr=f)
        self.children.append(p)
        return p

    def stop_children(self):
        for p in self.children:
            if p.poll() is None:
                p.terminate()
        for p in self.children:
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        self.children = []


def tail(text, lines=3):
    return " / ".join(text.strip().splitlines()[-lines:])[-600:]


def write_text(s):
    """Words of a small vocabulary: a model that learns lowers its loss on it quickly."""
    words = ["the ", "river ", "runs ", "into ", "sea ", "and ", "many ", "streams "]
    state, out = 1, []
    for _ in range(200000):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(words[state >> 61])
    path = s.out / "text.txt"
    path.write_text("".join(out))
    return path


# --- checks -----------------------------------------------------------------------------------------------------------


def conformance(s):
    r = s.run([s.bin / "device_conformance"] + (["--light"] if s.emulated else []))
    if r.returncode == SKIPPED:
        raise Failed(tail(r.stderr))
    if r.returncode != 0:
        raise Failed(tail(r.stdout + r.stderr, 8))
    return "; ".join(re.findall(r"\d+ operations x sizes, \d+ arrays compared", r.stdout))


def sanitizer(s):
    tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if s.emulated or not tool:
        raise Skipped("emulated" if s.emulated else "compute-sanitizer is not installed")
    said = []
    for check in ("memcheck", "racecheck"):
        r = s.run([tool, "--tool", check, "--error-exitcode", "9", s.bin / "device_conformance", "--light"], timeout=150)
        if r.returncode != 0:
            raise Failed(f"{check}: {tail(r.stdout + r.stderr, 8)}")
        said.append(f"{check} clean")
    return ", ".join(said)


def round_losses(directory):
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [line["train_loss"] for line in lines if line["kind"] == "round"]


def small_model(s, steps):
    shape = ["--n-layer", 1, "--n-head", 2, "--n-embd", 32, "--context", 16, "--batch", 2] if s.emulated else [
        "--n-layer", 4, "--n-head", 4, "--n-embd", 256, "--context", 128, "--batch", 8]
    return shape + ["--steps-per-round", steps, "--eval-every", 0, "--data-shards", 1]


def parity(s):
    text, said = write_text(s), []
    for dtype, tolerance in (("fp32", 1e-3), ("bf16", 2e-2)):
        losses = {}
        for device in ("cpu", "cuda"):
            out = s.out / f"parity-{device}-{dtype}"
            r = s.run([s.bin / "rivulet", "train", "--device", device, "--dtype", dtype, "--data", text, "--out", out,
                       "--workers", 1, "--rounds", 2] + small_model(s, 3 if s.emulated else 50))
            if r.returncode != 0:
                raise Failed(f"{device} {dtype}: {tail(r.stdout + r.stderr)}")
            losses[device] = round_losses(out)
        worst = max(abs(a - b) / abs(b) for a, b in zip(losses["cuda"], losses["cpu"]))
        said.append(f"{dtype}: train loss of {len(losses['cpu'])} rounds within {worst:.2g}")
        if not worst <= tolerance:
            raise Failed(f"{said[-1]}, allowed {tolerance:g}: {losses}")
    return "; ".join(said)


def wait_for(what, seconds, there):
    end = time.monotonic() + seconds
    while not there():
        if time.monotonic() > end:
            raise Failed(f"{what} took more than {seconds} s")
        time.sleep(0.05)


def start_run(s, text, devices):
    coordinator, config = s.out / "coordinator", s.out / "shared.conf"
    words = [str(w) for w in small_model(s, 2 if s.emulated else 20)]
    settings = dict(zip((w[2:] for w in words[::2]), words[1::2]))
    settings.pop("eval-every")
    settings.update({"rounds": 3, "data-shards": len(devices), "min-workers": len(devices)})
    config.write_text("".join(f"{k} = {v}\n" for k, v in settings.items()))
    r = s.run([s.bin / "rivulet-coordinator", "new-run", "--dir", coordinator, "--config", config])
    if r.returncode != 0:
        raise Failed(f"new-run: {tail(r.stdout + r.stderr)}")
    s.start([s.bin / "rivulet-coordinator", "serve", "--dir", coordinator, "--listen", "127.0.0.1:0"],
            s.out / "coordinator.log")
    wait_for("the coordinator", 30, lambda: (coordinator / "listen").exists())
    r = s.run([s.bin / "rivulet-coordinator", "invite", "--dir", coordinator, "--count", len(devices)])
    links = r.stdout.split()
    if len(links) != len(devices):
        raise Failed(f"invite: {tail(r.stdout + r.stderr)}")
    workers = []
    for i, (device, link) in enumerate(zip(devices, links)):
        directory = s.out / f"worker{i}"
        workers.append(s.start([s.bin / "rivulet-worker", link, "--dir", directory, "--data", text, "--device", device,
                                "--threads", 1, "--listen", "127.0.0.1:0"], s.out / f"worker{i}.log"))
        wait_for(f"worker {i}'s join", 60, lambda d=directory: (d / "run.conf").exists())
    return workers


def last_state(directory):
    for line in (directory / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["kind"] == "end":
            return record["state"], record["round"]
    raise Failed(f"{directory.name} has no end in its metrics")


def shared_run(s):
    """Two workers on the GPU and one on the CPU end with the same bits."""
    devices = ["cuda", "cuda", "cpu"]
    workers = start_run(s, write_text(s), devices)
    for i, worker in enumerate(workers):
        try:
            status = worker.wait(max(1.0, min(180.0, s.deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            raise Failed(f"worker {i} ({devices[i]}) did not finish") from None
        if status != 0:
            raise Failed(f"worker {i} ({devices[i]}): {tail((s.out / f'worker{i}.log').read_text())}")
    states = [last_state(s.out / f"worker{i}") for i in range(len(devices))]
    if len(set(states)) != 1:
        raise Failed(f"the states differ: {states}")
    return f"3 workers ({', '.join(devices)}), {states[0][1]} rounds, state {states[0][0][:16]}... on all"


# --- benchmark --------------------------------------------------------------------------------------------------------


class Contestant:
    def __init__(self, s, words):
        self.log = open(s.out / "contestants.log", "a")
        self.p = subprocess.Popen([str(w) for w in words], env=s.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=self.log, text=True)
        s.children.append(self.p)
        self.ms = []
        if self.p.stdout.readline().strip() != "ready":
            self.close()
            raise Failed("did not start: see contestants.log")

    def steps(self, n):
        self.p.stdin.write(f"{n}\n")
        self.p.stdin.flush()
        answer = self.p.stdout.readline().split()
        if len(answer) != 2:
            raise Failed("died: see contestants.log")
        self.ms.append(float(answer[0]))

    def close(self):
        try:
            self.p.stdin.close()
        except BrokenPipeError:
            pass
        self.p.wait(60)
        self.log.close()


def parameters(layers, channels, vocab, context):
    return vocab * channels + context * channels + layers * (12 * channels**2 + 13 * channels) + 2 * channels


def flop_per_token(shape):
    layers, _, channels, vocab, context, _ = shape
    return 6 * parameters(layers, channels, vocab, context) + 6 * layers * channels * context


def peak_of(s, gpu):
    if s.peak_tflops:
        return s.peak_tflops * 1e12
    for name, tflops in PEAK_TFLOPS.items():
        if name in gpu:
            return tflops * 1e12
    return None


def shape_words(shape):
    names = ("layers", "heads", "channels", "vocab", "context", "batch")
    return [w for name, value in zip(names, shape) for w in (f"--{name}", value)]


def measure(s, name, shape, gpu):
    """Ours and PyTorch in turn, in the same minutes: what counts is the ratio."""
    here = pathlib.Path(__file__).resolve().parent
    row = {"model": name, "shape": shape, "missing": []}
    contestants = {}
    commands = {"ours": [s.bin / "bench_gpu", "--device", "cuda"] + shape_words(shape)}
    if not s.emulated:
        commands["torch"] = [sys.executable, here / "gpu_torch.py", *shape]
    for who, words in commands.items():
        try:
            contestants[who] = Contestant(s, words)
        except Failed as e:
            row["missing"].append(f"{who} {e}")
    try:
        for _ in range(1 if s.emulated else 4):
            for c in contestants.values():
                c.steps(1 if s.emulated else 5)
    finally:
        for c in contestants.values():
            c.close()
    if "ours" not in contestants:
        raise Failed("; ".join(row["missing"]))
    tokens, peak = shape[4] * shape[5], peak_of(s, gpu)
    for who, c in contestants.items():
        ms = statistics.median(c.ms)
        row[f"{who}_ms"], row[f"{who}_tokens_per_s"] = ms, tokens / ms * 1e3
        row[f"{who}_mfu"] = flop_per_token(shape) * tokens / ms * 1e3 / peak if peak else None
    row["ratio"] = row["torch_ms"] / row["ours_ms"] if "torch_ms" in row else None
    return row


def phases(s, shape):
    r = s.run([s.bin / "bench_gpu", "--device", "cuda", "--phases", 1 if s.emulated else 5] + shape_words(shape))
    if r.returncode != 0:
        raise Failed(tail(r.stdout + r.stderr))
    return [json.loads(line) for line in r.stdout.splitlines() if line.startswith("{")]


# --- report -----------------------------------------------------------------------------------------------------------


def cell(value, form):
    return form.format(value) if value is not None else "-"


def markdown(report):
    out = [f"# GPU report: {report['gpu']}", "", f"{report['when']}, {report['seconds']:.0f} s.", ""]
    if report["emulated"]:
        out += ["**Emulated: a trial of the script. No figure here is one of speed.**", ""]
    out += ["| check | result | s | |", "|---|---|---|---|"]
    out += [f"| {c['name']} | {c['status']} | {c['seconds']:.1f} | {c['detail']} |" for c in report["checks"]]
    if report["models"]:
        out += ["", "| model | ours ms | tokens/s | MFU | PyTorch ms | MFU | PyTorch/ours | goal MFU, ratio |",
                "|---|---|---|---|---|---|---|---|"]
    for m in report["models"]:
        goal = GOALS.get(m["model"])
        out.append(f"| {m['model']} | {m['ours_ms']:.2f} | {m['ours_tokens_per_s']:.0f} | "
                   f"{cell(m['ours_mfu'], '{:.1%}')} | {cell(m.get('torch_ms'), '{:.2f}')} | "
                   f"{cell(m.get('torch_mfu'), '{:.1%}')} | {cell(m['ratio'], '{:.2f}')} | "
                   f"{f'{goal[0]:.0%}, {goal[1]:.2f}' if goal else '-'} |")
    if report["phases"]:
        out += ["", f"Time by phase, {report['phases_of']}, each operation waited for:", "", "| phase | ms | rate |",
                "|---|---|---|"]
    for p in report["phases"]:
        unit = "GB/s" if p["bound"] == "bytes" else "Tflop/s"
        rate = p["work"] / (p["ms"] * 1e-3) / (1e9 if p["bound"] == "bytes" else 1e12)
        out.append(f"| {p['phase']} | {p['ms']:.3f} | {rate:.1f} {unit} |")
    return "\n".join(out) + "\n"


def attempt(report, name, fn):
    begin = time.monotonic()
    try:
        status, detail = "passed", fn()
    except Skipped as e:
        status, detail = "skipped", str(e)
    except (Failed, subprocess.TimeoutExpired, OSError) as e:
        status, detail = "failed", str(e).replace("\n", " ").replace("|", "/")
    seconds = time.monotonic() - begin
    report["checks"].append({"name": name, "status": status, "seconds": seconds, "detail": str(detail)})
    print(f"{name:12} {status:8} {seconds:6.1f} s  {detail}", flush=True)


def find_gpu(s):
    if s.emulated:
        return "emulator"
    tool = shutil.which("nvidia-smi")
    r = s.run([tool, "--query-gpu=name", "--format=csv,noheader"]) if tool else None
    return r.stdout.splitlines()[0].strip() if r and r.returncode == 0 and r.stdout.strip() else None


def benchmark(s, report, wanted):
    shapes = TINY_SHAPES if s.emulated else SHAPES
    done = []
    for name, shape in shapes.items():
        if wanted and name not in wanted:
            continue
        report["models"].append(measure(s, name, shape, report["gpu"]))
        m = report["models"][-1]
        done.append(f"{name} {m['ours_ms']:.1f} ms" + (f", {m['ratio']:.2f} x PyTorch" if m["ratio"] else "") +
                    "".join(f" ({missing})" for missing in m["missing"]))
        if s.deadline - time.monotonic() < 60:
            break
    return "; ".join(done)


def by_phase(s, report):
    name, shape = next(iter((TINY_SHAPES if s.emulated else SHAPES).items()))
    report["phases_of"], report["phases"] = name, phases(s, shape)
    return f"{len(report['phases'])} phases"


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", default="build/release/bin", help="where the programs are (default: %(default)s)")
    p.add_argument("--out", default="build/gpu", help="the report's directory, emptied first (default: %(default)s)")
    p.add_argument("--only", help="these checks alone: conformance,sanitizer,parity,shared,benchmark,phases")
    p.add_argument("--models", help=f"these models alone: {','.join(SHAPES)}")
    p.add_argument("--peak-tflops", type=float, help="of this GPU in bf16, where its name does not say it")
    p.add_argument("--minutes", type=float, default=10, help="what is not done by then is not done (default: 10)")
    p.add_argument("--emulate", metavar="PLUGIN", help="the emulated plugin's file")
    return p.parse_args()


def main():
    args = parse()
    s = Session(args)
    gpu = find_gpu(s)
    if not gpu:
        print("dev gpu: no GPU here (nvidia-smi finds none): nothing was run", file=sys.stderr)
        return NO_GPU
    shutil.rmtree(s.out, ignore_errors=True)
    s.out.mkdir(parents=True)
    report = {"gpu": gpu, "emulated": s.emulated, "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
              "checks": [], "models": [], "phases": [], "phases_of": ""}
    checks = {"conformance": lambda: conformance(s), "sanitizer": lambda: sanitizer(s), "parity": lambda: parity(s),
              "shared": lambda: shared_run(s),
              "benchmark": lambda: benchmark(s, report, args.models and args.models.split(",")),
              "phases": lambda: by_phase(s, report)}
    wanted = args.only.split(",") if args.only else list(checks)
    unknown = [name for name in wanted if name not in checks]
    if unknown:
        print(f"dev gpu: --only {unknown[0]}: there are {','.join(checks)}", file=sys.stderr)
        return 2
    begin = time.monotonic()
    try:
        for name in wanted:
            attempt(report, name, checks[name])
            s.stop_children()
    finally:
        s.stop_children()
        report["seconds"] = time.monotonic() - begin
        (s.out / "report.json").write_text(json.dumps(report, indent=2) + "\n")
        (s.out / "report.md").write_text(markdown(report))
    print(f"{s.out}/report.json and report.md")
    return 1 if any(c["status"] == "failed" for c in report["checks"]) else 0


if __name__ == "__main__":
    sys.exit(main())
