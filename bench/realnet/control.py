"""How long control waits while every line is full: PING between peers, and a request to the coordinator's site.

Members of a mesh in namespaces of their own, without a coordinator: first control alone, then bulk
from all to all as in an all-reduce. Latencies are one way for PING and of a round trip for the
request; the rate counts received bytes, TLS and headers included, from a second after bulk began.
With --bins several builds are compared, run for run.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

from process import start_child
from shaped import ShapedNet, what_is_missing


def parse():
    p = argparse.ArgumentParser(prog="./dev bench control", description=__doc__)
    p.add_argument("--rates", default="1,10", help="Mbit/s of every line (default: %(default)s)")
    p.add_argument("--members", default="4,8", help="default: %(default)s")
    p.add_argument("--delay", type=float, default=20, help="ms, one way (default: 20)")
    p.add_argument("--buffer", type=float, default=100, help="ms of queue in a router (default: 100)")
    p.add_argument("--cap", type=float, default=0, help="--max-up as a share of the line, such as 0.9; 0: none (default)")
    p.add_argument("--slow-up", type=float, default=0, help="Mbit/s of the last member's upload; 0: as the others'")
    p.add_argument("--slow-down", type=float, default=0, help="the same of its download")
    p.add_argument("--idle", type=float, default=4, help="seconds (default: 4)")
    p.add_argument("--full", type=float, default=15, help="seconds (default: 15)")
    p.add_argument("--runs", type=int, default=1, help="of each case (default: 1)")
    p.add_argument("--bins", default="", help="folders with the programs of the builds to compare")
    p.add_argument("--goal", type=float, default=1000, help="ms that the 99th percentile may take (default: 1000)")
    return p.parse_args()


def shape(net, a, rate, members):
    for site in range(2, members + 2):
        net.buffer(site, a.buffer)
    if a.slow_up or a.slow_down:
        net.rate(members + 1, a.slow_up or rate, a.slow_down or rate)


def run_case(a, bin_dir, log, rate, members):
    net = ShapedNet(os.environ["RIVULET_BIN"], members + 1, rate, a.delay, log)
    children = []
    try:
        shape(net, a, rate, members)
        echo = start_child(net.inside(1) + [f"{bin_dir}/bench_control", "echo", f"{net.address(1)}:7441"],
                           stdout=subprocess.PIPE, text=True)
        children.append(echo)
        echo.stdout.readline()
        start_us = int(time.monotonic() * 1e6) + 4_000_000
        hosts = [net.address(i + 2) for i in range(members)]
        cap = int(rate * a.cap * 1e6 / 8)
        for i in range(members):
            children.append(start_child(net.inside(i + 2) + [
                f"{bin_dir}/bench_control", str(i), str(members), str(start_us), str(a.idle), str(a.full), str(cap),
                f"{net.address(1)}:7441", *hosts], stdout=subprocess.PIPE, text=True))
        got = [json.loads(c.communicate(timeout=a.idle + a.full + 60)[0]) for c in children[1:]]
        return got, sum(net.stats()["dropped"])
    finally:
        for c in children:
            c.kill()
            c.wait()
        net.close()


def percentiles(times):
    s = sorted(times)
    return {"n": len(s), "p50_ms": s[len(s) // 2], "p99_ms": s[len(s) * 99 // 100], "max_ms": s[-1]} if s else None


def pings(got, takes):
    """Returns percentiles over all pairs with takes(sender, receiver)."""
    return percentiles([t for g in got for i, f in enumerate(g["from"]) if takes(i, g["member"]) for t in f["ping_ms"]])


def summary(a, rate, members, got, dropped):
    case = {"bench": "control", "case": f"{rate:g} Mbit/s, {members} members", "delay_ms": a.delay, "buffer_ms": a.buffer,
            "cap": a.cap, "mbit_mean": round(sum(f["mbit"] for g in got for f in g["from"]) / members, 3),
            "packets_dropped": dropped}
    for kind in ("ping_idle", "ping_full", "echo_idle", "echo_full"):
        case[kind] = {"n": sum(g[kind]["n"] for g in got),
                      "p50_ms": round(sorted(g[kind]["p50_ms"] for g in got)[members // 2], 1),
                      "p99_ms": max(g[kind]["p99_ms"] for g in got), "max_ms": max(g[kind]["max_ms"] for g in got)}
    if a.slow_up or a.slow_down:
        slow = members - 1
        case["slow"] = {"up_mbit": a.slow_up or rate, "down_mbit": a.slow_down or rate,
                        "ping_to": pings(got, lambda i, j: j == slow), "ping_from": pings(got, lambda i, j: i == slow),
                        "ping_others": pings(got, lambda i, j: slow not in (i, j)),
                        "mbit_to": round(sum(f["mbit"] for f in got[slow]["from"]), 3),
                        "mbit_from": round(sum(g["from"][slow]["mbit"] for g in got), 3),
                        "mbit_among_others": round(sum(f["mbit"] for g in got[:slow] for f in g["from"][:slow]) / slow, 3)}
    case["met"] = max(case["ping_full"]["p99_ms"], case["echo_full"]["p99_ms"]) <= a.goal
    return case


def main():
    a = parse()
    missing = what_is_missing()
    if missing:
        print("control: cannot run here:\n" + "\n".join(f"  {m}" for m in missing), file=sys.stderr)
        return 2
    met = True
    bins = a.bins.split(",") if a.bins else [os.environ["RIVULET_BIN"]]
    cases = [(rate, members) for rate in a.rates.split(",") for members in a.members.split(",") for _ in range(a.runs)]
    with tempfile.TemporaryDirectory(prefix="rivulet-control.") as directory:
        for rate, members in cases:
            for bin_dir in bins:
                got = run_case(a, bin_dir, f"{directory}/net.log", float(rate), int(members))
                case = summary(a, float(rate), int(members), *got)
                if a.bins:
                    case["bin"] = bin_dir
                met = met and case["met"]
                print(json.dumps(case), flush=True)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
