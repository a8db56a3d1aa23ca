"""Real processes on shaped lines under random faults, compared with the same without faults.

A coordinator and workers run in network namespaces for --minutes without faults, then for as long with: workers are
killed and come back, freeze, lose their line or have a slow one, cannot write; the coordinator is killed. Faults come at
125 an hour for 32 replicas, scaled to --workers, or at --faults-per-hour: then the report says how much faster than life
that is. JSON lines while it runs, then tables and a verdict; the samples and a page with charts are left in --out. Ends
with status 0 when nothing was wrong, 1 when something was, 2 when it cannot run here.
"""
import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time

import soak_report
from cluster import Cluster, Timeout
from shaped import ShapedNet, what_is_missing
from soak_faults import BASE_PER_HOUR, Faults

STEP_S = 0.1
SAMPLE_S = 1.0
HEAL_S = 120
WRONG = ("wrong_state", "install_failed", "apply_failed", "spoiled", "failed")
CONFIG = {"n-layer": 2, "n-embd": 128, "n-head": 4, "context": 32, "batch": 2, "rounds": 1000000, "snapshot-every": 8,
          "data-shards": 16, "grace-ms": 10000}


def parse():
    p = argparse.ArgumentParser(prog="./dev soak", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--minutes", type=float, default=5, help="of each of the two parts (default: 5)")
    p.add_argument("--workers", type=int, default=4, help="3..32 (default: 4)")
    p.add_argument("--seed", type=int, default=1, help="of the faults (default: 1)")
    p.add_argument("--rate", type=float, default=50, metavar="MBIT", help="of every worker's line (default: 50)")
    p.add_argument("--delay", type=float, default=20, metavar="MS", help="one way (default: 20)")
    p.add_argument("--faults-per-hour", type=float, metavar="X", help="default: 125 / 32 for each worker")
    p.add_argument("--steps", type=int, default=300, metavar="H", help="inner steps in a round (default: 300)")
    p.add_argument("--out", default="build/soak", metavar="DIR", help="samples and charts (default: build/soak)")
    p.add_argument("--keep", action="store_true", help="keep the logs and states of all processes")
    a = p.parse_args()
    if not 3 <= a.workers <= 32:
        p.error("--workers must be 3 to 32")
    if a.minutes <= 0 or a.rate <= 0 or a.delay < 0 or a.steps < 1:
        p.error("--minutes, --rate and --steps must be positive")
    if a.faults_per_hour is None:
        a.faults_per_hour = BASE_PER_HOUR * a.workers
    return a


def say(event, **fields):
    print(json.dumps({"soak": event, **fields}), flush=True)


class Part:
    """One of the two runs, sampled every second."""

    def __init__(self, a, name, per_hour, bin_dir, directory):
        self.a, self.name, self.per_hour = a, name, per_hour
        self.bin, self.dir = bin_dir, directory
        self.samples = []  # (s, process, start number, resident bytes, descriptors)
        self.live = []     # (s, workers that run, are not frozen and have a line)
        self.rounds = {}   # round -> {worker: its event}
        self.rosters = {}  # round -> participants of its first attempt
        self.wrong, self.vouched = [], 0
        self.loads = []    # of the machine: others' work on it is in every figure
        self.faults = None

    def now(self):
        return time.monotonic() - self.began

    def run(self):
        a = self.a
        net = ShapedNet(self.bin, a.workers + 1, a.rate, a.delay, f"{self.dir}/net.log")
        cluster = None
        try:
            cluster = self.cluster = Cluster(self.bin, f"{self.dir}/{self.name}", net, {
                **CONFIG, "steps-per-round": a.steps, "min-workers": max(2, a.workers // 2)}, seed=a.seed)
            cluster.start_coordinator()
            cluster.add_workers(a.workers)
            cluster.wait("the first round", 120, lambda: len(cluster.commits()) >= 1)
            self.began, self.began_wall = time.monotonic(), time.time()
            self.faults = Faults(cluster, self.per_hour, a.rate, a.seed)
            self._watch(a.minutes * 60)
            self.ended_wall = time.time()
            self.commits = [c for c in cluster.commits() if self.began_wall <= c["wall_us"] * 1e-6 <= self.ended_wall]
            self._heal()
            return self
        finally:
            if cluster:
                cluster.close()
            net.close()

    def _watch(self, seconds):
        sample_s = told_s = 0
        while self.now() < seconds:
            for f in self.faults.step(self.now()):
                say("fault", part=self.name, **f.record())
            if self.now() >= sample_s:
                sample_s += SAMPLE_S
                self._sample()
            if self.now() >= told_s:
                told_s += 30
                say("progress", part=self.name, s=round(self.now()), of=round(seconds), rounds=len(self.rounds),
                    faults=len(self.faults.all))
            time.sleep(STEP_S)

    def _sample(self):
        now = round(self.now(), 1)
        self.loads.append(os.getloadavg()[0])
        for p in self.cluster.programs():
            usage = p.usage()
            if usage:
                self.samples.append((now, p.name, p.starts, *usage))
        cut = {f.worker for f in self.faults.active() if f.kind == "cut"}
        self.live.append((now, sum(w.live and w not in cut for w in self.cluster.workers)))
        self._read_logs()

    def _read_logs(self):
        for w in self.cluster.workers:
            for e in w.events.fresh():
                name = e.get("event")
                if name == "round":
                    self.rounds.setdefault(e["round"], {})[w.name] = e
                elif name == "attempt" and e["attempt"] == 1:
                    self.rosters[e["round"]] = e["participants"]
                elif name in WRONG:
                    self.wrong.append(f"{w.name}: {e.get('text', name)}")

    def _heal(self):
        """Checks liveness: all faults are undone; then all workers must take part in one round, with one result."""
        self.faults.heal_all(self.now())
        healed = self.now()
        latest = max(self.rounds, default=0)

        def together():
            self._read_logs()
            return any(r > latest and len(of) == self.a.workers and all(e["attempts"] > 0 for e in of.values())
                       for r, of in self.rounds.items())

        self.reunited_s = None
        try:
            self.cluster.wait("a round of all workers after healing", HEAL_S, together, 0.2)
            self.reunited_s = round(self.now() - healed, 1)
        except Timeout as e:
            self.wrong.append(str(e))
        self._compare()

    def _compare(self):
        self.compared = 0
        for r, of in sorted(self.rounds.items()):
            chains = {e["chain"] for e in of.values()}
            self.compared += len(of) > 1
            if len(chains) > 1:
                self.wrong.append(f"round {r}: {len(chains)} different states")
        with open(self.cluster.coordinator.log, errors="replace") as f:
            self.vouched = sum('"event":"snapshot"' in line for line in f)


def main():
    a = parse()
    missing = what_is_missing()
    bin_dir = os.environ["RIVULET_BIN"]
    if missing:
        print("soak: cannot run here:\n" + "\n".join(f"  {m}" for m in missing), file=sys.stderr)
        return 2
    os.makedirs(a.out, exist_ok=True)
    directory = tempfile.mkdtemp(prefix="rivulet-soak.")
    say("begin", minutes=a.minutes, workers=a.workers, rate_mbit=a.rate, delay_ms=a.delay, seed=a.seed,
        faults_per_hour=round(a.faults_per_hour, 1), acceleration=round(a.faults_per_hour / (BASE_PER_HOUR * a.workers), 2))
    try:
        calm = Part(a, "fault-free", 0, bin_dir, directory).run()
        rough = Part(a, "faulty", a.faults_per_hour, bin_dir, directory).run()
        return soak_report.report(a, calm, rough, BASE_PER_HOUR * a.workers)
    except (Timeout, RuntimeError) as e:
        say("end", verdict="failed", why=str(e))
        return 1
    finally:
        if a.keep:
            print(f"soak: logs and states are in {directory}", file=sys.stderr)
        else:
            shutil.rmtree(directory, ignore_errors=True)


def interrupted(number, _frame):
    signal.signal(number, signal.SIG_IGN)  # ending in order takes a moment
    sys.exit(128 + number)


if __name__ == "__main__":
    for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, interrupted)
    sys.exit(main())
