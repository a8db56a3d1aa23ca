"""One slow site of four under each policy for slow members.

Seconds from commit to commit, after the rounds in which lines are not known to be slow yet. The slow worker joins first, so that
it is in the first rosters.
"""
import collections
import statistics

import exchange

FIRST = 9  # three exchanges show a slow line, and in the first eight rounds downlinks are tried
POLICIES = {"wait": {}, "skip": {"slow-members": "skip"}, "coarser": {"slow-members": "coarser"},
            "coarser-feedback": {"slow-members": "coarser", "error-feedback": 0.95}, "part": {"slow-members": "part"},
            "part-feedback": {"slow-members": "part", "error-feedback": 0.95}}


def config(policy):
    return {**exchange.config(4), "steps-per-round": 1, "min-workers": 3, **POLICIES[policy]}


def shape(net, up, down, slow_up, slow_down):
    """The slow worker is at site 2."""
    for site in range(2, 6):
        net.rate(site, *((slow_up, slow_down) if site == 2 else (up, down)))
        net.buffer(site, 50)


def sent_as(events):
    """Returns how often the slow worker was to send less, by form."""
    forms = collections.Counter()
    for e in events:
        if e.get("event") == "sends_less":
            forms[e["codec"] or f"1 of {e['part']} chunks"] += e["round"] >= FIRST
    return dict(forms)


def summary(commits):
    seconds = [(b["wall_us"] - a["wall_us"]) * 1e-6 for a, b in zip(commits, commits[1:]) if b["round"] >= FIRST]
    took_part = sum(c["participants"] == 4 for c in commits if c["round"] >= FIRST)
    return {"rounds": len(seconds), "median_s": round(statistics.median(seconds), 2),
            "mean_s": round(statistics.mean(seconds), 2), "with_the_slow_one": took_part}
