#!/usr/bin/env python3
"""Runs Rivulet in homes behind routers, and tells who met, how, how fast, and which rounds were committed.

    run_homes.py BIN_DIR [--delay MS] [--rate MBIT] [--seconds S] [--rounds N] [--dir DIR] [--set KEY=VALUE]...
                 [--relay serve|apart|both|none] [--do SECONDS:COMMAND]... HOME...

HOMES are those of homes.py: one worker for each host, started as a volunteer would. The coordinator has a public IPv4 and
IPv6 address. COMMAND is `cut HOME`, `heal HOME`, `forget HOME`, `move HOME`, `unplug HOME`, `wireless HOME`, `sleep HOME` or
`wake HOME`, that many seconds after the first commit (or 60 s after the start, where there is none). Logs stay in DIR.
Prints a line of JSON, and the same for people. Needs root.
"""
import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile

import private
from homes import Homes
from level import bytes_relayed, cost_of_break, is_level, share_of_computing
from links import read_events, ways_of_pairs
from runs import RELAYS, Choices, Run, name_the_coordinator

LEVEL_ROUNDS = 3  # in which a home that was healed takes part before it counts as level


def facts_of(run, host):
    """Returns (time of its start, rounds that it took part in); None: it did not start."""
    events = read_events(f"{run.dir}/{host.name}.log")
    started = [e for e in events if e["event"] == "started"]
    if not started:
        print(f"{host.name} did not start: {events[-1]['text'] if events else 'it logged nothing'}", file=sys.stderr)
        return None
    return started[0]["t"], {e["round"] for e in events if e["event"] == "round" and e.get("exchange_tx_bytes", 0) > 0}


def seconds_to_link(run, facts, pair, way):
    """Returns the seconds from the start of the later one to the first link: by the sockets, or for a relayed pair, whose
    sockets lead to the relay, by the log; None: no link."""
    ends = [facts[name] for name in pair.split("-")]
    if None in ends:
        return None
    if pair in run.links.first:
        return round(max(0.0, run.links.first[pair] - max(start for start, _ in ends)), 2)
    return way["seconds"]


def costs(run, commits, logs):
    """Returns {host: cost} of each home whose line broke."""
    found = {}
    for home, host in run.hosts:
        brk = run.breaks.of_home.get(home)
        if brk is not None:
            log = logs[host.name]
            linked = sorted(n for n, other in logs.items() if other is not log and log.way(other.member)[0] != "none")
            found[host.name] = cost_of_break(brk, commits, f"{run.dir}/{host.name}", log, linked)
    return found


def report(run):
    facts = {host.name: facts_of(run, host) for _, host in run.hosts}
    logs = run.logs()
    ways = ways_of_pairs(run.links, logs, run.ended)
    commits = run.commits()
    begin = max((f[0] for f in facts.values() if f), default=0)
    times = [c["wall_us"] / 1e6 - begin for c in commits]
    return {"homes": [home.spec for home in run.homes.homes], "rounds": len(commits),
            "seconds_to_first_commit": round(times[0], 2) if times else None,
            "seconds_to_last_commit": round(times[-1], 2) if times else None,
            "longest_gap_s": round(max((b - a for a, b in zip(times, times[1:])), default=0), 2),
            "participants": round(statistics.mean(c["participants"] for c in commits), 2) if commits else 0,
            "computing": {name: share_of_computing(f"{run.dir}/{name}") for name in facts},
            "rounds_of": {name: len(f[1]) if f else None for name, f in facts.items()},
            "way": {pair: way["way"] for pair, way in ways.items()},
            "seconds_to_link": {pair: seconds_to_link(run, facts, pair, way) for pair, way in ways.items()},
            "sockets_disagree": sorted(pair for pair, way in ways.items() if way["agrees"] is False),
            "with_a_relay": sorted(run.links.relayed),
            "bytes_relayed": sum(bytes_relayed(f"{run.dir}/{name}") for name in facts),
            "breaks": costs(run, commits, logs),
            "bystander_packets": run.homes.bystander_packets()}


def print_report(r):
    print(json.dumps(r))
    linked = sum(way != "none" for way in r["way"].values())
    print(f"homes: {' '.join(r['homes'])}")
    print(f"  {r['rounds']} rounds committed with {r['participants']} participants on average; the first after "
          f"{r['seconds_to_first_commit']} s, the last after {r['seconds_to_last_commit']} s; the longest gap "
          f"{r['longest_gap_s']} s")
    print(f"  rounds that each took part in: {r['rounds_of']}; share of time training: {r['computing']}")
    print(f"  {linked} of {len(r['way'])} pairs linked; way and seconds to the first link: "
          + ", ".join(f"{pair} {way} {r['seconds_to_link'][pair]}" for pair, way in r["way"].items()))
    print(f"  sockets disagree with the logs on: {r['sockets_disagree']}; connected with a relay: {r['with_a_relay']}; bytes "
          f"that workers sent through relays: {r['bytes_relayed']}; packets to the bystander: {r['bystander_packets']}")
    for name, cost in r["breaks"].items():
        print(f"  {name}: {cost}")
    sys.stdout.flush()


def read_command(text):
    at, _, command = text.partition(":")
    return float(at), command


def read_setting(text):
    key, _, value = text.partition("=")
    return key, value


def programs_of(commands):
    """A home that is put to sleep has another worker."""
    asleep = {command.split()[1] for _, command in commands if command.startswith("sleep ")}
    return {f"h{number}{letter}": ("rivulet-worker-sleeper", {}) for number in asleep for letter in "ab"}


def all_level(run, commands):
    """Returns whether every home that the commands broke is healed and has taken part in LEVEL_ROUNDS rounds since."""
    if len(run.breaks.of_home) < len({command.split()[1] for _, command in commands}) or run.todo:
        return False
    found = costs(run, run.commits(), run.logs()).values()
    return all(cost["rounds_missed_after_healing"] is not None and
               cost["rounds_after"] >= cost["rounds_missed_after_healing"] + LEVEL_ROUNDS for cost in found)


def is_as_asked(args, r):
    """--level is for homes that a command broke."""
    return (r["rounds"] >= args.rounds and r["participants"] >= args.participants and not r["sockets_disagree"] and
            (args.level is None or all(is_level(cost, args.level) for cost in r["breaks"].values())))


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", metavar="BIN_DIR")
    parser.add_argument("homes", nargs="+", metavar="HOME")
    parser.add_argument("--delay", type=float, default=20, metavar="MS", help="from a site to another (20)")
    parser.add_argument("--rate", type=float, default=0, metavar="MBIT", help="of a line, each way (0: unlimited)")
    parser.add_argument("--seconds", type=float, default=60, help="from the start of the workers (60)")
    parser.add_argument("--rounds", type=int, default=0, metavar="N", help="end after so many, and exit with 1 before it")
    parser.add_argument("--participants", type=float, default=0, metavar="N", help="exit with 1 with fewer on average")
    parser.add_argument("--level", type=int, metavar="N",
                        help="exit with 1 if a home whose line broke missed more rounds after the healing, or lost its place")
    parser.add_argument("--until-level", action="store_true", help="end once these homes take part in rounds again")
    parser.add_argument("--relay", choices=RELAYS, default="serve",
                        help="in the coordinator, on a server of its own, both, none (serve)")
    parser.add_argument("--dir", help="for logs; must not exist (default: a temporary one, removed at the end)")
    parser.add_argument("--set", type=read_setting, action="append", default=[], metavar="KEY=VALUE",
                        help="of the run's configuration")
    parser.add_argument("--do", type=read_command, action="append", default=[], metavar="SECONDS:COMMAND")
    return parser.parse_args(argv)


def main(argv):
    args = arguments(argv)
    private.enter()
    directory = args.dir or tempfile.mkdtemp(prefix="rivulet-homes-")
    os.makedirs(directory, exist_ok=not args.dir)
    homes = Homes(args.bin_dir, args.homes, args.delay, args.rate)
    try:
        name_the_coordinator(homes.servers["coordinator"])
        run = Run(args.bin_dir, directory, homes, Choices(dict(args.set), args.relay, programs_of(args.do)))
        run.start()
        run.watch(args.seconds, args.rounds, args.do, (lambda: all_level(run, args.do)) if args.until_level else None)
        found = report(run)
        print_report(found)
        return int(not is_as_asked(args, found))
    finally:
        homes.close()
        if not args.dir:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
