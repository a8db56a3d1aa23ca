"""How soon a worker is level again after its line was cut for some seconds, or its address changed.

Four workers at equal lines. In the middle of an exchange one of them loses its line (`cut`: nothing says so, it heals after
--seconds) or its address (`move`: the old one is removed, a new one is added a second later). Counted from the healing, or
from the new address: the rounds that were committed without that worker, and the seconds until the commit of the first
round that it took part in. Cases:

    cut       a round is nearly all exchange (H = 1)
    cut-half  a round is half inner steps, half exchange (H is found by a short run before)
    move      as cut, on a line four times as fast
"""
import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time

from cluster import Cluster, Timeout
from shaped import ShapedNet, what_is_missing

WORKERS = 4
VICTIM = 1
ROUNDS_BEFORE = 4
MIDDLE = 0.4  # of an exchange
MOVE_S = 1.0
CONFIG = {"n-layer": 4, "n-embd": 128, "n-head": 4, "context": 16, "batch": 1, "rounds": 1000000, "snapshot-every": 16,
          "data-shards": WORKERS, "min-workers": 2}
CASES = {"cut": 1, "cut-half": 1, "move": 4}  # how many times the rate


def parse():
    p = argparse.ArgumentParser(prog="./dev bench heal", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cases", default=",".join(CASES), help="default: %(default)s")
    p.add_argument("--trials", type=int, default=3, help="of each case (default: 3)")
    p.add_argument("--rate", type=float, default=5, help="of every worker's line, Mbit/s (default: 5)")
    p.add_argument("--delay", type=float, default=20, help="ms, one way (default: 20)")
    p.add_argument("--seconds", type=float, default=10, help="that the line is cut (default: 10)")
    p.add_argument("--limit", type=float, default=60, help="seconds after which a worker counts as never level (default: 60)")
    p.add_argument("--keep", metavar="DIR", help="keep logs and states there")
    a = p.parse_args()
    a.cases = a.cases.split(",")
    unknown = [c for c in a.cases if c not in CASES]
    if unknown:
        p.error(f"--cases: no such case: {', '.join(unknown)}; must be of {', '.join(CASES)}")
    return a


class Trial:
    def __init__(self, a, net, directory, h):
        self.a, self.net, self.h = a, net, h
        self.c = Cluster(a.bin, directory, net, {**CONFIG, "steps-per-round": h})
        self.seen = []

    def start(self, rounds):
        self.c.start_coordinator()
        self.c.add_workers(WORKERS, ("--listen", ":0"))
        self.c.wait(f"{rounds} rounds", 180, lambda: len(self.c.commits()) >= rounds)

    def rounds_of(self, worker):
        self.seen += worker.events.fresh()
        return [e for e in self.seen if e.get("event") == "round"]

    def shares(self):
        """Median seconds of a round that are inner steps, and exchange."""
        rounds = self.rounds_of(self.c.workers[VICTIM])[1:]
        of = lambda name: statistics.median(e[name] for e in rounds) * 1e-6
        return of("compute_us"), of("reduce_us")

    def in_an_exchange(self):
        """Waits for the middle of an exchange, as the victim sees it."""
        victim = self.c.workers[VICTIM]
        victim.events.fresh()
        self.c.wait("an exchange", 120, lambda: any(e.get("event") == "attempt" for e in victim.events.fresh()), 0.01)
        time.sleep(MIDDLE * self.exchange_s)

    def cut(self):
        site = self.c.workers[VICTIM].site
        self.net.cut(site)
        time.sleep(self.a.seconds)
        self.net.heal(site)

    def move(self):
        site = self.c.workers[VICTIM].site
        self.net.remove_address(site)
        time.sleep(MOVE_S)
        self.net.add_address(site)

    def level(self, healed):
        """Returns the first round with all workers that was opened after the healing, or None."""
        after = [r for r in self.c.commits() if r["wall_us"] * 1e-6 > healed]
        for missed, r in enumerate(after):
            if r["participants"] == WORKERS:
                return missed, round(r["wall_us"] * 1e-6 - healed, 2)
        return None

    def run(self, case):
        self.start(ROUNDS_BEFORE)
        compute_s, self.exchange_s = self.shares()
        before = self.c.commits()
        self.in_an_exchange()
        began = time.time()
        (self.move if case == "move" else self.cut)()
        healed = time.time()
        try:
            self.c.wait("all workers to be level", self.a.limit, lambda: self.level(healed) is not None)
        except Timeout:
            pass
        missed, seconds = self.level(healed) or (None, None)
        rounds = self.c.commits()
        without = [r for r in rounds if r["wall_us"] * 1e-6 > began and r["participants"] < WORKERS]
        took = lambda some: round(statistics.median(r["duration_us"] for r in some) * 1e-6, 2) if some else None
        return {"h": self.h, "compute_s": round(compute_s, 2), "exchange_s": round(self.exchange_s, 2),
                "round_s": took(before[1:]), "rounds_without_it": len(without),
                "round_without_it_s": took([r for r in without if r["wall_us"] * 1e-6 > healed]),
                "slowest_round_s": max((round(r["duration_us"] * 1e-6, 2) for r in rounds if r["wall_us"] * 1e-6 > began),
                                       default=None),
                "rounds_until_level": missed, "seconds_until_level": seconds}


def open_net(a, times, directory):
    return ShapedNet(a.bin, WORKERS + 1, a.rate * times, a.delay, f"{directory}/net.log")


def steps_for_half(a, directory):
    """Returns how many inner steps take as long as an exchange."""
    net = open_net(a, 1, directory)
    trial = None
    try:
        trial = Trial(a, net, f"{directory}/calibration", 1)
        trial.start(5)
        compute_s, exchange_s = trial.shares()
        return max(1, round(exchange_s / compute_s))
    finally:
        if trial:
            trial.c.close()
        net.close()


def measure(a, case, number, h, directory):
    net = open_net(a, CASES[case], directory)
    trial = None
    try:
        trial = Trial(a, net, f"{directory}/{case}-{number}", h)
        return trial.run(case)
    finally:
        if trial:
            trial.c.close()
        net.close()


def table(results):
    print(f"\n{'case':<10} {'H':>4} {'round s':>8} {'rounds until level':>20} {'seconds until level':>24} "
          f"{'rounds without it':>18}")
    for case, of in results.items():
        text = lambda name: " ".join("never" if r[name] is None else str(r[name]) for r in of)
        print(f"{case:<10} {of[0]['h']:>4} {of[0]['round_s']:>8} {text('rounds_until_level'):>20} "
              f"{text('seconds_until_level'):>24} {text('rounds_without_it'):>18}")


def main():
    a = parse()
    a.bin = os.environ["RIVULET_BIN"]
    missing = what_is_missing()
    if missing:
        print("heal: cannot run here:\n" + "\n".join(f"  {m}" for m in missing), file=sys.stderr)
        return 2
    directory = a.keep or tempfile.mkdtemp(prefix="rivulet-heal.")
    os.makedirs(directory, exist_ok=True)
    results = {}
    try:
        for case in a.cases:
            h = steps_for_half(a, directory) if case == "cut-half" else 1
            for number in range(a.trials):
                r = measure(a, case, number, h, directory)
                results.setdefault(case, []).append(r)
                print(json.dumps({"bench": "heal", "case": case, "trial": number, "rate_mbit": a.rate * CASES[case],
                                  "load": round(os.getloadavg()[0], 1), **r}), flush=True)
        table(results)
        return 0 if all(r["rounds_until_level"] is not None for of in results.values() for r in of) else 1
    except (Timeout, RuntimeError) as e:
        print(json.dumps({"bench": "heal", "error": str(e)}), flush=True)
        return 1
    finally:
        if not a.keep:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
