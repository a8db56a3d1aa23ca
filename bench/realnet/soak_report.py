"""The report of a soak: goodput, participation, losses by cause, leaks; tables, a CSV, a page with charts."""
import csv
import html
import json
import os
import statistics
from collections import Counter, defaultdict

from soak_faults import ABOUT

GOAL = 0.97
NOISE = 1.02         # faults do not make a run faster
LEAST_S = 180        # a process' life that is long enough to look for a leak: caches have filled
LEAK_BYTES = 4 << 20  # between the medians of the last two quarters of it; a copy of the state that is kept for a while is less
LEAK_FDS = 4


def seconds(part):
    return part.ended_wall - part.began_wall


def goodput(part):
    """Returns committed tokens per wall second, over the whole part."""
    return sum(c["tokens"] for c in part.commits) / seconds(part)


def full_share(part, workers):
    return sum(c["participants"] == workers for c in part.commits) / max(1, len(part.commits))


def committed_share(part, workers):
    """Of what all workers could have contributed to the rounds that were committed: independent of how busy the machine is."""
    return sum(c["participants"] for c in part.commits) / max(1, workers * len(part.commits))


def slope(points):
    """Returns the slope by least squares, per minute."""
    xs, ys = zip(*points)
    mx, my = statistics.fmean(xs), statistics.fmean(ys)
    over = sum((x - mx) ** 2 for x in xs)
    return sum((x - mx) * (y - my) for x, y in points) / over * 60 if over else 0.0


def usage_rows(part):
    """For each life of a process: memory and descriptors at the start and the end, growth per minute, a verdict."""
    lives = defaultdict(list)
    for s, name, start, resident, fds in part.samples:
        lives[name, start].append((s, resident, fds))
    rows = []
    for (name, start), points in sorted(lives.items()):
        long_enough = points[-1][0] - points[0][0] >= LEAST_S
        quarter = max(1, len(points) // 4)
        third, last = points[2 * quarter:3 * quarter] or points, points[3 * quarter:] or points
        grows = slope([(s, r) for s, r, _ in third + last]) if long_enough else None
        more = [statistics.median(p[k] for p in last) - statistics.median(p[k] for p in third) for k in (1, 2)]
        leaks = long_enough and (more[0] > LEAK_BYTES or more[1] > LEAK_FDS)
        rows.append({"part": part.name, "process": name, "life": start, "s": round(points[-1][0] - points[0][0]),
                     "rss_mib_first": round(points[0][1] / 2**20, 1), "rss_mib_last": round(points[-1][1] / 2**20, 1),
                     "rss_mib_max": round(max(p[1] for p in points) / 2**20, 1),
                     "rss_kib_per_min": round(grows / 1024, 1) if grows is not None else None,
                     "fds_first": points[0][2], "fds_last": points[-1][2], "fds_max": max(p[2] for p in points),
                     "leak": bool(leaks)})
    return rows


def losses(calm, rough, workers):
    """Tokens that were not committed, by the fault that they were lost to: a worker missing in a round, by its own latest
    fault; a round that took longer than it does without faults, by the faults of that time."""
    per_worker = statistics.median(c["tokens"] / c["participants"] for c in calm.commits)
    usual_s = statistics.median(c["duration_us"] * 1e-6 for c in calm.commits)
    per_s = goodput(calm)
    missed, held_s = Counter(), Counter()
    for c in rough.commits:
        end_s = c["wall_us"] * 1e-6 - rough.began_wall
        start_s = end_s - c["duration_us"] * 1e-6
        events = rough.rounds.get(c["round"] + 1, {})
        absent = [w.name for w in rough.cluster.workers
                  if w.name not in events or events[w.name]["attempts"] == 0][:workers - c["participants"]]
        for name in absent:
            mine = [f for f in rough.faults.all if f.worker and f.worker.name == name and f.start_s < end_s]
            missed[mine[-1].kind if mine else "no fault of its own"] += 1
        excess_s = end_s - start_s - usual_s
        during = [f.kind for f in rough.faults.all if f.start_s < end_s and f.until_s > start_s - 1]
        if excess_s > 0:
            for kind in during or ["no fault"]:
                held_s[kind] += excess_s / len(during or [1])
    could = per_s * seconds(rough)
    rows = []
    for kind in sorted(set(missed) | set(held_s)):
        tokens = missed[kind] * per_worker + held_s[kind] * per_s
        rows.append({"fault": kind, "count": sum(f.kind == kind for f in rough.faults.all),
                     "worker_rounds_missed": missed[kind], "held_up_s": round(held_s[kind], 1),
                     "lost_share": round(tokens / could, 4)})
    return rows


def table(title, rows):
    if not rows:
        return
    print(f"\n{title}")
    names = list(rows[0])
    cells = [names] + [["-" if r[n] is None else str(r[n]) for n in names] for r in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    for row in cells:
        print("  " + "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))))


# --- files ---

def write_csv(path, parts):
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["part", "s", "process", "start", "rss_bytes", "descriptors"])
        for part in parts:
            out.writerows((part.name, *sample) for sample in part.samples)


COLOURS = ("#1b6ca8", "#c2571a", "#2e8540", "#8a3ffc", "#a2191f", "#6f6f6f", "#005d5d", "#9f1853", "#b28600")


def chart(title, unit, series, faults, width=920, height=220):
    """Lines over seconds; each series is (name, [(s, value)]). Faults are bars behind them."""
    left, bottom = 56, 24
    longest = max((p[0] for _, points in series for p in points), default=1) or 1
    top = max((p[1] for _, points in series for p in points), default=1) * 1.08 or 1

    def x(s):
        return left + s / longest * (width - left - 8)

    def y(v):
        return height - bottom - v / top * (height - bottom - 8)

    out = [f'<h3>{html.escape(title)}</h3><svg viewBox="0 0 {width} {height}" role="img">']
    for f in faults:
        out.append(f'<rect x="{x(f.start_s):.1f}" width="{max(1.5, x(f.until_s) - x(f.start_s)):.1f}" y="8" '
                   f'height="{height - bottom - 8}" fill="#f4c7c3" fill-opacity="0.6"><title>'
                   f'{html.escape(f.kind + " " + (f.worker.name if f.worker else ""))}</title></rect>')
    for k in range(5):
        v = top * k / 4
        out.append(f'<line x1="{left}" x2="{width - 8}" y1="{y(v):.1f}" y2="{y(v):.1f}" stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{v:.3g}</text>')
    for i, (name, points) in enumerate(series):
        line = " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[i % len(COLOURS)]}" stroke-width="1.4"/>')
    out.append(f'<text x="{width - 8}" y="{height - 6}" text-anchor="end">{longest:.0f} s</text></svg><p>')
    out += [f'<span style="color:{COLOURS[i % len(COLOURS)]}">&#9632; {html.escape(name)}</span> '
            for i, (name, _) in enumerate(series)]
    return "".join(out) + f" ({unit})</p>"


def write_page(path, figures, parts, tables):
    page = ['<!doctype html><meta charset="utf-8"><title>soak</title><style>body{font:14px/1.4 sans-serif;max-width:960px;'
            'margin:2em auto;padding:0 1em}svg{width:100%}svg text{font-size:11px;fill:#444}td,th{padding:0 .7em;'
            'text-align:right}td:first-child,th:first-child{text-align:left}</style>',
            f"<h1>Soak</h1><pre>{html.escape(json.dumps(figures, indent=1))}</pre>"]
    for title, rows in tables:
        if rows:
            page.append(f"<h3>{html.escape(title)}</h3><table><tr>" + "".join(f"<th>{n}</th>" for n in rows[0]) + "</tr>")
            page += ["<tr>" + "".join(f"<td>{'-' if v is None else html.escape(str(v))}</td>" for v in r.values()) + "</tr>"
                     for r in rows]
            page.append("</table>")
    for part in parts:
        commits = [(c["wall_us"] * 1e-6 - part.began_wall, c["participants"]) for c in part.commits]
        names = sorted({s[1] for s in part.samples})
        page.append(f"<h2>{part.name}</h2>")
        page.append(chart("Participants of each committed round, and live workers", "workers",
                          [("committed", commits), ("live", part.live)], part.faults.all))
        page.append(chart("Resident memory", "MiB", [
            (n, [(s, r / 2**20) for s, who, _, r, _ in part.samples if who == n]) for n in names], part.faults.all))
        page.append(chart("Descriptors", "open", [
            (n, [(s, d) for s, who, _, _, d in part.samples if who == n]) for n in names], part.faults.all))
    with open(path, "w") as f:
        f.write("".join(page))


# --- the end ---

def participation_rows(parts):
    rows = []
    for part in parts:
        live = [v for _, v in part.live]
        began = [part.rosters[c["round"]] for c in part.commits if c["round"] in part.rosters]
        done = [c["participants"] for c in part.commits]
        rows.append({"part": part.name, "rounds": len(done), "live_mean": round(statistics.fmean(live), 2),
                     "participating_mean": round(statistics.fmean(began or [0]), 2),
                     "committed_mean": round(statistics.fmean(done or [0]), 2),
                     "committed_distribution": " ".join(f"{n}:{k}" for n, k in sorted(Counter(done).items())),
                     "second_attempts": sum(c["attempt"] > 1 for c in part.commits)})
    return rows


def report(a, calm, rough, natural_per_hour):
    ratio = goodput(rough) / goodput(calm)
    speedup = a.faults_per_hour / natural_per_hour
    lost = losses(calm, rough, a.workers)
    usage = usage_rows(calm) + usage_rows(rough)
    wrong = [f"{p.name}: {w}" for p in (calm, rough) for w in p.wrong]
    leaks = [f"{r['part']}: {r['process']} grows" for r in usage if r["leak"]]
    by_kind = Counter(f.kind for f in rough.faults.all)
    figures = {
        "rounds": len(rough.commits), "rounds_fault_free": len(calm.commits), "faults": len(rough.faults.all),
        "faults_per_hour": round(a.faults_per_hour, 1), "acceleration": round(speedup, 2),
        "goodput_tokens_per_s": round(goodput(rough), 1), "goodput_fault_free": round(goodput(calm), 1),
        "goodput_ratio": round(ratio, 4),
        "goodput_ratio_at_natural_rate": round(1 - (1 - ratio) / speedup, 4) if speedup > 1 else round(ratio, 4),
        "committed_share": round(committed_share(rough, a.workers), 4),
        "full_participation": round(full_share(rough, a.workers), 4),
        "full_participation_fault_free": round(full_share(calm, a.workers), 4),
        "reunited_after_s": rough.reunited_s, "rounds_with_equal_states": calm.compared + rough.compared,
        "full_states_vouched_for": calm.vouched + rough.vouched, "wrong": wrong, "leaks": leaks,
        "load_average": [round(statistics.fmean(p.loads), 1) for p in (calm, rough)]}
    tables = [("participation", participation_rows((calm, rough))), ("what was lost to what", lost), ("processes", usage)]
    for title, rows in tables:
        table(title, rows)
    print("\nfaults: " + ", ".join(f"{n} x {ABOUT[k]}" for k, n in sorted(by_kind.items())))
    write_csv(os.path.join(a.out, "samples.csv"), (calm, rough))
    write_page(os.path.join(a.out, "soak.html"), figures, (calm, rough), tables)
    ok = not wrong and not leaks
    goal = figures["goodput_ratio_at_natural_rate"] >= GOAL
    if ratio > NOISE:
        figures["verdict"] = "failed" if not ok else "inconclusive: other work on this machine moved the figures more than the faults"
    else:
        figures["verdict"] = "failed" if not ok else "passed" if goal else "below the goal"
    print(json.dumps({"soak": "end", **figures}))
    if speedup > 1:
        print(f"\nFaults came {speedup:.1f} times as often as 125 an hour for 32 replicas. Goodput {ratio:.1%} of the fault-free "
              f"run; at the natural rate, when each costs the same, {figures['goodput_ratio_at_natural_rate']:.1%}.")
    print(f"{figures['verdict']}: goodput {ratio:.1%} of fault-free (goal {GOAL:.0%}), full participation in "
          f"{figures['full_participation']:.1%} of rounds, {figures['committed_share']:.1%} of all contributions; charts: {a.out}/soak.html")
    return 0 if figures["verdict"] == "passed" else 1
