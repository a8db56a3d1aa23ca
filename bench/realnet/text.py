"""What a run's published text costs its members on slow lines: real workers in network namespaces, who fetch what they read
while they train. Of each case one JSON line: bytes of text that all members kept for each token that they trained on (ideal:
2, as each is read once); the share of the members' time in which training waited for text, at the start and after it; with
--eval-every, after which rounds the held-out loss was measured.

A mirror is `rivulet data serve` at a site of its own, without a limit. Without one, members and the coordinator give the text.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

from cluster import Cluster, Timeout
from process import Program
from shaped import ShapedNet, what_is_missing

CONFIG = {"n-layer": 2, "n-embd": 64, "n-head": 2, "rounds": 100000}
TOKEN_BYTES = 2


def parse():
    p = argparse.ArgumentParser(prog="./dev bench text", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--workers", default="1,4", help="how many (default: %(default)s)")
    p.add_argument("--mirrors", default="1,0", help="how many (default: %(default)s)")
    p.add_argument("--line", default="20/5", help="of each worker, Mbit/s down/up (default: %(default)s)")
    p.add_argument("--coordinator", type=float, default=100, help="its line, Mbit/s (default: 100)")
    p.add_argument("--delay", type=float, default=20, help="ms, one way (default: 20)")
    p.add_argument("--rounds", type=int, default=6, help="that are measured, the first included (default: 6)")
    p.add_argument("--steps", type=int, default=60, help="inner steps a round (default: 60)")
    p.add_argument("--batch", type=int, default=8, help="sequences in a step (default: 8)")
    p.add_argument("--context", type=int, default=256, help="tokens in a sequence (default: 256)")
    p.add_argument("--eval-every", type=int, default=0, help="rounds between evaluations; 0: none (default: 0)")
    p.add_argument("--mb", type=int, default=256, help="of the text's shards (default: 256)")
    return p.parse_args()


def publish(bin_dir, where, n_bytes):
    """A text of random lowercase letters, bytes as tokens: what it says does not matter here."""
    rng = random.Random(1)
    table = bytes(97 + i % 26 for i in range(256))
    with open(f"{where}/text", "wb") as f:
        for _ in range(max(1, n_bytes >> 20)):
            f.write(rng.randbytes(1 << 20).translate(table))
    done = subprocess.run([f"{bin_dir}/rivulet", "data", "publish", f"{where}/text", "--out", f"{where}/published"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"publish: {done.stderr}{done.stdout}")
    os.unlink(f"{where}/text")
    return f"{where}/published"


def name_mirrors(published, urls):
    """Sets the mirrors of a manifest, which its hash leaves out."""
    with open(f"{published}/manifest.json") as f:
        manifest = json.load(f)
    manifest["mirrors"] = urls
    with open(f"{published}/manifest.json", "w") as f:
        json.dump(manifest, f)


def start_mirrors(a, net, published, first_site, n, directory):
    mirrors = []
    for site in range(first_site, first_site + n):
        net.rate(site, 0, 0)
        m = Program(f"mirror{site}", net.inside(site) + [f"{a.bin}/rivulet", "data", "serve", published, "--listen",
                                                         net.address(site), "--port", "8080"], f"{directory}/mirror{site}.log")
        m.start()
        mirrors.append(m)
    return mirrors


def lines_of(directory, n, kind):
    """Returns the lines of this kind of each worker's metrics."""
    found = []
    for i in range(n):
        with open(f"{directory}/worker{i}/metrics.jsonl") as f:
            lines = [json.loads(line) for line in f]
        found.append([x for x in lines if x["kind"] == kind])
    return found


def time_of(rounds):
    return sum(x["compute_us"] + x["reduce_us"] - x["overlap_us"] + x["idle_us"] for x in rounds)


def stall_of(rounds):
    return sum(x["data_stall_us"] for x in rounds)


def summary(a, rounds, status):
    """`first`: the round in which a worker starts without any text; `rest`: those after it."""
    first, rest = [r[0] for r in rounds], [x for r in rounds for x in r[1:a.rounds]]
    own = a.rounds * a.steps * a.batch * a.context
    kept = sum(r[a.rounds - 1]["text_bytes"] for r in rounds)
    fetched = {s: sum(m["text"][f"{s}_bytes"] for m in status["members"]) for s in ("mirror", "member", "coordinator")}
    return {"tokens": own * len(rounds), "text_bytes": kept, "bytes_per_token": round(kept / own / len(rounds), 2),
            "of_ideal": round(kept / own / len(rounds) / TOKEN_BYTES, 2), "by_source": fetched,
            "first_stall_s": round(max(stall_of([x]) for x in first) * 1e-6, 2),
            "stall_share": round(stall_of(rest) / time_of(rest), 5),
            "stall_ms_max": round(max(x["data_stall_us"] for x in rest) * 1e-3, 1),
            "round_s": round(time_of(rest) / len(rest) * 1e-6, 2)}


def run_case(a, published, directory, workers, mirrors):
    down, up = map(float, a.line.split("/"))
    net = ShapedNet(a.bin, 1 + workers + mirrors, a.coordinator, a.delay, "/dev/null")
    serving, cluster = [], None
    try:
        for site in range(2, 2 + workers):
            net.rate(site, up, down)
        serving = start_mirrors(a, net, published, 2 + workers, mirrors, os.path.dirname(directory))
        name_mirrors(published, [f"http://{net.address(2 + workers + i)}:8080" for i in range(mirrors)])
        cluster = Cluster(a.bin, directory, net, {
            **CONFIG, "batch": a.batch, "context": a.context, "steps-per-round": a.steps, "min-workers": workers},
            published=published)
        cluster.start_coordinator()
        cluster.add_workers(workers, ["--eval-every", str(a.eval_every)])
        cluster.wait(f"{a.rounds} rounds", 300 + 60 * a.rounds, lambda: len(cluster.commits()) > a.rounds, 0.2)
        status = json.loads(cluster._run(["status", "--dir", cluster.run_dir, "--json"]))
    finally:
        if cluster:
            cluster.close()
        for m in serving:
            m.end()
        net.close()
    evaluated = sorted(x["round"] for lines in lines_of(directory, workers, "eval") for x in lines)
    return {**summary(a, lines_of(directory, workers, "round"), status), "evaluated_rounds": evaluated}


def main():
    a = parse()
    a.bin = os.environ["RIVULET_BIN"]
    missing = what_is_missing()
    if missing:
        print("text: cannot run here:\n" + "\n".join(f"  {m}" for m in missing), file=sys.stderr)
        return 2
    top, met = tempfile.mkdtemp(prefix="rivulet-text."), True
    try:
        published = publish(a.bin, top, a.mb * 10**6 // TOKEN_BYTES)
        for mirrors in map(int, a.mirrors.split(",")):
            for workers in map(int, a.workers.split(",")):
                got = run_case(a, published, f"{top}/{workers}-{mirrors}", workers, mirrors)
                print(json.dumps({"bench": "text", "workers": workers, "mirrors": mirrors, "line": a.line, "steps": a.steps,
                                  "batch": a.batch, "context": a.context, "eval_every": a.eval_every, **got}), flush=True)
                met = met and got["stall_share"] < 0.005
    except (Timeout, RuntimeError) as e:
        print(json.dumps({"bench": "text", "error": str(e)}))
        met = False
    finally:
        shutil.rmtree(top, ignore_errors=True)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
