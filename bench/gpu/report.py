"""Tables for people, from the records of results.jsonl at any moment: faults come first."""
from models import MODELS, TINY, find, peak_of
from results import latest

BAD = ("failed", "crashed", "timed out")
STEP_ORDER = ("inventory", "operations", "graphs", "speed", "profile", "peers", "sanitizer", "shared")
TOP_KERNELS = 12


def failed(records):
    return any(r["status"] in BAD for r in latest(records).values())


def cell(value, form="{}"):
    return form.format(value) if value is not None else "-"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(w).replace("|", "/") for w in row) + " |" for row in rows] + [""]


class View:
    """The records, by step."""

    def __init__(self, records):
        self.items = latest(records)
        self.sessions = [r for r in records if "session" in r]
        self.emulated = any(s.get("emulated") for s in self.sessions)
        machine = self.data("inventory", "machine")
        told = [s["peak_tflops"] for s in self.sessions if s.get("peak_tflops")]
        self.gpu = machine.get("gpu")
        self.peak = told[-1] if told else peak_of(self.gpu)

    def data(self, step, item):
        return (self.items.get((step, item)) or {}).get("data") or {}

    def of(self, step):
        return [r for (s, _), r in self.items.items() if s == step]

    def models(self):
        return TINY if self.emulated else MODELS

    def mfu(self, row):
        model = find(row.get("model", ""))
        return model.mfu(row["batch"], row.get("ms"), self.peak) if model and row.get("batch") else None


# --- what is wrong ---


def _below_goal(view):
    found = []
    for model in view.models():
        for k, batch in enumerate(model.batches):
            ours = view.data("speed", "%s B%d" % (model.name, batch))
            torch = view.data("peers", "PyTorch, %s B%d" % (model.name, batch))
            mfu = view.mfu(ours) if ours else None
            if model.goal and mfu is not None and mfu < model.goal[0]:
                found.append(("speed", "%s B%d" % (model.name, batch), "below the goal",
                              "MFU %.1f %%, goal %.0f %%" % (100 * mfu, 100 * model.goal[0])))
            if model.goal and ours.get("ms") and torch.get("ms") and torch["ms"] / ours["ms"] < model.goal[1]:
                found.append(("peers", "%s B%d" % (model.name, batch), "below the goal",
                              "PyTorch's time is %.2f of ours, goal %.2f" % (torch["ms"] / ours["ms"], model.goal[1])))
    return found


def _unfavourable(view):
    rows = [(r["step"], r["item"], r["status"], r.get("text") or "") for r in view.items.values() if r["status"] in BAD]
    rows += _below_goal(view)
    rows += [(r["step"], r["item"], "interrupted" if r["status"] == "began" else r["status"], r.get("text") or "")
             for r in view.items.values() if r["status"] in ("began", "not run", "skipped")]
    if not rows:
        return ["Nothing failed, and nothing was skipped.", ""]
    return ["## Failed, below its goal, or not done", ""] + table(("step", "item", "", "why"), rows)


def _overview(view):
    rows = []
    for step in STEP_ORDER:
        items = view.of(step)
        count = {}
        for r in items:
            count[r["status"]] = count.get(r["status"], 0) + 1
        rows.append((step, ", ".join("%d %s" % (n, s) for s, n in sorted(count.items())) or "not begun",
                     "%.0f" % sum(r.get("seconds") or 0 for r in items)))
    return table(("step", "items", "s"), rows)


# --- inventory ---


def _inventory(view):
    machine, libraries = view.data("inventory", "machine"), view.data("inventory", "libraries")
    rows = [(name, machine[name]) for name in ("driver", "memory", "clock", "power", "processor", "glibc", "nvcc")
            if machine.get(name)]
    rows += [("backend", libraries["describe"])] if libraries.get("describe") else []
    rows += [("libraries", libraries["libraries"])] if libraries.get("libraries") else []
    if libraries.get("nvidia_path"):
        rows.append(("libraries", "found only with pip's folders in LD_LIBRARY_PATH: %s" % libraries.get("first")))
    for name, who in (("ceilings", "ours"), ("ceilings, PyTorch", "PyTorch")):
        data = view.data("inventory", name)
        if data:
            rows.append(("ceilings, " + who, "copy %.4g GB/s, product %.4g Tflop/s" %
                         (data["copy_gb_per_s"], data["product_tflop_per_s"])))
    return ["## Machine", ""] + table(("", ""), rows) if rows else []


# --- operations ---


def _worst(record):
    if not record:
        return "-"
    worst = (record.get("data") or {}).get("worst") or {}
    text = " / ".join("%.2g" % worst[sizes]["worst"] if sizes in worst else "-" for sizes in ("small", "gpt2"))
    return text if record["status"] == "passed" else "**%s** %s" % (record["status"], text)


def _operations(view):
    items = {tuple(r["item"].split(", ", 1)): r for r in view.of("operations")}
    if not items:
        return []
    names = list(dict.fromkeys(name for name, _ in items))
    variants = list(dict.fromkeys(variant for _, variant in items))
    rows = [[name] + [_worst(items.get((name, v))) for v in variants] for name in names]
    out = ["## Operations: largest error as a share of its limit, small / GPT-2-sized", ""]
    return out + table(["operation"] + variants, rows) + _operation_times(items, names, variants)


def _operation_times(items, names, variants):
    times = {}
    for (name, variant), record in items.items():
        for t in (record.get("data") or {}).get("times") or []:
            times.setdefault((name, t["name"], t["shape"]), {})[variant] = t["ms"]
    if not times:
        return []
    rows = [list(key) + [cell(by.get(v), "{:.3f}") for v in variants] for key, by in times.items()]
    return ["Milliseconds of one call at the sizes of GPT-2:", ""] + table(["operation", "", "shape"] + variants, rows)


# --- speed ---


def _speed_row(view, model, batch):
    name = "%s B%d" % (model.name, batch)
    ours, torch = view.data("speed", name), view.data("peers", "PyTorch, " + name)
    llmc = view.data("peers", "llm.c, " + name)
    ms, peer = ours.get("ms"), torch.get("ms")
    goal = "%.0f %%, %.2f" % (100 * model.goal[0], model.goal[1]) if model.goal else "-"
    return (name, cell(ms, "{:.2f}"), cell(batch * model.context / ms * 1e3 if ms else None, "{:.0f}"),
            cell(view.mfu(ours) if ours else None, "{:.1%}"), cell(peer, "{:.2f}"),
            cell(view.mfu(torch) if torch else None, "{:.1%}"), cell(peer / ms if ms and peer else None, "{:.2f}"),
            cell(llmc.get("ms"), "{:.2f}"), goal)


def _speed(view):
    if not view.of("speed") and not view.of("peers"):
        return []
    rows = [_speed_row(view, m, batch) for m in view.models() for batch in m.batches]
    out = ["## One training step", ""]
    out += table(("model", "ours ms", "tokens/s", "MFU", "PyTorch ms", "MFU", "PyTorch/ours", "llm.c ms",
                  "goal: MFU, ratio"), rows)
    variants = [r for r in view.of("speed") if "," in r["item"] and (r.get("data") or {}).get("ms")]
    if variants:
        out += table(("variant", "ms"), [(r["item"], "%.2f" % r["data"]["ms"]) for r in variants])
    return out


def _phases(view):
    out = []
    for record in view.of("speed"):
        data = record.get("data") or {}
        if "phases" in data:
            rows = []
            for p in data["phases"]:
                unit, scale = ("GB/s", 1e9) if p["bound"] == "bytes" else ("Tflop/s", 1e12)
                rows.append((p["phase"], "%.3f" % p["ms"], "%.1f %s" % (p["work"] / (p["ms"] * 1e-3) / scale, unit)))
            out += ["## %s, each operation waited for" % record["item"], ""] + table(("phase", "ms", "rate"), rows)
    return out


def _kernels(view):
    out = []
    for record in view.of("profile"):
        data = record.get("data") or {}
        if data.get("kernels"):
            rows = [(k["kernel"], k["calls"], "%.3f" % k["ms"], "%.0f" % (k["gb"] / (k["ms"] * 1e-3) if k["ms"] else 0))
                    for k in data["kernels"][:TOP_KERNELS]]
            out += ["## %s: %d launches, %.2f ms" % (record["item"], data["calls"], data["ms"]), ""]
            out += table(("kernel", "launches", "ms", "GB/s of memory"), rows)
    return out


# --- the rest ---


def _checks(view):
    rows = []
    for record in view.of("graphs") + view.of("sanitizer") + view.of("shared"):
        data = record.get("data") or {}
        facts = ["%s %.2g (limit %g)" % ("worst", data["worst"], data["limit"])] if "limit" in data else []
        if "1" in data and "0" in data:
            facts.append("%.2f ms with graphs, %.2f without" % (data["1"]["ms"], data["0"]["ms"]))
        facts += ["state %s..." % data["state"][:16]] if "state" in data else []
        facts += ["replayed"] if "replay" in data else []
        rows.append((record["step"], record["item"], record["status"], "; ".join(facts)))
    return ["## Checks", ""] + table(("step", "item", "", ""), rows) if rows else []


def markdown(records):
    view = View(records)
    out = ["# GPU report: %s" % (view.gpu or "unknown"), ""]
    out += ["Calls that began: %s." % ", ".join(s["session"] for s in view.sessions), ""]
    if view.emulated:
        out += ["**Emulated: a trial of the steps. No figure here is one of speed.**", ""]
    for part in (_unfavourable, _overview, _inventory, _speed, _operations, _checks, _phases, _kernels):
        out += part(view)
    return "\n".join(out)
