"""A worker that has nothing joins a run over a line of a rate, from three donors with unequal uplinks, of whom one is killed
midway.

The run holds meanwhile (a worker too few), so what has to be fetched stays the same: the latest snapshot, and the rounds after
it. Time: from the first request to the state that all hold. What it is compared with: the bytes of that state (snapshot and
log, as sent) over the joiner's download rate. The donors' uplinks are 0.8, 0.6 (killed) and 0.4 of that rate. What giving
costs a donor: its processor time meanwhile (it does not train then), for each gigabyte that leaves it.
"""
import argparse
import json
import os
import shutil
import sys
import tempfile
import time

from cluster import Cluster, Timeout
from shaped import ShapedNet, what_is_missing

UPLINKS = (0.8, 0.6, 0.4)
KILLED = 1  # of the donors
ROUNDS_BEFORE = 12  # a snapshot is 8 bytes a parameter and a round's log 1: a joiner goes by the log alone when that is less
JOINER_SITE = 6
CONFIG = {"n-head": 4, "context": 16, "batch": 1, "steps-per-round": 1, "rounds": 100000, "snapshot-every": 2,
          "data-shards": 4, "min-workers": 4, "grace-ms": 2000}


def say(**fields):
    print(json.dumps({"bench": "rejoin", **fields}), flush=True)


def parse():
    p = argparse.ArgumentParser(prog="bench/rejoin.sh", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rate", type=float, default=20, help="the joiner's line, Mbit/s (default: 20)")
    p.add_argument("--delay", type=float, default=20, help="ms, one way (default: 20)")
    p.add_argument("--layers", type=int, default=6, help="of the model (default: 6)")
    p.add_argument("--width", type=int, default=256, help="of the model (default: 256: with 6 layers 4.8 M parameters)")
    p.add_argument("--setup", type=float, default=120, help="seconds that the run before may take (default: 120)")
    p.add_argument("--no-kill", action="store_true", help="let all donors live")
    return p.parse_args()


def snapshot_round(cluster):
    names = [n for n in os.listdir(f"{cluster.dir}/worker0") if n.startswith("snapshot-") and n.endswith(".rvs")]
    return max((int(n[9:-4]) for n in names), default=-1)


def hold(c, a):
    """Trains until a snapshot is the shorter way; then the fourth worker leaves, and the run waits."""
    c.start_coordinator()
    c.add_workers(4)
    c.wait("a snapshot", a.setup, lambda: len(c.commits()) >= ROUNDS_BEFORE and snapshot_round(c) >= ROUNDS_BEFORE)
    c.workers[3].kill9()
    waits = lambda: any(e.get("event") == "waiting" and e.get("missing") == 1 for e in c.workers[0].events.fresh())
    c.wait("the run to wait", a.setup, waits)


class Joiner:
    def __init__(self, worker):
        self.worker, self.seen = worker, []

    def events(self, name):
        self.seen += self.worker.events.fresh()
        return [e for e in self.seen if e.get("event") == name]

    def is_level(self, rounds):
        """Returns whether the snapshot is installed, and every round after it applied."""
        installed, applied = self.events("installed"), self.events("round")
        return bool(installed) and max([installed[-1]["round"]] + [e["round"] for e in applied]) >= rounds


class Donors:
    """The donors that live to the end: bytes sent, and processor time."""

    def __init__(self, a, c, net):
        self.net = net
        self.sites = [i for i in range(len(UPLINKS)) if a.no_kill or i != KILLED]
        self.workers = [c.workers[i] for i in self.sites]
        self.before = self.now()

    def now(self):
        up = self.net.stats()["up"]
        return sum(w.cpu_s() for w in self.workers), sum(up[i + 1] for i in self.sites)

    def cpu_s_per_gb(self):
        (cpu_s, sent), (cpu_s_before, sent_before) = self.now(), self.before
        return (cpu_s - cpu_s_before) / ((sent - sent_before) * 1e-9)


def measure(a, c, net):
    rounds = len(c.commits())
    for i, share in enumerate(UPLINKS):
        net.rate(i + 2, share * a.rate, a.rate)
    net.rate(JOINER_SITE, a.rate, a.rate)
    parameters = next(e for e in Joiner(c.workers[1]).events("started"))["parameters"]
    ideal_s = parameters * 8 * 8 / (a.rate * 1e6)
    before, donors = net.stats(), Donors(a, c, net)
    c.add_workers(1)
    joiner = Joiner(c.workers[-1])
    c.wait("the first request", 60, lambda: joiner.events("fetch"))
    if not a.no_kill:
        time.sleep(0.4 * ideal_s)
        c.workers[KILLED].kill9()
    c.wait("the joiner to be level", 60 + 4 * ideal_s, lambda: joiner.is_level(rounds))
    first, last = joiner.events("fetch")[0]["t"], max(e["t"] for e in joiner.events("installed") + joiner.events("round"))
    after = net.stats()
    snapshot = joiner.events("installed")[-1]["round"]
    logs = len([e for e in joiner.events("round") if e["round"] > snapshot])
    line = a.rate * 1e6 / 8
    state = parameters * 8
    received = after["down"][JOINER_SITE - 1] - before["down"][JOINER_SITE - 1]
    took = last - first
    ratio = took / ((state + logs * parameters) / line)
    say(parameters=parameters, rate_mbit=a.rate, delay_ms=a.delay, donors=len(UPLINKS), killed=0 if a.no_kill else 1,
        state_mb=round(state * 1e-6, 1), logs=logs, seconds=round(took, 2), snapshot_seconds=round(
            joiner.events("installed")[-1]["t"] - first, 2), of_line_rate=round(ratio, 3),
        received_over_state=round(received / state, 3), donor_cpu_s_per_gb=round(donors.cpu_s_per_gb(), 2), bad_donors=len(joiner.events("bad_donor")), met=ratio <= 1.2)
    return ratio <= 1.2


def main():
    a = parse()
    a.bin = os.environ["RIVULET_BIN"]
    missing = what_is_missing()
    if missing:
        print("rejoin: cannot run here:\n" + "\n".join(f"  {m}" for m in missing), file=sys.stderr)
        return 2
    directory = tempfile.mkdtemp(prefix="rivulet-rejoin.")
    net = ShapedNet(a.bin, JOINER_SITE, 0, a.delay, f"{directory}/net.log")
    c = None
    try:
        c = Cluster(a.bin, f"{directory}/run", net, {**CONFIG, "n-layer": a.layers, "n-embd": a.width})
        hold(c, a)
        return 0 if measure(a, c, net) else 1
    except (Timeout, RuntimeError) as e:
        say(error=str(e), met=False)
        return 1
    finally:
        if c is not None:
            c.close()
        net.close()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
