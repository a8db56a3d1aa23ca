"""Detection and commit times after a participant is lost in the middle of an all-reduce, and the bytes sent again.

A run for each case; the lost worker is the one with a failpoint: it freezes in the middle of an all-reduce, and there it
is killed, stays frozen, or lives on behind a line that is cut or drips. Others are lost at the same moment.
"""
import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time

from cluster import Cluster, Timeout
from shaped import Loopback, ShapedNet, remove_stale, what_is_missing

KINDS = ("kill", "stop", "cut", "half-open", "drip", "two", "third")
SHAPED_ONLY = ("cut", "half-open", "drip")
POINTS = {"scatter": "scatter-mid", "gather": "gather-mid"}
DRIP_MBIT = 1e-5  # a byte a second
GOAL_COMMIT_S = 5.0
CONFIG = {"n-layer": 4, "n-embd": 256, "n-head": 4, "context": 32, "batch": 1, "steps-per-round": 12, "rounds": 100000,
          "snapshot-every": 8, "data-shards": 16}


def parse():
    p = argparse.ArgumentParser(prog="./dev bench faults", description=__doc__)
    p.add_argument("--lines", default="loopback,100:20,10:20", help="RATE_MBIT:DELAY_MS or loopback (default: %(default)s)")
    p.add_argument("--kinds", default=",".join(KINDS), help="of faults (default: %(default)s)")
    p.add_argument("--workers", type=int, default=6, help="3..16 (default: 6)")
    p.add_argument("--points", default="scatter,gather", help="in the middle of what it is lost (default: %(default)s)")
    p.add_argument("--keep", action="store_true", help="keep the directory with all logs")
    a = p.parse_args()
    unknown = set(a.kinds.split(",")) - set(KINDS)
    if unknown:
        p.error(f"--kinds: unknown {', '.join(sorted(unknown))}; must be of {', '.join(KINDS)}")
    if not 3 <= a.workers <= 16:
        p.error("--workers must be 3 to 16")
    return a


def say(**fields):
    print(json.dumps({"bench": "faults", **fields}), flush=True)


def n_lost(kind, workers):
    return 2 if kind == "two" else workers // 3 if kind == "third" else 1


class Case:
    def __init__(self, cluster, kind, point):
        self.c, self.kind, self.point = cluster, kind, point
        lost = n_lost(kind, len(cluster.workers))
        self.victims, self.survivors = cluster.workers[:lost], cluster.workers[lost:]
        self.round = None

    def wait_for_failpoint(self):
        def seen():
            for e in self.victims[0].events.fresh():
                if e.get("event") == "attempt":
                    self.round = e["round"]
                if e.get("event") == "failpoint":
                    return True
            return not self.victims[0].running

        self.c.wait(f"{self.kind}: the failpoint", 120, seen, 0.005)
        if not self.victims[0].running:
            raise RuntimeError(f"the worker with the failpoint ended: {self.c.tail(self.victims[0])}")

    def strike(self):
        net = self.c.net
        for v in self.victims:
            if self.kind in ("cut", "half-open"):
                net.cut(v.site)
            if self.kind == "drip":
                net.rate(v.site, DRIP_MBIT, DRIP_MBIT)
            if self.kind in ("kill", "two", "third", "half-open"):
                v.signal(signal.SIGKILL)
            elif self.kind == "stop":
                v.signal(signal.SIGSTOP)
            else:
                v.signal(signal.SIGCONT)  # it lives on, behind its line
        self.struck_s = time.time()

    def committed(self):
        return next((x for x in self.c.commits() if x["round"] == self.round), None)

    def measure(self):
        self.c.wait(f"{self.kind}: the commit of round {self.round}", 120, self.committed)
        commit = self.committed()
        detected, resent, sent = None, [], []

        def all_told():
            nonlocal detected
            for w in self.survivors:
                for e in w.events.fresh():
                    if e.get("event") == "suspects" and e["round"] == self.round:
                        detected = min(detected or e["t"], e["t"])
                    if e.get("event") == "round" and e["round"] == self.round + 1:
                        resent.append(e["exchange_resent_bytes"])
                        sent.append(e["exchange_tx_bytes"])
                        self.told_s = e["t"]
            return len(resent) == len(self.survivors)

        self.c.wait(f"{self.kind}: the survivors' commit", 60, all_told)
        return commit, detected, resent, sent

    def run(self, line):
        n = len(self.c.workers)
        self.wait_for_failpoint()
        self.strike()
        commit, detected, resent, sent = self.measure()
        detect_s = detected - self.struck_s if detected else None
        commit_s = commit["wall_us"] * 1e-6 - (detected or self.struck_s)
        p = self.c.payload
        goal = (n - 1) / n * p + (n - 1) / n / n * p * len(self.victims)
        say(case=f"{line} {self.kind} {self.point}", workers=n, lost=len(self.victims), round=self.round, attempt=commit["attempt"],
            participants=commit["participants"], detect_s=round(detect_s, 3) if detect_s is not None else None,
            commit_after_detection_s=round(commit_s, 3), resent_bytes_max=max(resent),
            resent_bytes_mean=round(sum(resent) / len(resent)), resent_goal=round(goal),
            resent_of_goal=round(max(resent) / goal, 3), sent_bytes_max=max(sent),
            met=commit_s <= GOAL_COMMIT_S and max(resent) <= goal)
        return commit_s <= GOAL_COMMIT_S and max(resent) <= goal


def open_net(bin_dir, line, sites, log):
    if line == "loopback":
        return Loopback()
    rate, delay = line.split(":")
    return ShapedNet(bin_dir, sites, float(rate), float(delay), log)


def run_case(a, bin_dir, directory, line, kind, point):
    net = open_net(bin_dir, line, a.workers + 1, f"{directory}/net.log")
    cluster = None
    try:
        cluster = Cluster(bin_dir, f"{directory}/{line.replace(':', '-')}-{kind}-{point}", net, {
            **CONFIG, "min-workers": a.workers - n_lost(kind, a.workers)})
        cluster.start_coordinator()
        cluster.add_workers(a.workers, failpoint=f"reduce.{POINTS[point]}@2=stop")
        cluster.wait("the first round", 120, lambda: cluster.commits())
        with open(f"{cluster.dir}/worker0/metrics.jsonl") as f:
            cluster.payload = json.loads(f.readline())["payload_bytes"]
        return Case(cluster, kind, point).run(line)
    except (Timeout, RuntimeError) as e:
        say(case=f"{line} {kind} {point}", error=str(e), met=False)
        return False
    finally:
        if cluster:
            cluster.close()
        net.close()


def run_line(a, bin_dir, directory, line):
    met = True
    for kind in a.kinds.split(","):
        if kind in SHAPED_ONLY and line == "loopback":
            continue
        for point in a.points.split(","):
            met = run_case(a, bin_dir, directory, line, kind, point) and met
    return met


def main():
    a = parse()
    bin_dir = os.environ["RIVULET_BIN"]
    missing = what_is_missing()
    if not missing:
        remove_stale()
    directory = tempfile.mkdtemp(prefix="rivulet-faults.")
    met = True
    try:
        for line in a.lines.split(","):
            if line != "loopback" and missing:
                say(case=line, skipped="; ".join(missing))
                continue
            met = run_line(a, bin_dir, directory, line) and met
    finally:
        if a.keep:
            print(f"faults: logs are in {directory}", file=sys.stderr)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    say(case="all", met=met)
    return 0 if met else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
