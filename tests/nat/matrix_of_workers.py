#!/usr/bin/env python3
"""Prints how two Rivulet workers in homes of each kind met, and after how many seconds, beside what the types of their
routers promise (meet.py): matrix_of_workers.py BIN_DIR [--delay MS] [HOME,HOME | HOME*2]... Needs root.

Without pairs: the whole table. HOME is one of homes.py; HOME*2 are the two hosts of one house.

Each pair is a run of its own: a coordinator with its relay, and two workers as volunteers start them; no round begins,
because the run waits for a third. Several pairs meet at the same time, in disjoint homes of one set of namespaces. The exit
status is 1 if a pair met worse than promised, or if the sockets of the hosts show another way than the workers log."""
import argparse
import json
import os
import shutil
import sys
import tempfile
import time

import meet
import private
import sleep
from homes import Homes
from links import ways_of_pairs
from matrix import NEIGHBOURS, PROGRAMS, SHOWN
from runs import PORT, Choices, Run, name_the_coordinator

AT_ONCE = 4  # pairs; each is four processes
PATIENCE_S = 60
BETTER_S = 1  # later than the first link: a better one has replaced it
TRIES = 3  # a busy machine may have been too slow
PROMISED = {"lan": "dialed", "direct": "dialed", "mapped": "dialed", "learnt": "dialed", "punch": "punched", "hairpin": "punched",
            "punch6": "punched", "relay": "relayed"}  # what a worker's `path` calls meet.py's ways
ORDER = ("lan", "dialed", "dialed6", "punched6", "punched", "relayed", "none")


def is_worse(way, promised):
    return way not in ORDER or ORDER.index(way) > ORDER.index(PROMISED[promised])


class Pair:
    def __init__(self, name, a, b):
        self.name, self.ends = name, (a, b)
        self.promised, self.way, self.agrees = meet.expected_way(a[0], b[0]), "none", None
        self.linked = self.seconds = None  # to the first link, and to the last one

    @property
    def homes(self):
        return {end[0] for end in self.ends}

    @property
    def failed(self):
        return is_worse(self.way, self.promised) or self.agrees is False

    def take(self, run):
        """Notes how it stands. Returns whether there is no reason to wait."""
        started = [e["t"] for log in run.logs().values() for e in log.events if e["event"] == "started"]
        found, = ways_of_pairs(run.links, run.logs(), run.ended or time.time()).values()
        self.way, self.agrees = found["way"], found["agrees"]
        logged = [e["t"] for log in run.logs().values() for e in log.events if e["event"] == "path"]
        if logged and len(started) == 2:
            self.linked, self.seconds = (round(max(0.0, t - max(started)), 2) for t in (min(logged), max(logged)))
        return not is_worse(self.way, self.promised) and self.agrees is not None


def slots(pairs):
    """Yields lists of at most AT_ONCE pairs of which no two share a home."""
    left = list(pairs)
    while left:
        taken, busy = [], set()
        for pair in left:
            if len(taken) < AT_ONCE and not busy & pair.homes:
                taken.append(pair)
                busy |= pair.homes
        left = [pair for pair in left if pair not in taken]
        yield taken


class Workers:
    """Plays the pairs in the homes."""

    def __init__(self, bin_dir, homes):
        self.bin_dir, self.homes = bin_dir, homes

    def play(self, pairs):
        directory = tempfile.mkdtemp(prefix="rivulet-ways-")
        runs = []
        try:
            for i, pair in enumerate(pairs):
                os.mkdir(f"{directory}/{i}")
                choices = Choices({"min-workers": 3}, hosts=list(pair.ends), port=PORT + 100 * (i + 1))
                runs.append(Run(self.bin_dir, f"{directory}/{i}", self.homes, choices))
                runs[-1].start()
            self.wait(pairs, runs)
        finally:
            for run in runs:
                run.stop_workers()
                run.stop_servers()
            self.clear(pairs)
            shutil.rmtree(directory, ignore_errors=True)

    def clear(self, pairs):
        """What comes next finds homes in which nothing has happened: no mapping, and no port in TIME_WAIT."""
        for pair in pairs:
            for home, host in pair.ends:
                sleep.destroy_connections([host.name], [])
                if home.router:
                    self.homes.forget(home)

    def wait(self, pairs, runs):
        end = time.monotonic() + PATIENCE_S
        missing = list(zip(pairs, runs))
        while missing and time.monotonic() < end:
            for _, run in missing:
                run.links.look(time.time())
            missing = [(pair, run) for pair, run in missing if not pair.take(run)]
            time.sleep(0.2)

    def play_all(self, pairs, note=lambda pair: None):
        for slot in slots(pairs):
            todo = slot
            for _ in range(TRIES):
                self.play(todo)
                todo = [pair for pair in todo if pair.failed]
                if not todo:
                    break
            for pair in slot:
                note(pair)


def make_pairs(made, kinds, neighbours):
    """Returns the Pairs of homes that `specs_for` lists."""
    n = len(kinds)
    at = [(home, home.hosts[0]) for home in made]
    pairs = [Pair((kinds[i], kinds[j]), at[i], at[n + j]) for i in range(n) for j in range(i, n)]
    for k, name in enumerate(neighbours):
        a, b = at[2 * n + 2 * k:2 * n + 2 * k + 2]
        pairs.append(Pair(name, a, (a[0], a[0].hosts[1]) if len(a[0].hosts) > 1 else b))
    return pairs


def named_pairs(made, texts):
    """Returns the Pairs of the homes that the command line names."""
    left, pairs = list(made), []
    for text in texts:
        homes = [left.pop(0) for _ in text.split(",")]
        ends = [(home, host) for home in homes for host in home.hosts]
        pairs.append(Pair(text, ends[0], ends[1]))
    return pairs


def specs_for(kinds, neighbours):
    return list(kinds) * 2 + [spec for name in neighbours for spec in NEIGHBOURS[name]]


# ---- what is printed ----


def cell(pair):
    text = f"{pair.way} {pair.seconds}" if pair.seconds is not None else pair.way
    if pair.seconds is not None and pair.seconds > pair.linked + BETTER_S:
        text += f" (linked {pair.linked})"
    return f"**{text}** ({pair.promised})" if pair.failed else text


def print_table(pairs, kinds):
    found = {pair.name: pair for pair in pairs}
    print("| |", " | ".join(kinds), "|")
    print("|---" * (len(kinds) + 1) + "|")
    for i, row in enumerate(kinds):
        cells = [cell(found[row, column]) if j >= i else "" for j, column in enumerate(kinds)]
        print(f"| **{row}** |", " | ".join(cells), "|")
    print("\n| neighbours | way, seconds |\n|---|---|")
    for pair in pairs:
        if isinstance(pair.name, str):
            print(f"| {pair.name} | {cell(pair)} |")


def print_summary(pairs):
    def by(way):
        return sorted(pair.seconds for pair in pairs if pair.way == way and pair.seconds is not None)
    for way in ORDER:
        seconds = by(way)
        if seconds:
            print(f"{way}: {len(seconds)} pairs, median {seconds[len(seconds) // 2]} s, at most {seconds[-1]} s")
    linked = sorted(pair.linked for pair in pairs if pair.linked is not None)
    if linked:
        print(f"first link of {len(linked)} pairs: median {linked[len(linked) // 2]} s, at most {linked[-1]} s")
    print(f"worse than promised, or sockets and logs differ: {[pair.name for pair in pairs if pair.failed]}", flush=True)


def note(pair):
    print(json.dumps({"pair": pair.name, "promised": pair.promised, "way": pair.way, "linked": pair.linked, "seconds": pair.seconds,
                      "agrees": pair.agrees}), file=sys.stderr, flush=True)


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", metavar="BIN_DIR")
    parser.add_argument("pairs", nargs="*", metavar="HOME,HOME | HOME*2", help="(default: the whole table)")
    parser.add_argument("--delay", type=float, default=20, metavar="MS", help="from a site to another (20)")
    args = parser.parse_args(argv)
    private.enter(PROGRAMS)
    specs = [spec for text in args.pairs for spec in text.split(",")] or specs_for(SHOWN, NEIGHBOURS)
    homes = Homes(args.bin_dir, specs, args.delay)
    try:
        name_the_coordinator(homes.servers["coordinator"])
        pairs = named_pairs(homes.homes, args.pairs) if args.pairs else make_pairs(homes.homes, SHOWN, NEIGHBOURS)
        Workers(args.bin_dir, homes).play_all(pairs, note)
    finally:
        homes.close()
    if not args.pairs:
        print_table(pairs, SHOWN)
    print_summary(pairs)
    return int(any(pair.failed for pair in pairs))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
