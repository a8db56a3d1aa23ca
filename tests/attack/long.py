#!/usr/bin/env python3
"""long.py: what attacks on contributions come to after many rounds, under each aggregation rule.

usage: ./dev attack --long [--rounds N] [--seeds N] [--rule NAME]... [--size 4:1|8:2|20:4]... [--only WORD]
                           [--pairs] [--jobs N]

Trains the replicas in one process (rivulet-evil train), the last of them malicious, and prints the
held-out loss in percent beside the worse of two runs: the honest one with the same rule, and the one
in which the attackers stayed at home; a figure for each seed. `beside honest` has the honest run
alone. --pairs: every two different attacks, one attacker of 8 each, seed 1.

Losses do not depend on the machine or its load. Exit status 1: a run could not be played.
"""
import argparse, concurrent.futures, itertools, json, os, re, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from attack import MODEL, text_of  # noqa: E402
from registry import ATTACKS  # noqa: E402

# Besides those of the registry that the lab can play.
OWN = [("x-0.5", "scale=-0.5"), ("x1.25", "scale=1.25"), ("x0.1", "scale=0.1"), ("noise x0.5", "noise=0.5"),
       ("x-1 every other round", "scale=-1,odd=1"), ("x-4 in the last quarter", "scale=-4,from={late}"),
       ("stale in the last quarter", "stale=1,from={late}"), ("zeros in the last quarter", "zero=1,from={late}"),
       ("x-1, a quarter of it", "scale=-1,share=0.25"), ("x-1, half of it", "scale=-1,share=0.5"),
       ("noise x1, half of it", "noise=1,share=0.5")]


def attacks_of(options):
    known = {a.name: a.evil for a in ATTACKS if a.cheats == "weights" and a.evil and not a.config}
    late = {"late": options.rounds * 3 // 4}
    return {name: evil.format(**late) for name, evil in [*known.items(), *OWN] if re.search(options.only, name)}


class NotPlayed(Exception):
    """A run ended with an error; its text."""


def play(options, rule, seed, workers, shards, evil, malicious):
    with tempfile.TemporaryDirectory(prefix="rivulet-long-") as where:
        args = {**MODEL, "rounds": options.rounds, "workers": workers, "data-shards": shards, "data": options.text,
                "out": os.path.join(where, "lab"), "eval-every": 0, "min-workers": 3, "seed": seed, "merge": rule}
        env = {**os.environ, "OMP_WAIT_POLICY": "passive",
               **({"RIVULET_EVIL": "/".join(f"{e},last={malicious}" for e in evil)} if evil else {})}
        out = subprocess.run([os.path.join(options.bin, "rivulet-evil"), "train", *(f"--{k}={v}" for k, v in args.items())],
                             env=env, capture_output=True, text=True)
        if out.returncode != 0:
            raise NotPlayed(out.stderr.strip()[-500:])
        with open(os.path.join(where, "lab", "metrics.jsonl")) as f:
            return [o["loss"] for o in map(json.loads, f) if o.get("kind") == "eval" and o.get("loss") is not None][-1]


class Runs:
    """Runs, each played once, several at a time."""

    def __init__(self, options):
        self.options, self.pool, self.known = options, concurrent.futures.ThreadPoolExecutor(options.jobs), {}

    def begin(self, *key):
        if key not in self.known:
            self.known[key] = self.pool.submit(play, self.options, *key)

    def of(self, *key):
        self.begin(*key)
        return self.known[key].result()


def keys(rule, seed, size, evil):
    """The run, the honest one, and the one without the attackers."""
    workers, malicious = size
    return ((rule, seed, workers, workers, evil, malicious), (rule, seed, workers, workers, (), 0),
            (rule, seed, workers - malicious, workers, (), 0))


def row(runs, name, rule, size, evil, seeds):
    """Prints a row; returns false if a run of it could not be played."""
    harm, honest = [], []
    for seed in seeds:
        try:
            got, with_all, without = (runs.of(*k) for k in keys(rule, seed, size, evil))
        except NotPlayed as e:
            print(f"| {name} | {size[1]} of {size[0]} | `{rule}` | not played: {e} | | |", flush=True)
            return False
        harm.append(100 * (got / max(with_all, without) - 1))
        honest.append(100 * (got / with_all - 1))
    figures = [", ".join(f"{x:+.1f}" for x in values) for values in (harm, honest)]
    print(f"| {name} | {size[1]} of {size[0]} | `{rule}` | {figures[0]} | {figures[1]} | "
          f"{'' if max(harm) <= 3 else 'above 3 %'} |", flush=True)
    return True


def plan_of(options):
    """[(name, rule, size, evil, seeds)]"""
    attacks, seeds = attacks_of(options), range(1, options.seeds + 1)
    sizes = [tuple(map(int, s.split(":"))) for s in options.sizes]
    if options.pairs:
        return [(f"{a} + {b}", rule, (8, 2), (attacks[a], attacks[b]), [1])
                for rule in options.rules for a, b in itertools.combinations(attacks, 2)]
    return [(name, rule, size, (evil,), [1] if size[0] > 8 else seeds)
            for size in sizes for rule in options.rules for name, evil in attacks.items()]


def parse(argv):
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--bin", default=os.path.join(HERE, "..", "..", "build", "release", "bin"), help="of the programs")
    a.add_argument("--text", default="", help="to train on (the Perl documentation)")
    a.add_argument("--rounds", type=int, default=120)
    a.add_argument("--seeds", type=int, default=3)
    a.add_argument("--rule", dest="rules", action="append")
    a.add_argument("--size", dest="sizes", action="append", metavar="WORKERS:MALICIOUS")
    a.add_argument("--only", default="", metavar="WORD", help="attacks whose names match")
    a.add_argument("--pairs", action="store_true")
    a.add_argument("--jobs", type=int, default=2)
    options = a.parse_args(argv)
    options.rules = options.rules or ["clipped", "agreed"]
    options.sizes = options.sizes or ["4:1", "8:2", "20:4"]
    return options


def main(argv):
    options = parse(argv)
    given, options.text = options.text, text_of(options)
    try:
        runs, plan = Runs(options), plan_of(options)
        for _, rule, size, evil, seeds in plan:
            for key in (k for seed in seeds for k in keys(rule, seed, size, evil)):
                runs.begin(*key)
        print("| attack | who | rule | beside the worse of honest and at home, % | beside honest, % | |\n|" + "---|" * 6)
        played = [row(runs, *entry) for entry in plan]
    finally:
        if not given:
            os.remove(options.text)
    return 0 if all(played) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
