#!/usr/bin/env python3
"""The paper-shape experiment: the findings of DiLoCo's papers, tested with this program in small.

Tunes the learning rate once, on data-parallel training; trains the runs of methods.sweep, several
seeds each; then compares every expectation with the results: met, missed, or open if one seed cannot
decide. A missed expectation is a finding: the exit status is 0 all the same. Then repeats all of it
at a quarter of that learning rate, with fewer seeds: each of four workers steps on a quarter of the
batch for which the learning rate was tuned, which shows how much of the misses it causes. A second
start continues where the first was stopped.
"""
import argparse
import csv
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
GLOBAL_BATCH, WORKERS, H = 16, 4, 32
MAIN = {"method": "diloco", "workers": WORKERS, "batch": GLOBAL_BATCH // WORKERS, "steps-per-round": H,
        "outer": "nesterov", "codec": "int8", "drop-sync": 0}
LOWER = 4  # times lower is the second learning rate
CLEAR = 2  # standard deviations over seeds that make a difference clear


class Missing(Exception):
    """No run of that configuration is complete."""


# --- results ---


class Results:
    """The complete cells of a sweep: their options, and their rows of summary.csv."""

    def __init__(self, out):
        self.out = pathlib.Path(out)
        with open(self.out / "summary.csv", newline="") as f:
            self.rows = [row for row in csv.DictReader(f) if row["state"] == "done"]
        for row in self.rows:
            row["options"] = json.loads((self.out / row["id"] / "sweep.json").read_text())["options"]

    def rows_of(self, **changes):
        want = {**MAIN, **{name.replace("_", "-"): value for name, value in changes.items()}}
        rows = {int(row["seed"]): row for row in self.rows
                if all(same(row["options"][name], value) for name, value in want.items())}
        if not rows:
            raise Missing(", ".join(f"{name} = {value}" for name, value in want.items()))
        return rows

    def losses(self, **changes):
        return {seed: float(row["loss"]) for seed, row in self.rows_of(**changes).items()}

    def rounds_of(self, **changes):
        """Every `round` line of metrics.jsonl, of all seeds."""
        lines = []
        for row in self.rows_of(**changes).values():
            for line in (self.out / row["id"] / "metrics.jsonl").read_text().splitlines():
                record = json.loads(line)
                if record["kind"] == "round":
                    lines.append(record)
        return lines


def same(text, value):
    return text == value if isinstance(value, str) else float(text) == value


def spread(values):
    """Mean and sample standard deviation (None for one value)."""
    values = list(values)
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None


def against(a, b, how=lambda x, y: x / y - 1):
    """Mean and standard deviation of the differences, seed by seed: equal seeds have equal weights and data to begin with."""
    return spread(how(a[seed], b[seed]) for seed in sorted(a.keys() & b.keys()))


def sigma(*configurations):
    """Returns the standard deviation of a configuration over its seeds, pooled."""
    squares = [statistics.variance(c.values()) for c in configurations if len(c) > 1]
    return math.sqrt(statistics.fmean(squares)) if squares else None


# --- expectations ---


def percent(mean, sd=None):
    return f"{mean * 100:+.2f} %" + (f" ± {sd * 100:.2f}" if sd is not None else "")


def verdict(met):
    return "open" if met is None else "met" if met else "missed"


def in_range(value, low, high):
    return low <= value <= high


def check_data_parallel(r):
    gap = against(r.losses(), r.losses(method="ddp"))
    return percent(*gap), in_range(gap[0], -0.01, 0.08)


def check_one_worker(r):
    gap = against(r.losses(workers=1, batch=GLOBAL_BATCH), r.losses(method="ddp"))
    return percent(*gap), in_range(gap[0], -0.015, 0.015)


def check_order(rising, *configurations):
    """Figure and verdict of losses that should rise (or fall) from one configuration to the next."""
    means = [statistics.fmean(c.values()) for c in configurations]
    ordered = all(a < b if rising else a > b for a, b in zip(means, means[1:]))
    return " → ".join(f"{m:.4f}" for m in means) + sigma_text(*configurations), ordered


def sigma_text(*configurations):
    s = sigma(*configurations)
    return f" (σ {s:.4f})" if s is not None else ""


def check_fixed_tokens(r):
    return check_order(True, *[r.losses(workers=k, batch=GLOBAL_BATCH // k) for k in (1, 2, 4)])


def check_fixed_steps(r):
    return check_order(False, *[r.losses(workers=k, batch=GLOBAL_BATCH // WORKERS) for k in (1, 2, 4)])


def check_clearly_better(better, worse):
    gap, s = against(better, worse), sigma(better, worse)
    difference = statistics.fmean(worse.values()) - statistics.fmean(better.values())
    figure = percent(*gap) + (f", {difference / s:.1f} σ" if s else "")
    return figure, None if s is None else difference > CLEAR * s


def check_quarter(r):
    return check_clearly_better(r.losses(), r.losses(method="ddp", workers=1, batch=GLOBAL_BATCH // WORKERS))


def check_averaging(r):
    better, worse = r.losses(), r.losses(outer="average")
    gap = against(better, worse)
    return percent(*gap) + sigma_text(better, worse), gap[0] < 0


def check_intervals(r):
    return check_order(True, *[r.losses(steps_per_round=h) for h in (8, 32, 128)])


def check_interval_cost(r):
    gap = against(r.losses(steps_per_round=128), r.losses(steps_per_round=8))
    return percent(*gap), gap[0] <= 0.08


def check_every_step(r):
    losses = {h: statistics.fmean(r.losses(steps_per_round=h).values()) for h in (1, 8, 32, 128)}
    return f"{losses[1]:.4f}; the worst other {max(losses[h] for h in (8, 32, 128)):.4f}", losses[1] == max(losses.values())


def check_codec_error(r):
    errors = [line["codec_error"] for line in r.rounds_of() if line["codec_error"] is not None]
    return f"mean {statistics.fmean(errors) * 100:.3f} %, worst round {max(errors) * 100:.3f} %", max(errors) <= 0.015


def check_codec_cosine(r):
    cosines = [line["codec_cosine"] for line in r.rounds_of() if line["codec_cosine"] is not None]
    return f"mean {statistics.fmean(cosines):.6f}, worst round {min(cosines):.6f}", min(cosines) >= 0.9998


def check_codec_loss(r):
    a, b = r.losses(), r.losses(codec="fp32")
    s, difference = sigma(a, b), statistics.fmean(a.values()) - statistics.fmean(b.values())
    figure = percent(*against(a, b)) + (f", {difference / s:+.1f} σ" if s else "")
    return figure, None if s is None else abs(difference) <= 2 * s


def check_dropped(r):
    """Of the perplexity."""
    gap = against(r.losses(drop_sync=0.5), r.losses(), lambda x, y: math.exp(x - y) - 1)
    return percent(*gap), gap[0] <= 0.05


def check_delayed(r):
    return check_clearly_better(r.losses(method="eager"), r.losses(method="delayed"))


EXPECTATIONS = [  # subject, expectation, check, note
    ("k = 4, H = 32 against data-parallel at equal tokens", "-1 … +8 % loss", check_data_parallel, ""),
    ("k = 1, H = 32 against data-parallel", "± 1.5 % loss", check_one_worker, ""),
    ("loss with k = 1, 2, 4 at fixed tokens", "rises", check_fixed_tokens,
     "published for H = 30, 35 M parameters: -0.1, +0.7, +2.0 % (arXiv 2503.09799)"),
    ("loss with k = 1, 2, 4 at fixed steps", "falls", check_fixed_steps, "published perplexities: 16.23 (1), 15.23 (4) (arXiv 2311.08105)"),
    ("k = 4 against one worker with a quarter of the tokens", f"better by more than {CLEAR} σ", check_quarter, ""),
    ("Nesterov against averaging", "better", check_averaging, "needs at least 30 rounds; there are 32"),
    ("loss with H = 8, 32, 128", "rises", check_intervals, "H = 128 has 8 rounds: too few for a momentum of 0.9 to build up"),
    ("H = 128 against H = 8", "at most +8 % loss", check_interval_cost, "the same"),
    ("H = 1 with Nesterov", "the worst of all H", check_every_step, "its outer learning rate of 0.6 with a momentum of 0.9 is too large for single steps"),
    ("int8, one round: relative error of an outer gradient", "at most 1.5 %", check_codec_error, ""),
    ("int8, one round: cosine", "at least 0.9998", check_codec_cosine, ""),
    ("int8 against fp32 at the end", "within 2 σ of the seeds", check_codec_loss, ""),
    ("half of the syncs dropped", "at most +5 % perplexity", check_dropped, "a worker that missed a round keeps its progress (late = keep)"),
    ("eager updates against updates one round late", f"better by more than {CLEAR} σ", check_delayed,
     "published for 500 M parameters: 2.69 against 3.01, and 2.67 without delay (arXiv 2502.12996)"),
]


def judge(results):
    rows = []
    for what, expected, check, note in EXPECTATIONS:
        try:
            figure, met = check(results)
        except Missing as why:
            figure, met = f"not trained: {why}", None
        rows.append({"what": what, "expected": expected, "figure": figure, "verdict": verdict(met), "note": note})
    return rows


# --- tables ---


def configurations(results):
    """Rows that differ in the seed only, put together, in the order of the sweep."""
    groups = {}
    for row in results.rows:
        key = tuple(row[name] for name in ("method", "workers", "steps_per_round", "batch", "outer", "codec"))
        groups.setdefault((*key, float(row["options"]["drop-sync"])), []).append(row)
    return groups


def configuration_table(results):
    base = statistics.fmean(results.losses(method="ddp").values())
    lines = ["| method | k | H | batch of each | outer | codec | syncs missed | tokens | sent by each | loss | against data-parallel | cosine |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for (method, k, h, batch, outer, codec, drop), rows in configurations(results).items():
        mean, sd = spread(float(row["loss"]) for row in rows)
        cosines = [float(row["delta_cosine"]) for row in rows if row["delta_cosine"]]
        ddp = method == "ddp"
        lines.append("| " + " | ".join([
            method, k, "1" if ddp else h, batch, outer, codec, f"{drop * 100:.0f} %" if drop else "",
            f"{float(rows[0]['tokens']) * 1e-6:.2f} M", f"{statistics.fmean(float(r['bytes_sent']) for r in rows) * 1e-6:.1f} MB",
            f"{mean:.4f}" + (f" ± {sd:.4f}" if sd is not None else ""), percent(mean / base - 1),
            f"{statistics.fmean(cosines):.3f}" if cosines else ""]) + " |")
    return lines


def verdict_table(conditions):
    """A row for each expectation; a figure and a verdict for each condition."""
    heads = "".join(f" lr = {c['lr']} | verdict |" for c in conditions)
    lines = ["| | expected |" + heads, "|---|---|" + "---|---|" * len(conditions)]
    for rows in zip(*[c["verdicts"] for c in conditions]):
        note = f" ({rows[0]['note']})" if rows[0]["note"] else ""
        figures = "".join(f" {row['figure']} | **{row['verdict']}** |" for row in rows)
        lines.append(f"| {rows[0]['what']}{note} | {rows[0]['expected']} |{figures}")
    return lines


def count_verdicts(condition):
    counts = {v: sum(row["verdict"] == v for row in condition["verdicts"]) for v in ("met", "missed", "open")}
    return (f"lr = {condition['lr']}: {counts['met']} of {len(condition['verdicts'])} expectations met, {counts['missed']} missed, "
            f"{counts['open']} open")


# --- running ---


def run(*words):
    status = subprocess.run([str(w) for w in words]).returncode
    if status != 0:
        sys.exit(130 if status == 130 else f"paper: {words[0].name} {words[1]} failed (status {status}), see above")


def prepare_text(args):
    if args.data:
        return args.data
    text = args.out / "perl-doc.txt"
    if not text.exists():
        subprocess.run([HERE.parent / "perl_doc.sh", text], check=True)
    return text


def tuned_learning_rate(out):
    with open(out / "summary.csv", newline="") as f:
        rows = [row for row in csv.DictReader(f) if row["state"] == "done"]
    tried = {}
    for row in rows:
        lr = json.loads((out / row["id"] / "sweep.json").read_text())["options"]["lr"]
        tried.setdefault(lr, []).append(float(row["loss"]))
    return sorted((statistics.fmean(losses), lr) for lr, losses in tried.items())


def describe_choice(tried):
    by_rate = sorted((float(lr), lr, loss) for loss, lr in tried)
    best = tried[0][1]
    edge = ", at the edge of the tried ones" if best in (by_rate[0][1], by_rate[-1][1]) else ""
    return f"lr = {best}{edge} (validation loss: " + ", ".join(f"{lr} → {loss:.4f}" for _, lr, loss in by_rate) + ")"


def parse():
    p = argparse.ArgumentParser(prog="./dev paper", description=__doc__.split("\n\n")[0], epilog=__doc__.split("\n\n")[1],
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=pathlib.Path, default=TOP / "runs" / "paper", help="folder of the results (runs/paper)")
    p.add_argument("--data", type=pathlib.Path, help="a text (default: the Perl documentation that Debian ships)")
    p.add_argument("--seeds", type=int, default=3, help="runs of each configuration (3)")
    p.add_argument("--lower-seeds", type=int, default=2, help="the same at the lower learning rate; 0: leave that out (2)")
    p.add_argument("--jobs", type=int, default=0, help="runs at a time, of one thread each (0: as many as there are cores)")
    p.add_argument("--bin", type=pathlib.Path, default=TOP / "build" / "release" / "bin", help="folder of the programs")
    p.add_argument("more", nargs="*", metavar="-- OPTION", help="options for both sweeps, such as --total-steps 2048")
    args = p.parse_args()
    if not 1 <= args.seeds <= 32:
        p.error(f"--seeds {args.seeds}: must be 1 to 32")
    if not 0 <= args.lower_seeds <= 32:
        p.error(f"--lower-seeds {args.lower_seeds}: must be 0 to 32")
    return args


def main():
    args = parse()
    args.out.mkdir(parents=True, exist_ok=True)
    begun = Begun(args.out)
    rivulet, text = args.bin / "rivulet", prepare_text(args)
    common = ["--config", HERE / "common.conf", "--data", text, "--jobs", args.jobs, *args.more]
    print("The learning rate, on data-parallel training:", flush=True)
    run(rivulet, "sweep", HERE / "learning-rate.sweep", *common, "--out", args.out / "learning-rate")
    tried = tuned_learning_rate(args.out / "learning-rate")
    lr, chosen = tried[0][1], describe_choice(tried)
    conditions = [(lr, args.seeds)] + [(f"{float(lr) / LOWER:.6g}", args.lower_seeds)] * (args.lower_seeds > 0)
    print(f"\n{chosen}", flush=True)
    cells = args.out / "methods"
    results = []
    for rate, n in conditions:
        print(f"\nThe methods, with lr = {rate}:", flush=True)
        seeds = ",".join(str(1 + i) for i in range(n))
        run(rivulet, "sweep", HERE / "methods.sweep", *common, "--lr", rate, "--seed", seeds, "--out", cells)
        results.append((rate, Results(cells)))
    report(args, chosen, results, begun)


class Begun:
    """The date, processors and load at the start, for readers of the results."""

    def __init__(self, out):
        self.at = time.monotonic()
        self.date = time.strftime("%Y-%m-%d")
        self.load = os.getloadavg()[0]
        self.there = len(list(out.glob("*/*/model.safetensors")))

    def describe(self, n_runs):
        seconds = int(time.monotonic() - self.at)
        there = f", {self.there} of them from before" if self.there else ""
        return (f"`./dev paper`, {self.date}: {n_runs} runs{there}, in {seconds // 60} min {seconds % 60} s on "
                f"{len(os.sched_getaffinity(0))} processors, load {self.load:.1f} when it began.")


def report(args, chosen, results, begun):
    cells = [r.out / row["id"] for _, r in results for row in r.rows]
    subprocess.run([args.bin / "rivulet", "report", *cells, "--out", args.out / "report.html", "--csv", args.out / "csv"],
                   check=True, stdout=subprocess.DEVNULL)
    conditions = [{"lr": lr, "verdicts": judge(r)} for lr, r in results]
    n_runs = len(cells) + len(list((args.out / "learning-rate").glob("*/model.safetensors")))
    lines = [begun.describe(n_runs), f"Tuned on data-parallel training: {chosen}.", ""]
    for lr, r in results:
        lines += [f"With lr = {lr}:", "", *configuration_table(r), ""]
    lines += [*verdict_table(conditions), "", *map(count_verdicts, conditions)]
    (args.out / "verdicts.md").write_text("\n".join(lines) + "\n")
    (args.out / "verdicts.json").write_text(json.dumps({"learning_rate": chosen, "conditions": conditions}, indent=1) + "\n")
    print("\n" + "\n".join(lines))
    print(f"\nwritten: {args.out}/verdicts.md, verdicts.json, report.html, csv/*.csv")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
