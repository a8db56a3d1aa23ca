#!/usr/bin/env python3
"""defences.py: what each defence costs an exchange of real workers over TLS, of a model that is large
enough for it (10.7 M parameters, int8): honest runs on loopback, all variants in turn, again and again.

usage: bench/defences.py [--bin DIR] [--cycles N] [--rounds N] [--only WORD]

For each variant, beside the run as it is by default in the same cycle: bytes that workers sent to each
other; the processor time of all processes of the run; and the time of an exchange, the median over
workers and rounds but the first. Medians over the cycles, and the least and the most. A round has one
inner step of 16 tokens, so nearly all work is the exchange's, the disks' and the votes'. On a machine
with other work read the processor time: the time of an exchange is noise there.
"""
import argparse, os, re, statistics, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "attack"))
from attack import text_of  # noqa: E402
from attacked_run import Run, processor_s  # noqa: E402

WORKERS = 4
MODEL = {"n-layer": 6, "n-head": 6, "n-embd": 384, "context": 16, "batch": 1, "steps-per-round": 1, "warmup-steps": 2,
         "lr": 0.0005, "snapshot-every": 64, "silence-ms": 60000, "grace-ms": 600000, "min-workers": WORKERS}
USUAL = "as it is by default"
# (what, more of the configuration, program)
VARIANTS = [
    (USUAL, {}, None),
    ("twice the same", {}, None),
    ("no commitments, no seals", {}, "rivulet-worker-unproven"),
    ("merge = mean", {"merge": "mean"}, None),
    ("merge = agreed", {"merge": "agreed"}, None),
    ("audit-chunks = 2", {"audit-chunks": 2}, None),
    ("audit-chunks = 8", {"audit-chunks": 8}, None),
    ("audit-training = 0.02", {"audit-training": 0.02, "audit-window": 8}, None),
]


def play(options, config, program):
    """Plays a run. Returns (bytes, seconds of processor, seconds of an exchange), each of a round."""
    run = Run(options.bin, options.text, {**MODEL, "rounds": options.rounds, **config}, options.seconds, published=True)
    before = processor_s()
    try:
        run.serve()
        members = [run.join(i, program=program, evaluates=("--eval-every", "1000", "--eval-tokens", "256")) for i in range(WORKERS)]
        run.wait(lambda: all(m.poll() is not None for m in members), "the workers end")
        if any(m.poll() for m in members):
            sys.exit(f"defences: a worker failed: {run.dir}")
        sent = sum(run.bytes_sent(i) for i in range(WORKERS)) / WORKERS
        times = [o["reduce_us"] / 1e6 for i in range(WORKERS)
                 for o in run.lines(f"w{i}/metrics.jsonl", "kind", {"round"})[1:]]
    finally:
        run.close()
    return sent / options.rounds, (processor_s() - before) / options.rounds, statistics.median(times)


def text(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def show(got):
    print("| variant | bytes of a round | times | processor time of a round | times | time of an exchange | times |\n" + "|---" * 7 + "|")
    usual = got[USUAL]
    for what, found in got.items():
        cells = [f"{statistics.median(f[0] for f in found) / 1e6:.3f} MB", text([f[0] / u[0] for f, u in zip(found, usual)], 4),
                 text([f[1] for f in found], 2) + " s", text([f[1] / u[1] for f, u in zip(found, usual)], 3),
                 text([f[2] for f in found], 2) + " s", text([f[2] / u[2] for f, u in zip(found, usual)], 2)]
        print(f"| {what} | " + " | ".join(cells) + " |", flush=True)


def parse(argv):
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--bin", default=os.path.join(HERE, "..", "build", "release", "bin"), help="of the programs")
    a.add_argument("--text", default="", help="to train on (the Perl documentation)")
    a.add_argument("--rounds", type=int, default=8)
    a.add_argument("--cycles", type=int, default=3)
    a.add_argument("--seconds", type=float, default=600, help="that a run may take")
    a.add_argument("--only", default="", metavar="WORD", help="variants whose names match, beside the usual one")
    return a.parse_args(argv)


def main(argv):
    options = parse(argv)
    given, options.text = options.text, text_of(options)
    chosen = [v for v in VARIANTS if v[0] == USUAL or re.search(options.only, v[0])]
    got = {what: [] for what, _, _ in chosen}
    try:
        for cycle in range(options.cycles):
            for what, config, program in chosen[cycle % len(chosen):] + chosen[:cycle % len(chosen)]:
                got[what].append(play(options, config, program))
                print(f"{time.strftime('%H:%M:%S')} cycle {cycle}, {what}: {got[what][-1]}", file=sys.stderr, flush=True)
    finally:
        if not given:
            os.remove(options.text)
    show(got)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
