#!/usr/bin/env python3
"""poison.py: the harm of one invited stranger to a run: real processes on loopback, some of them
malicious (tests/attack/evil.h), and the held-out loss of an honest worker at the end.

usage: bench/poison.py [--bin DIR] [--text FILE] [--rounds N] [--steps H] [--set NAME=VALUE]... [--only WORD]

Prints one line per attack: the loss by each aggregation rule (--merge). The text is that of
lab/perl_doc.sh.
"""
import argparse, math, os, re, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "attack"))
from attacked_run import RANDOM_TEXT, Run  # noqa: E402
MODEL = {"n-layer": 2, "n-head": 2, "n-embd": 64, "context": 64, "batch": 4, "warmup-steps": 20,
         "grace-ms": 600000, "silence-ms": 60000}

# name, workers, what the last ones do, more of the configuration
ATTACKS = [
    ("honest, 4 workers", 4, [], {}),
    ("x10, 1 of 4", 4, ["scale=10"], {}),
    ("x100, 1 of 4", 4, ["scale=100"], {}),
    ("x1000, 1 of 4", 4, ["scale=1000"], {}),
    ("x-1, 1 of 4", 4, ["scale=-1"], {}),
    ("x-4, 1 of 4", 4, ["scale=-4"], {}),
    ("noise of its norm, 1 of 4", 4, ["noise=1"], {}),
    ("noise x10, 1 of 4", 4, ["noise=10"], {}),
    ("zeros, 1 of 4", 4, ["zero=1"], {}),
    ("stale, 1 of 4", 4, ["stale=1"], {}),
    ("one late round x100, 1 of 4", 4, ["scale=100,from=15,until=16"], {}),
    ("x-4 and 1000 times the tokens, 1 of 4", 4, ["scale=-4,tokens=2560000"], {"weight-by-tokens": "true"}),
    ("loss 3.3e38, 1 of 4", 4, ["loss=3.3e38"], {}),
    ("random letters as its text, 1 of 4", 4, [RANDOM_TEXT], {}),
    ("wrong means x64, 1 of 4 (not cured)", 4, ["mean=64"], {}),
    ("honest, 8 workers", 8, [], {}),
    ("x-8, 1 of 8", 8, ["scale=-8"], {}),
    ("x-4, 2 of 8", 8, ["scale=-4", "scale=-4"], {}),
]


def play(options, workers, evil, config):
    """Returns the last and the largest held-out loss, and what the coordinator logged of members."""
    run = Run(options.bin, options.text, {**MODEL, "rounds": options.rounds, "steps-per-round": options.steps,
                                          "min-workers": workers, "data-shards": workers, **config})
    try:
        run.serve()
        started = [run.join(i, evil[i - workers + len(evil)] if i >= workers - len(evil) else None)
                   for i in range(workers)]
        run.wait(lambda: started[0].poll() is not None, "the run ends", options.seconds)
        losses = run.evaluations()
        log = open(run.path("coordinator.log")).read()
    finally:
        run.close()
    named = sorted(set(re.findall(r'"event":"outlier_(\w+)"[^\n]*?member (\d+): its', log)))
    named = [f"{member}: {what}" for what, member in named if what != "over"]
    return (losses[-1], max(losses), named) if losses else (math.nan, math.nan, named)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--bin", default=os.path.join(HERE, "..", "build", "release", "bin"))
    a.add_argument("--text", default="")
    a.add_argument("--rounds", type=int, default=20)
    a.add_argument("--steps", type=int, default=10)
    a.add_argument("--seconds", type=int, default=600)
    a.add_argument("--merge", default="mean,clipped", help="aggregation rules, in turn")
    a.add_argument("--set", action="append", default=[])
    a.add_argument("--only", default="")
    options = a.parse_args()
    if not options.text:
        options.text = os.path.join(tempfile.gettempdir(), "rivulet-poison-text.txt")
        if not os.path.exists(options.text):
            subprocess.run([os.path.join(HERE, "..", "lab", "perl_doc.sh"), options.text], check=True)
    rules = options.merge.split(",")
    extra = dict(s.split("=", 1) for s in options.set)
    print("| attack | " + " | ".join(rules) + " | named |\n|---|" + "---|" * (len(rules) + 1))
    for name, workers, evil, config in ATTACKS:
        if not re.search(options.only, name):
            continue
        cells = []
        for rule in rules:
            last, most, named = play(options, workers, evil, {**config, **extra, "merge": rule})
            cells.append(f"{last:.3f}" + (f" (peak {most:.3g})" if most > 2 * 5.55 else ""))
        print(f"| {name} | " + " | ".join(cells) + f" | {', '.join(named) or '-'} |", flush=True)


if __name__ == "__main__":
    main()
