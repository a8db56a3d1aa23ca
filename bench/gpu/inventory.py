"""The first step: what machine this is, whether the programs start, which libraries are found, and its ceilings."""
import os
import platform

from context import Failed, Skipped, describe, json_lines, nvidia_folders, tail, tool
from step import Item

QUERY = "name,driver_version,memory.total,clocks.max.sm,power.limit"


def _first_line(c, words):
    ended = c.run(words, 20)
    lines = [line for line in ended.out.splitlines() if line.strip()]
    return lines[-1].strip() if ended.rc == 0 and lines else None


def _processor():
    with open("/proc/cpuinfo") as f:
        names = [line.split(":")[1].strip() for line in f if line.startswith("model name")]
    return "%d x %s" % (len(names), names[0]) if names else platform.machine()


def _machine(c):
    data = {"processor": _processor(), "glibc": " ".join(platform.libc_ver()), "python": platform.python_version(),
            "tools": {name: tool(name) for name in ("nvcc", "ncu", "compute-sanitizer")},
            "nvidia_folders": nvidia_folders()}
    smi = tool("nvidia-smi")
    if smi:
        line = _first_line(c, [smi, "--query-gpu=" + QUERY, "--format=csv,noheader"])
        data.update(zip(("gpu", "driver", "memory", "clock", "power"), (w.strip() for w in (line or "").split(","))))
    if data["tools"]["nvcc"]:
        data["nvcc"] = _first_line(c, [data["tools"]["nvcc"], "--version"])
    if c.emulated:
        data["gpu"] = "emulator"
    return data


def _programs(c):
    for name, word in (("rivulet", "--version"), ("rivulet-worker", "--version"), ("rivulet-coordinator", "--version"),
                       ("device_conformance", "--list")):
        ended = c.run([c.bin / name, word], 20)
        if ended.rc != 0:
            raise Failed("%s does not start: %s" % (name, tail(ended.err) or ended.how()))
    return {"version": tail(c.run([c.bin / "rivulet", "--version"], 20).out, 1)}


def ceiling_words(c):
    side, copy = (64, "1MiB") if c.emulated else (8192, "1GiB")
    return [c.bin / "bench_gpu", "--device", "cuda", "--measure", "ceilings", "--side", side, "--copy-bytes", copy]


def _libraries_line(text):
    """Returns the backend's libraries and their places, as bench_gpu prints them."""
    lines = [line for line in text.splitlines() if line.startswith("libraries: ")]
    return lines[0].partition(": ")[2] if lines else ""


def _libraries(c):
    """Opens the backend as a program finds it; where that fails, with pip's folders in LD_LIBRARY_PATH too."""
    small = [c.bin / "bench_gpu", "--device", "cuda", "--measure", "ceilings", "--side", 64, "--copy-bytes", "1MiB"]
    ended = c.run(small, 60)
    if ended.rc == 0:
        return {"describe": describe(ended.err), "libraries": _libraries_line(ended.err), "nvidia_path": False}
    first = tail(ended.err, 4) or ended.how()
    c.nvidia_path = True
    ended = c.run(small, 60)
    if ended.rc != 0:
        c.nvidia_path = False
        raise Failed("the backend does not open: %s; with pip's folders: %s" % (first, tail(ended.err, 4)))
    return {"describe": describe(ended.err), "libraries": _libraries_line(ended.err), "nvidia_path": True,
            "first": first}


def _ceilings(c):
    ended = c.run(ceiling_words(c), 90)
    rows = json_lines(ended.out)
    if ended.rc != 0 or not rows:
        raise Failed(tail(ended.err, 4) or ended.how())
    return rows[0]


TORCH_CEILINGS = """
import json, torch
def best(call):
    times = []
    for i in range(13):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record(); call(); end.record(); torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return min(times[3:]) * 1e-3
a = torch.rand(1 << 28, device="cuda"); b = torch.empty_like(a)
x, y = (torch.rand(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
print(json.dumps({"copy_gb_per_s": 8 * a.numel() / best(lambda: b.copy_(a)) * 1e-9, "torch": torch.__version__,
                  "product_tflop_per_s": 2 * 8192**3 / best(lambda: x @ y) * 1e-12,
                  "cudnn": torch.backends.cudnn.version()}))
"""


def need_torch(c):
    if c.emulated:
        raise Skipped("emulated")
    if c.run([c.python, "-c", "import torch; assert torch.cuda.is_available()"], 120, env=dict(os.environ)).rc != 0:
        raise Skipped("%s has no PyTorch that sees the GPU" % c.python)


def _torch_ceilings(c):
    need_torch(c)
    ended = c.run([c.python, "-c", TORCH_CEILINGS], 120, env=dict(os.environ))
    rows = json_lines(ended.out)
    if ended.rc != 0 or not rows:
        raise Failed(tail(ended.err, 4) or ended.how())
    return rows[0]


def items(c):
    return [Item("machine", _machine, 1), Item("programs", _programs, 1), Item("libraries", _libraries, 2),
            Item("ceilings", _ceilings, 4), Item("ceilings, PyTorch", _torch_ceilings, 10)]
