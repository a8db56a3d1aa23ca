"""What a worker takes of the processors under --cpu-share, seen from outside: /proc/PID/stat of a real worker that trains
alone, ten times a second: its use of all processors' time over any 10 s, and what it gave to a round of fixed length."""
import argparse
import json
import os
import shutil
import sys
import tempfile
import time

from cluster import Cluster, Timeout
from shaped import Loopback

CONFIG = {"rounds": 100000, "min-workers": 1, "data-shards": 1, "steps-per-round": 100000}
WINDOW_S, SAMPLE_S = 10, 0.1
# Of a window: what is saved up (GATE_SAVED_MS), a product by oneDNN that began before its end, and the clock's ticks.
SLACK = 0.03


def parse():
    p = argparse.ArgumentParser(prog="./dev bench limits", description=__doc__)
    p.add_argument("--shares", default="100,50,25,10", help="percent (default: %(default)s)")
    p.add_argument("--threads", type=int, default=0, help="of the worker; 0: all processors (default)")
    p.add_argument("--seconds", type=int, default=30, help="measured of each (default: %(default)s)")
    p.add_argument("--model", default="4:256:4:256:4", help="layers:width:heads:context:batch (default: %(default)s)")
    p.add_argument("--round-ms", type=int, default=2000, help="length of a round's training (default: %(default)s)")
    return p.parse_args()


def used_s(pid):
    """Processor time of a process, all its threads, in seconds."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(pid, seconds):
    """Returns samples (time, processor time)."""
    samples, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        samples.append((time.monotonic(), used_s(pid)))
        time.sleep(SAMPLE_S)
    return samples


def most_of_any_window(samples, window_s):
    most, at = 0.0, 0
    for i, (t, used) in enumerate(samples):
        while samples[at + 1][0] <= t - window_s:
            at += 1
        if t - samples[0][0] >= window_s:
            most = max(most, (used - samples[at][1]) / (t - samples[at][0]))
    return most


def run_case(a, bin_dir, directory, share):
    layers, width, heads, context, batch = a.model.split(":")
    cluster = Cluster(bin_dir, directory, Loopback(), {
        **CONFIG, "n-layer": layers, "n-embd": width, "n-head": heads, "context": context, "batch": batch, "round-ms": a.round_ms})
    try:
        cluster.start_coordinator()
        cluster.add_workers(1, ["--threads", str(a.threads), "--cpu-share", str(share)])
        cluster.wait("the third round", 300, lambda: len(cluster.commits()) >= 2, 0.2)
        before = len(cluster.commits())
        samples = watch(cluster.workers[0].child.pid, a.seconds)
        rounds = len(cluster.commits()) - before
    finally:
        cluster.close()
    cores = len(os.sched_getaffinity(0))
    (t0, u0), (t1, u1) = samples[0], samples[-1]
    with open(f"{directory}/worker0/metrics.jsonl") as f:
        lines = [json.loads(line) for line in f]
    tokens = [x["tokens"] for x in lines if x["kind"] == "round"][2:]  # of all rounds so far, all by this worker
    steps = [(b - a) / (int(batch) * int(context)) for a, b in zip(tokens, tokens[1:])]
    return {"share": share, "mean": round(100 * (u1 - u0) / (t1 - t0) / cores, 1),
            "most_of_any_10s": round(100 * most_of_any_window(samples, WINDOW_S) / cores, 1), "rounds": rounds,
            "steps_of_a_round": round(sum(steps) / len(steps), 1) if steps else None}


def main():
    a = parse()
    top = tempfile.mkdtemp(prefix="rivulet-limits.")
    rows, met = [], True
    try:
        for share in (int(x) for x in a.shares.split(",")):
            row = run_case(a, os.environ["RIVULET_BIN"], f"{top}/{share}", share)
            met = met and row["most_of_any_10s"] <= 100 * (share / 100 + SLACK)
            rows.append(row)
            print(json.dumps(row), flush=True)
    except Timeout as e:
        sys.exit(f"limits: {e}")
    finally:
        if not os.environ.get("RIVULET_KEEP"):
            shutil.rmtree(top)
    print(f"\n{'share':>6} {'mean':>6} {'most of any 10 s':>17} {'steps of a round':>17}")
    for r in rows:
        print(f"{r['share']:>5}% {r['mean']:>5}% {r['most_of_any_10s']:>16}% {r['steps_of_a_round']!s:>17}")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
