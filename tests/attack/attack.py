#!/usr/bin/env python3
"""attack.py: carries out the attacks of registry.py, and says what came of each.

usage: ./dev attack [--list] [--only WORD] [--kind KIND]... [--short] [--pairs N] [--sim-seeds N] [...]

Kinds: "1of4" and "2of8" are real processes on loopback, in which the last workers are malicious (both
the same); in "first" it is the first one, which has the lowest number; "pair" has two different ones of
8; "lab" has 4 of 20 in one process (attacks on the averages of weights only); "other" are tests that
carry out what no worker of a run can do, as they end; "sim" are universes of the simulator with
members that lie.

Prints a table: the held-out loss of an honest worker, beside that of a run of as many honest ones
("beside honest"), and of one in which the attackers stayed at home ("at home"), which has less data;
attempts lost, and rounds that were not committed; seconds from the attacker's first round to the
event that names it; honest members that an event names; seconds and bytes beside the honest run.
Writes a JSON line for each to --out. Exit status 1: an attack that is held off did harm.
"""
import argparse, json, math, os, random, re, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from attacked_run import GATED, NOTICED, Run  # noqa: E402
from registry import ATTACKS, OTHERS  # noqa: E402

MODEL = {"n-layer": 2, "n-head": 2, "n-embd": 32, "context": 32, "batch": 4, "steps-per-round": 8, "rounds": 12,
         "warmup-steps": 10, "lr": 0.003}
PATIENCE = {"silence-ms": 4000, "grace-ms": 8000}
LIARS_S = 20  # that all wait for attackers to report, so that they are in the first roster; some never do
ATTEMPTS_EACH = 6  # that an attacker may cost: 3, and one for each absence of 1, 2, 4 ... of 12 rounds
ROUNDS_EACH = 2  # of which a commit may be missing, or taken back
HARM = 0.03  # of the held-out loss, beside the worse of both honest runs
KINDS = {"1of4": (4, 1), "first": (4, 1), "2of8": (8, 2), "pair": (8, 2)}
SAME = ("1of4", "first", "2of8")  # kinds of which all attackers do the same
LAB = (20, 4)
AUDITED_LEAST = 3  # workers in a round of a run that audits (base/run_audits.h)


# ---- real processes ----

def least_workers(workers, config):
    """min-workers: a majority, and as many as audits need."""
    return max(workers // 2 + 1, AUDITED_LEAST if any(key.startswith("audit-") for key in config) else 1)


def play(options, workers, evil, config, shards=None, first=False):
    """Plays a run whose last len(evil) workers are attackers; or its first. Returns what came of it."""
    run = Run(options.bin, options.text, {**MODEL, **PATIENCE, "rounds": options.rounds, "data-shards": shards or workers,
                                          "min-workers": least_workers(workers, config), **config}, options.seconds)
    at = range(len(evil)) if first else range(workers - len(evil), workers)
    attackers = dict(zip(at, evil))
    honest = [i for i in range(workers) if i not in attackers]
    try:
        run.serve()
        began = time.monotonic()
        run.gate()
        members = [run.join(i, *((attackers[i].evil, attackers[i].program) if i in attackers else (None, GATED)))
                   for i in range(workers)]
        run.wait(lambda: run.are_level(honest), "the honest ones train", options.seconds)
        run.comes(lambda: run.are_level(range(workers)), LIARS_S)
        run.open_gate()
        run.comes(lambda: all(members[i].poll() is not None for i in honest), options.seconds)
        took = time.monotonic() - began
        losses = run.evaluations(list(range(workers)) if first else honest[:1])
        triggered = run.trigger_loss(honest[0])
        blamed, noticed = run.blamed(), run.blamed(NOTICED)
        start = run.first_event("coordinator.log", {"roster"}) or 0
        lost_members = sum(members[i].poll() not in (0, None) for i in honest)
        stuck = sum(members[i].poll() is None for i in honest)
        return {"loss": losses[-1] if losses else math.nan, "peak": max(losses, default=math.nan), "trigger_loss": triggered,
                "committed": run.committed(), "taken_back": run.taken_back(),
                "attackers": len(evil), "seconds": took, "bytes": run.bytes_sent(honest[0]), "attempts_lost": run.lost_attempts(),
                "named": sorted({(e, m) for _, e, m in noticed if m in attackers}),
                "named_after_s": min((t - start for t, e, m in noticed if m in attackers), default=None),
                "wrongly": sorted({(e, m) for _, e, m in blamed if m not in attackers}),
                "ended_badly": lost_members + stuck, "kept": run.dir if options.keep else None}
    finally:
        run.close(options.keep)


# ---- the lab ----

def play_lab(options, evil, config, workers=LAB[0]):
    """Trains 20 replicas in one process, the last four malicious."""
    malicious = LAB[1]
    with tempfile.TemporaryDirectory(prefix="rivulet-attacked-") as where:
        args = {**MODEL, "rounds": options.rounds, "workers": workers, "data-shards": LAB[0], "data": options.text,
                "out": os.path.join(where, "lab"), "eval-every": 1, **config}
        env = {**os.environ, "RIVULET_EVIL": f"{evil},last={malicious}"} if evil else os.environ
        began = time.monotonic()
        out = subprocess.run([os.path.join(options.bin, "rivulet-evil"), "train", *(f"--{k}={v}" for k, v in args.items())],
                             env=env, capture_output=True, text=True)
        if out.returncode != 0:
            sys.exit(f"attack: rivulet-evil train: {out.stderr.strip()[-500:]}")
        with open(os.path.join(where, "lab", "metrics.jsonl")) as f:
            losses = [o["loss"] for o in map(json.loads, f) if o.get("kind") == "eval" and o.get("loss") is not None]
        return {"loss": losses[-1], "peak": max(losses), "committed": options.rounds, "taken_back": 0, "attackers": malicious,
                "seconds": time.monotonic() - began, "attempts_lost": 0, "named": [], "named_after_s": None, "wrongly": [],
                "ended_badly": 0, "bytes": 0, "kept": None}


# ---- tests of other programs ----

SKIPPED = 77  # exit status of a test that needs what this machine has not


def play_other(options, other):
    """Runs a test that carries out an attack, and prints a row. Returns whether it is held off, or cannot be tried here."""
    name, *args = other.command
    program = [sys.executable, "-B", os.path.join(HERE, name)] if name.endswith(".py") else [os.path.join(options.bin, name)]
    began = time.monotonic()
    out = subprocess.run([*program, *(options.bin if a == "BIN" else a for a in args)], capture_output=True, text=True)
    verdict = {0: "held off", SKIPPED: "not tried: this machine lacks what it needs"}.get(out.returncode, "HARM")
    print(f"| {other.name} | {other.row} | other | `{name}` | {time.monotonic() - began:.0f} s | {verdict} |", flush=True)
    if verdict == "HARM":
        print((out.stdout + out.stderr)[-3000:])
    return verdict != "HARM"


def play_others(options):
    others = [o for o in OTHERS if re.search(options.only, o.name)]
    if others:
        print("\n| attack | row | kind | test | time | |\n|" + "---|" * 6)
    return [play_other(options, o) for o in others]


# ---- the simulator ----

TWENTY_TAKE = 20  # a universe of twenty takes as long as so many others


def play_universes(options, seeds, flags, what):
    """Universes with members that lie. Returns whether all hold."""
    began = time.monotonic()
    out = subprocess.run([os.path.join(options.bin, "rivulet-sim"), "--liars", *flags, "--seeds", str(seeds),
                          "--first-seed", str(options.sim_first), "--jobs", "2", "--format", "text"],
                         capture_output=True, text=True)
    print(f"simulator, {seeds} universes {what} from seed {options.sim_first}: "
          f"{'all hold' if out.returncode == 0 else 'VIOLATION'} ({time.monotonic() - began:.0f} s)")
    if out.returncode != 0:
        print(out.stdout[-3000:])
    return out.returncode == 0


def play_simulator(options):
    """Universes of any size, and some of twenty members. Returns whether all hold."""
    any_size = play_universes(options, options.sim_seeds, [], "with liars")
    twenty = play_universes(options, max(1, options.sim_seeds // TWENTY_TAKE), ["--twenty"], "of 20, four of which lie,")
    return any_size and twenty


# ---- what is printed ----

def judge_costs(got, honest):
    """Returns what the attackers cost the others beyond what anybody may, as a list of words."""
    harm = []
    lost = honest["committed"] - got["committed"] + got["taken_back"]
    if got["committed"] < honest["committed"] or lost > ROUNDS_EACH * got["attackers"]:
        harm.append(f"{lost} rounds lost")
    attempts = got["attempts_lost"] - honest["attempts_lost"]
    if attempts > ATTEMPTS_EACH * got["attackers"]:
        harm.append(f"{attempts} attempts lost")
    if got["ended_badly"]:
        harm.append(f"{got['ended_badly']} honest workers ended")
    if got["wrongly"]:
        harm.append("honest named")
    return harm


def judge(options, got, honest):
    """Returns what the run suffered from the attack, as a list of words."""
    spoiled = not got["loss"] <= max(honest["loss"], honest["at_home"]) * (1 + options.harm)
    return (["loss"] if spoiled else []) + judge_costs(got, honest)


def percent(loss, beside):
    return f"{100 * (loss / beside - 1):+.1f} %"


def names_text(named):
    return ", ".join(f"{member}: {event}" for event, member in named) or "-"


def show(options, kind, attacks, got, honest):
    """Prints a row and writes a line. Returns whether nothing that is held off did harm."""
    name = " + ".join(a.name for a in attacks)
    harm = judge(options, got, honest)
    missing = "; ".join(a.missing for a in attacks if a.missing)
    unnamed = kind in SAME and attacks[0].names and not any(e in attacks[0].names for e, _ in got["named"])
    verdict = ", ".join(harm) or ("not named" if unnamed else "held off")
    if verdict != "held off" and missing:
        verdict += f" ({missing})"
    if "text=trigger" in (attacks[0].evil or "") and got.get("trigger_loss"):
        learnt = got["trigger_loss"] < honest["trigger_loss"] * (1 - options.harm)
        verdict = "the held-out loss is, its sentence is learnt" if learnt and verdict == "held off" else verdict
        verdict += f"; loss on its sentence {got['trigger_loss']:.2f}, of an honest run {honest['trigger_loss']:.2f}"
    after = "-" if got["named_after_s"] is None else f"{got['named_after_s']:.1f}"
    print(f"| {name} | {attacks[0].row} | {kind} | {got['loss']:.3f} | {percent(got['loss'], honest['loss'])} | {percent(got['loss'], honest['at_home'])} | "
          f"{got['attempts_lost']} | {after} | {names_text(got['named'])} | {names_text(got['wrongly'])} | "
          f"{got['seconds'] / honest['seconds']:.1f} | {verdict} |", flush=True)
    with open(options.out, "a") as f:
        f.write(json.dumps({"attack": name, "kind": kind, "row": str(attacks[0].row), "verdict": verdict, **got,
                            "honest": {k: honest[k] for k in ("loss", "at_home", "seconds", "bytes", "attempts_lost", "wrongly")}}) + "\n")
    return not judge_costs(got, honest) if missing else not (harm or unnamed)


def show_head():
    print("| attack | row | kind | held-out loss | beside honest | at home | attempts lost | named after s | named | "
          "honest named | time beside honest | |\n|" + "---|" * 12)


class Honest:
    """Runs without attackers, each played once."""

    def __init__(self, options):
        self.options, self.known = options, {}

    def of(self, kind, config):
        """What a run without attackers comes to; its `at_home` is the loss where they are not there at all."""
        key = ({"pair": "2of8", "first": "1of4"}.get(kind, kind), tuple(sorted(config.items())))
        if key not in self.known:
            workers, malicious = LAB if kind == "lab" else KINDS[kind]
            if kind == "lab":
                got, home = (play_lab(self.options, None, config, n) for n in (workers, workers - malicious))
            else:
                got, home = (play(self.options, n, [], config, workers) for n in (workers, workers - malicious))
            self.known[key] = got
            got["at_home"] = home["loss"]
            print(f"| nobody | - | {key[0]} | {got['loss']:.3f} | | {percent(got['loss'], home['loss'])} | "
                  f"{got['attempts_lost']} | - | - | {names_text(got['wrongly'])} | "
                  f"1 ({got['seconds']:.0f} s, {got['bytes']} bytes a worker) | "
                  f"{' '.join(f'{k}={v}' for k, v in config.items())} |", flush=True)
        return self.known[key]


def chosen(options):
    """[(kind, [attacks])] to be carried out, in order."""
    attacks = [a for a in ATTACKS if re.search(options.only, a.name) and (a.short or not options.short)]
    plan = []
    for kind in options.kinds:
        if kind in SAME:
            plan += [(kind, [a] * KINDS[kind][1]) for a in attacks]
        elif kind == "lab":
            plan += [(kind, [a]) for a in attacks if a.cheats == "weights" and a.evil and "half" not in a.evil
                     and "audit-training" not in a.config]  # nobody audits in the lab
        elif kind == "pair" and len(attacks) > 1:
            plan += [(kind, [a, attacks[(i + len(attacks) // 2) % len(attacks)]]) for i, a in enumerate(attacks)][:options.pairs]
    return plan


def carry_out(options, honest, kind, attacks):
    config = {k: v for a in attacks for k, v in a.config.items()}
    if kind == "lab":
        config.pop("weight-by-tokens", None)
    beside = honest.of(kind, config)
    got = play_lab(options, attacks[0].evil, config) if kind == "lab" else play(options, KINDS[kind][0], attacks, config,
                                                                                            first=kind == "first")
    return show(options, kind, attacks, got, beside)


def parse(argv):
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--bin", default=os.path.join(HERE, "..", "..", "build", "release", "bin"), help="of the programs")
    a.add_argument("--text", default="", help="to train on (the Perl documentation; without it, words in no order)")
    a.add_argument("--rounds", type=int, default=MODEL["rounds"])
    a.add_argument("--seconds", type=int, default=300, help="that a run may take")
    a.add_argument("--only", default="", metavar="WORD", help="attacks whose names match")
    a.add_argument("--kind", dest="kinds", action="append", choices=[*KINDS, "lab", "other", "sim"])
    a.add_argument("--short", action="store_true", help="a few, 1 of 4: what ./dev test runs")
    a.add_argument("--pairs", type=int, default=12)
    a.add_argument("--sim-seeds", type=int, default=2000)
    a.add_argument("--sim-first", type=int, default=1)
    a.add_argument("--list", action="store_true")
    a.add_argument("--keep", action="store_true", help="the runs' directories")
    a.add_argument("--out", default="", help="JSON lines (build/attack/results.jsonl)")
    options = a.parse_args(argv)
    options.harm = 5 * HARM if options.short else HARM  # runs are short, and an attempt without one trains on less
    if options.short:
        PATIENCE.update({"silence-ms": 10000, "grace-ms": 600000})
    options.kinds = options.kinds or (["1of4"] if options.short else ["1of4", "2of8", "pair", "lab", "other", "sim"])
    return options


def text_of(options):
    """Returns the text to train on: given, or words of this repository, the same for all workers."""
    if options.text:
        return options.text
    path = os.path.join(tempfile.gettempdir(), f"rivulet-attack-text-{os.getpid()}.txt")
    if subprocess.run([os.path.join(HERE, "..", "..", "lab", "perl_doc.sh"), path], capture_output=True).returncode == 0:
        return path
    words = ["the ", "river ", "runs ", "to ", "sea ", "and ", "many ", "small ", "streams ", "are ", "one ", "in ", "it.\n"]
    with open(path, "w") as f:
        f.write("".join(random.Random(1).choices(words, k=1200000)))
    return path


def main(argv):
    options = parse(argv)
    if options.list:
        for a in ATTACKS:
            print(f"{a.row!s:6} {a.name}{f' [{a.missing}]' if a.missing else ''}")
        for o in OTHERS:
            print(f"{o.row!s:6} {o.name} [{' '.join(o.command)}]")
        return 0
    options.bin = os.path.abspath(options.bin)
    options.out = options.out or os.path.join(HERE, "..", "..", "build", "attack", "results.jsonl")
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    open(options.out, "w").close()
    given, options.text = options.text, text_of(options)
    honest, plan = Honest(options), chosen(options)
    if plan:
        show_head()
    try:
        results = [carry_out(options, honest, kind, attacks) for kind, attacks in plan]
    finally:
        if not given:
            os.remove(options.text)
    if "other" in options.kinds:
        results += play_others(options)
    if "sim" in options.kinds:
        results.append(play_simulator(options))
    print(f"{sum(results)} of {len(results)} held off, or known not to be")
    print(f"JSON lines: {os.path.relpath(options.out)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
