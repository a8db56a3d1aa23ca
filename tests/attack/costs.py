#!/usr/bin/env python3
"""costs.py: what each defence costs where nobody attacks, in bytes and processor time.

usage: ./dev attack --costs [--rounds N] [--repeat N] [--workers N] [--only WORD]

Plays honest runs of real processes on loopback, with a defence and without it in turn, and prints
the quotients of what workers have sent to each other, and of the processor time of all processes of
the run: the median of --repeat pairs, and the least and the most. The model is tiny, so training
costs little beside a defence. Processor time, other than time, hardly depends on what else the
machine does.
"""
import argparse, os, re, statistics, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from attack import MODEL, PATIENCE, text_of  # noqa: E402
from attacked_run import Run, processor_s  # noqa: E402

SCORED = {"audit-window": 8}
# (what, with it, without it)
DEFENCES = [
    ("nothing (twice the same)", {}, {}),
    ("merge = clipped, beside mean", {"merge": "clipped"}, {"merge": "mean"}),
    ("merge = trimmed, beside mean", {"merge": "trimmed"}, {"merge": "mean"}),
    ("merge = agreed, beside mean", {"merge": "agreed"}, {"merge": "mean"}),
    ("audit-chunks = 2", {"audit-chunks": 2}, {"audit-chunks": 0}),
    ("audit-chunks = 8", {"audit-chunks": 8}, {"audit-chunks": 0}),
    ("audit-training = 0.02", {**SCORED, "audit-training": 0.02}, {**SCORED, "audit-training": 0.0, "published": True}),
    ("audit-training = 0.5", {**SCORED, "audit-training": 0.5}, {**SCORED, "audit-training": 0.0, "published": True}),
]


def play(options, config):
    """Plays an honest run. Returns (bytes that workers sent each other, seconds of processor)."""
    config = {**MODEL, **PATIENCE, "rounds": options.rounds, "min-workers": options.workers, **config}
    published = config.pop("published", False)
    run = Run(options.bin, options.text, config if published or "audit-training" in config else
              {**config, "data-shards": options.workers}, options.seconds, published)
    before = processor_s()
    try:
        run.serve()
        members = [run.join(i) for i in range(options.workers)]
        run.wait(lambda: all(m.poll() is not None for m in members), "the workers end")
        if any(m.poll() for m in members):
            sys.exit(f"costs: a worker failed: {run.dir}")
        sent = sum(run.bytes_sent(i) for i in range(options.workers))
    finally:
        run.close()
    return sent, processor_s() - before


def quotients(options, on, off):
    """[(bytes, processor)] with the defence over without it, in pairs."""
    found = []
    for k in range(options.repeat):
        first, second = (on, off) if k % 2 == 0 else (off, on)
        a, b = play(options, first), play(options, second)
        a, b = (a, b) if k % 2 == 0 else (b, a)
        found.append((a[0] / b[0], a[1] / b[1]))
    return found


def text(values):
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def parse(argv):
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--bin", default=os.path.join(HERE, "..", "..", "build", "release", "bin"), help="of the programs")
    a.add_argument("--text", default="", help="to train on (the Perl documentation)")
    a.add_argument("--rounds", type=int, default=16)
    a.add_argument("--repeat", type=int, default=3)
    a.add_argument("--workers", type=int, default=4)
    a.add_argument("--seconds", type=float, default=300, help="that a run may take")
    a.add_argument("--only", default="", metavar="WORD", help="defences whose names match")
    return a.parse_args(argv)


def main(argv):
    options = parse(argv)
    given, options.text = options.text, text_of(options)
    print(f"{options.workers} workers, {options.rounds} rounds, {options.repeat} pairs of runs\n")
    print("| defence | bytes sent, times | processor time, times |\n|---|---|---|", flush=True)
    try:
        for what, on, off in DEFENCES:
            if re.search(options.only, what):
                found = quotients(options, on, off)
                print(f"| {what} | {text([f[0] for f in found])} | {text([f[1] for f in found])} |", flush=True)
    finally:
        if not given:
            os.remove(options.text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
