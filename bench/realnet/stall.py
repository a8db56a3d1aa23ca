"""How long checkpoints stop training: real workers of one thread each on loopback, 10.7 M parameters, small
batches. With --against the same with other programs (an earlier build), in turns: what the copies cost in all is in the time of a step.
"""
import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile

from cluster import Cluster, Timeout
from shaped import Loopback

CONFIG = {"n-layer": 6, "n-embd": 384, "n-head": 6, "context": 64, "rounds": 100000}


def parse():
    p = argparse.ArgumentParser(prog="./dev bench stall", description=__doc__)
    p.add_argument("--workers", type=int, default=2, help="default: 2")
    p.add_argument("--steps", type=int, default=30, help="inner steps a round (default: 30)")
    p.add_argument("--batch", type=int, default=2, help="sequences of 64 tokens in a step (default: 2)")
    p.add_argument("--snapshot-every", default="8,1", help="rounds between snapshots (default: %(default)s)")
    p.add_argument("--rounds", type=int, default=8, help="that are measured, after the first two (default: 8)")
    p.add_argument("--turns", type=int, default=1, help="default: 1")
    p.add_argument("--against", default="", help="a directory with other programs")
    return p.parse_args()


def run_case(a, bin_dir, directory, snapshot_every):
    cluster = Cluster(bin_dir, directory, Loopback(), {
        **CONFIG, "batch": a.batch, "steps-per-round": a.steps, "snapshot-every": snapshot_every, "data-shards": a.workers,
        "min-workers": a.workers})
    try:
        cluster.start_coordinator()
        cluster.add_workers(a.workers)
        cluster.wait(f"{a.rounds + 2} rounds", 60 + 20 * a.rounds, lambda: len(cluster.commits()) >= a.rounds + 2, 0.2)
    finally:
        cluster.close()
    rounds, params = [], 0
    for i in range(a.workers):
        with open(f"{directory}/worker{i}/metrics.jsonl") as f:
            lines = [json.loads(line) for line in f]
        params = lines[0]["n_params"]
        rounds += [x for x in lines if x["kind"] == "round"][2:a.rounds + 2]
    still = [x["checkpoint_us"] for x in rounds]
    whole = sum(x["compute_us"] + x["reduce_us"] + x["idle_us"] for x in rounds)
    return {"params": params, "rounds": len(rounds), "stall_share": round(sum(still) / whole, 5),
            "stall_ms_mean": round(statistics.mean(still) * 1e-3, 2), "stall_ms_max": round(max(still) * 1e-3, 2),
            "step_ms": round(sum(x["compute_us"] for x in rounds) / len(rounds) / a.steps * 1e-3, 2),
            "round_s": round(whole / len(rounds) * 1e-6, 3)}


def main():
    a = parse()
    programs = {"these": os.environ["RIVULET_BIN"], **({"against": a.against} if a.against else {})}
    top = tempfile.mkdtemp(prefix="rivulet-stall.")
    met = True
    try:
        for turn in range(a.turns):
            for snapshot_every in a.snapshot_every.split(","):
                for name, bin_dir in programs.items():
                    got = run_case(a, bin_dir, f"{top}/{turn}-{snapshot_every}-{name}", int(snapshot_every))
                    print(json.dumps({"bench": "stall", "programs": name, "snapshot_every": int(snapshot_every), "workers": a.workers,
                                      "steps": a.steps, "batch": a.batch, **got}), flush=True)
                    met = met and (name != "these" or got["stall_share"] < 0.01)
    except (Timeout, RuntimeError) as e:
        print(json.dumps({"bench": "stall", "error": str(e)}))
        met = False
    finally:
        shutil.rmtree(top, ignore_errors=True)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
