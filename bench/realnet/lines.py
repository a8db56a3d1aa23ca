"""Real workers on slow lines, under caps, and without their coordinator.

slow:  at 1 and 10 Mbit/s, with the default timeouts: every round must commit at the first attempt, nobody suspected.
caps:  --max-up and --max-down of 1, 5 and 20 Mbit/s on lines without limit: bytes on the wire (IP) in any 10 s.
full:  the same caps on a mesh of three that has bulk for everybody all the time: neither more nor less in any 10 s.
exchange: how much of their lines --sites workers use (exchange.py): --up and --down Mbit/s, --rtt, --loss, --buffer; beside
       it bare TLS streams, PCCL where PCCL_DIR names a checkout with a build, and hivemind where HIVEMIND_PYTHON names a
       python that has it (peers.py).
policies: one site of four is slow (--slow-lines, Mbit/s down/up), under each of --policies: seconds from commit to commit.
away:  the coordinator is killed and comes back after a while: how long until the next commit; nobody joins again.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import exchange
import peers
import slow_site
from cluster import Cluster, Timeout
from process import start_child
from shaped import ShapedNet, what_is_missing

SMALL = {"n-layer": 2, "n-embd": 128, "n-head": 4, "context": 32, "batch": 1, "steps-per-round": 2, "rounds": 100000,
         "data-shards": 16}
LARGE = {**SMALL, "n-layer": 4, "n-embd": 256}
WINDOW_S = 10


def say(case, **fields):
    print(json.dumps({"bench": "lines", "case": case, **fields}), flush=True)


class Run:
    """A cluster of workers that all take part, on lines of one rate; closed at the end of the `with`."""

    def __init__(self, a, config, workers, rate, args=(), delay=None, start=None):
        self.a, self.config, self.workers, self.rate, self.args = a, config, workers, rate, args
        self.delay = a.delay if delay is None else delay
        self.start = start or (lambda c: c.add_workers(workers, args))

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="rivulet-lines.")
        self.net = ShapedNet(self.a.bin, self.workers + 1, self.rate, self.delay, f"{self.dir}/net.log")
        try:
            self.cluster = c = Cluster(self.a.bin, f"{self.dir}/run", self.net,
                                       {"min-workers": self.workers, **self.config})
            c.start_coordinator()
            self.start(c)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if hasattr(self, "cluster"):
            self.cluster.close()
        self.net.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def events(self, name):
        return [e for w in self.cluster.workers for e in w.events.fresh() if e.get("event") == name]


def suspicions(cluster):
    """What workers held against others: [round, seconds after the all-reduce began, set of participants]; links that
    timed out."""
    found, down = [], 0
    for w in cluster.workers:
        began = {}
        for e in w.events.fresh():
            if e.get("event") == "attempt":
                began[e["round"]] = e["t"]
            elif e.get("event") == "suspects" and e["set"] != 0:
                found.append([e["round"], round(e["t"] - began[e["round"]], 1), e["set"]])
            elif e.get("event") == "link_down":
                down += e.get("error") == "timeout"
    return found, down


def slow(a, rate, workers):
    with Run(a, SMALL, workers, rate) as run:
        c = run.cluster
        c.wait(f"{a.rounds} rounds at {rate} Mbit/s", 60 + a.rounds * 40 / rate, lambda: len(c.commits()) >= a.rounds)
        commits = c.commits()
        late = [x["attempt"] for x in commits if x["attempt"] > 1]
        suspects, down = suspicions(c)
        met = not suspects and not late and all(x["participants"] == workers for x in commits)
        say(f"slow: {rate:g} Mbit/s, {workers} workers", rounds=len(commits), suspects=suspects, later_attempts=len(late),
            links_timed_out=down, reduce_s_mean=round(sum(x["reduce_us"] for x in commits) / len(commits) * 1e-6, 2), met=met)
        return met


def policies(a, line, policy):
    slow_down, slow_up = map(float, line.split("/"))

    def start(c):
        slow_site.shape(c.net, a.up, a.down or a.up, slow_up, slow_down)
        c.add_workers(1)
        c.add_workers(3)
    with Run(a, slow_site.config(policy), 4, a.up, start=start) as run:
        c = run.cluster
        c.wait(f"{a.rounds} rounds", 120 + a.rounds * 20, lambda: len(c.commits()) >= slow_site.FIRST + a.rounds, 1)
        commits = c.commits()[:slow_site.FIRST + a.rounds]
        say(f"policies: {policy}, the slow site has {line} Mbit/s", **slow_site.summary(commits),
            sends=slow_site.sent_as(c.workers[0].events.fresh()))
        return True


def worst_window(samples, key, site):
    """Returns the most bytes in any WINDOW_S, as Mbit/s: (worst, mean of all)."""
    points = [(s["us"] * 1e-6, s[key][site]) for s in samples]
    worst, at = 0.0, 0
    for t, n in points:
        while points[at][0] < t - WINDOW_S:
            at += 1
        if t - points[0][0] >= WINDOW_S - 0.2:
            worst = max(worst, (n - points[at][1]) * 8e-6 / max(t - points[at][0], 1e-9))
    return worst, (points[-1][1] - points[0][1]) * 8e-6 / (points[-1][0] - points[0][0])


def caps(a, rate, option):
    key = "up" if option == "--max-up" else "down"
    with Run(a, LARGE, 3, 0, (option, f"{rate:g}mbit")) as run:
        run.cluster.wait("the first all-reduce", 60, lambda: run.events("attempt"))
        samples, end = [], time.monotonic() + a.seconds
        while time.monotonic() < end:
            samples.append(run.net.stats())
            time.sleep(0.1)
        got = [worst_window(samples, key, site) for site in range(1, 4)]
        worst, mean = max(g[0] for g in got), max(g[1] for g in got)
        met = worst <= rate * 1.05
        say(f"caps: {option} {rate:g} Mbit/s", worst_10_s_mbit=round(worst, 3), of_cap=round(worst / rate, 3),
            mean_mbit=round(mean, 3), windows_s=WINDOW_S, seconds=a.seconds, met=met)
        return met


def windows(samples, key, site):
    """Returns Mbit/s in each WINDOW_S."""
    points, at, got = [(s["us"] * 1e-6, s[key][site]) for s in samples], 0, []
    for t, n in points:
        while points[at + 1][0] <= t - WINDOW_S:
            at += 1
        if t - points[at][0] >= WINDOW_S:
            got.append((n - points[at][1]) * 8e-6 / (t - points[at][0]))
    return got


def full(a, rate, option):
    members, key, cap = 3, "up" if option == "--max-up" else "down", int(rate * 125000)
    net, children = ShapedNet(a.bin, members + 1, 0, a.delay, "/dev/null"), []
    try:
        echo = start_child(net.inside(1) + [f"{a.bin}/bench_control", "echo", f"{net.address(1)}:7441"],
                           stdout=subprocess.PIPE, text=True)
        children.append(echo)
        echo.stdout.readline()
        start = time.monotonic() + 3
        hosts = [net.address(i + 2) for i in range(members)]
        for i in range(members):
            children.append(start_child(net.inside(i + 2) + [
                f"{a.bin}/bench_control", str(i), str(members), str(int(start * 1e6)), "1", str(a.seconds + 3),
                f"{cap}:0" if key == "up" else f"0:{cap}", f"{net.address(1)}:7441", *hosts], stdout=subprocess.DEVNULL))
        time.sleep(max(0, start + 3 - time.monotonic()))
        samples, end = [], time.monotonic() + a.seconds
        while time.monotonic() < end:
            samples.append(net.stats())
            time.sleep(0.1)
    finally:
        for c in children:
            c.kill()
            c.wait()
        net.close()
    got = [x for site in range(1, members + 1) for x in windows(samples, key, site)]
    met = rate * 0.95 <= min(got) and max(got) <= rate * 1.05
    say(f"full: {option} {rate:g} Mbit/s", most_10_s_of_cap=round(max(got) / rate, 3), least_10_s_of_cap=round(min(got) / rate, 3),
        windows=len(got), seconds=a.seconds, met=met)
    return met


def away(a, seconds):
    with Run(a, {**SMALL, "steps-per-round": 40}, 3, 100) as run:
        c = run.cluster
        c.wait("the first rounds", 60, lambda: len(c.commits()) >= 2)
        c.coordinator.kill9()
        before = len(c.commits())
        run.events("round")
        time.sleep(seconds)
        idle = sum(w.running for w in c.workers)
        back = time.time()
        c.start_coordinator()
        up = time.time()
        c.wait("a commit after its return", 60, lambda: len(c.commits()) > before)
        first = c.commits()[before]
        c.wait("another round", 60, lambda: len(c.commits()) > before + 1)
        joins = sum(open(w.log).read().count('"event":"joined"') for w in c.workers)
        commit_s = first["wall_us"] * 1e-6 - up
        met = commit_s < 10 and joins == 3 and idle == 3 and first["attempt"] == 1 and first["participants"] == 3
        say(f"away: coordinator gone for {seconds:g} s", workers_still_there=idle, restart_s=round(up - back, 2),
            commit_after_restart_s=round(commit_s, 2), participants=first["participants"], attempt=first["attempt"],
            joined_again=joins - 3, met=met)
        return met


def counted(a, net, sites, seconds, done, pause_s=exchange.PAUSE_S, spans=lambda: []):
    """Returns the summary of exchanges that pass until `done`; `spans`: when they were, if somebody says so."""
    before = net.cpu_s()
    samples = exchange.watch(net, seconds, done)
    cost = exchange.router_s_per_gb(samples, net.cpu_s() - before)
    said = spans()
    stretches = (exchange.spanned(samples, said) if said else
                 exchange.bursts(samples, sites * a.millions * 1e6, a.up * 125000, pause_s))
    return {**exchange.summary(exchange.measured(samples, a.up, a.down, stretches)), "router_s_per_gb": cost}


def measure_ours(a, sites, rtt, loss):
    with Run(a, exchange.config(a.millions), sites, a.up, delay=rtt / 2) as run:
        exchange.shape(a, run.net, sites, loss)
        c = run.cluster
        got = counted(a, run.net, sites, 60 + a.exchanges * 60, lambda: len(c.commits()) >= a.exchanges + 2)
        return {**got, "roster_to_votes_s": exchange.roster_to_votes_s(c.commits()),
                "congestion": exchange.congestion(run.net, sites)}


def measure_peer(a, name, found, sites, rtt, loss):
    net = ShapedNet(a.bin, sites + 1, a.up, rtt / 2, "/dev/null")
    try:
        exchange.shape(a, net, sites, loss)
        with peers.Members(net, sites, exchange.PARAMETERS[a.millions]) as members:
            peers.PEERS[name][1](members, found)
            return counted(a, net, sites, 180 + a.exchanges * 60, lambda: members.exchanges() >= a.exchanges + 1,
                           peers.PAUSE_S / 2, members.spans)
    finally:
        net.close()


def lines_limit(a, sites, rtt, loss):
    case = f"exchange: {sites} sites, {a.up:g}/{a.down:g} Mbit/s up/down, RTT {rtt:g} ms, loss {loss:g} %"
    ours = measure_ours(a, sites, rtt, loss)
    met = ours["use"] >= a.least
    say(case, **ours, met=met)
    for name, found in a.found.items():
        theirs = measure_peer(a, name, found, sites, rtt, loss)
        say(f"{case}, {name}", **theirs, its_seconds_over_ours=round(theirs["median_s"] / ours["median_s"], 2))
    return met


def find_peers(names, bin_dir):
    """Returns {name: what starts it} of those that are here; says aloud which are not."""
    found = {}
    for name in names.split(",") if names else []:
        here, lack = peers.PEERS[name][0](bin_dir)
        if here:
            found[name] = here
        else:
            print(f"lines: skipping {name}: {lack}", file=sys.stderr)
    return found


def parse():
    p = argparse.ArgumentParser(prog="./dev bench lines", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cases", default="exchange,slow,caps,full,away", help="default: %(default)s")
    p.add_argument("--rates", default="1,10", help="slow: Mbit/s (default: %(default)s)")
    p.add_argument("--workers", default="4,8", help="slow: how many (default: %(default)s)")
    p.add_argument("--rounds", type=int, default=4, help="slow, policies: rounds (default: 4)")
    p.add_argument("--slow-lines", default="10/10,20/5", help="policies: Mbit/s down/up (default: %(default)s)")
    p.add_argument("--policies", default=",".join(slow_site.POLICIES), help="default: %(default)s")
    p.add_argument("--caps", default="1,5,20", help="caps: Mbit/s (default: %(default)s)")
    p.add_argument("--seconds", type=float, default=30, help="caps: to watch (default: 30)")
    p.add_argument("--away", type=float, default=60, help="away: seconds (default: 60)")
    p.add_argument("--delay", type=float, default=20, help="ms, one way (default: 20)")
    p.add_argument("--sites", default="2,4,8", help="exchange: how many (default: %(default)s)")
    p.add_argument("--up", type=float, default=100, help="exchange, policies: Mbit/s of each site (default: 100)")
    p.add_argument("--down", type=float, help="exchange: the same (default: as --up)")
    p.add_argument("--rtt", default="0,40", help="exchange: ms between two sites (default: %(default)s)")
    p.add_argument("--loss", default="0", help="exchange: %% of packets, on each line (default: %(default)s)")
    p.add_argument("--buffer", type=float, default=50, help="exchange: ms of queue at each line (default: 50)")
    p.add_argument("--millions", type=int, choices=exchange.MODELS, default=16, help="exchange: parameters (default: 16)")
    p.add_argument("--exchanges", type=int, default=6, help="exchange: to measure (default: 6)")
    p.add_argument("--peers", default="tls-cubic,pccl,hivemind", help="exchange: who is measured beside us, if it is here (default: %(default)s)")
    p.add_argument("--least", type=float, default=0.9, help="exchange: part of the limit to be met (default: 0.9)")
    a = p.parse_args()
    unknown = [x for x in a.peers.split(",") if x and x not in peers.PEERS]
    if unknown:
        p.error(f"--peers {unknown[0]}: must be one of {', '.join(peers.PEERS)}")
    return a


def cases_of(a):
    if "slow" in a.cases:
        yield from ((slow, float(r), int(n)) for r in a.rates.split(",") for n in a.workers.split(","))
    if "policies" in a.cases:
        yield from ((policies, x, p) for x in a.slow_lines.split(",") for p in a.policies.split(","))
    if "caps" in a.cases:
        yield from ((caps, float(r), o) for r in a.caps.split(",") for o in ("--max-up", "--max-down"))
    if "full" in a.cases:
        yield from ((full, float(r), o) for r in a.caps.split(",") for o in ("--max-up", "--max-down"))
    if "away" in a.cases:
        yield (away, a.away)
    if "exchange" in a.cases:
        a.down, a.found = a.down or a.up, find_peers(a.peers, a.bin)
        yield from ((lines_limit, int(n), float(t), float(x)) for n in a.sites.split(",") for t in a.rtt.split(",")
                    for x in a.loss.split(","))


def main():
    a = parse()
    a.bin = os.environ["RIVULET_BIN"]
    missing = what_is_missing()
    if missing:
        print("lines: cannot run here:\n" + "\n".join(f"  {m}" for m in missing), file=sys.stderr)
        return 2
    met = True
    for f, *args in cases_of(a):
        try:
            met = f(a, *args) and met
        except (Timeout, RuntimeError) as e:
            say(f"{f.__name__} {args}", error=str(e), met=False)
            met = False
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
