"""What a break in a worker's line cost: how many rounds passed after the healing until it took part again, and whether it
kept its place in the run, what it had trained, and its links.

Rounds are counted by the coordinator's rounds.jsonl and the `apply` lines of the worker's trace.jsonl: the worker's own
clock, which may have jumped, has no part in it.
"""
import os
import time

from links import read_events


class Break:
    """One home's: from its first command (cut, forget, ...) to its last."""

    def __init__(self, home, command, began):
        self.home, self.commands, self.began, self.healed = home, [command], began, began

    def add(self, command, now):
        self.commands.append(command)
        self.healed = now


class Breaks:
    def __init__(self):
        self.of_home = {}

    def note(self, home, command):
        now = time.time()
        if home not in self.of_home:
            self.of_home[home] = Break(home, command, now)
        else:
            self.of_home[home].add(command, now)


def _trace(directory):
    return read_events(os.path.join(directory, "trace.jsonl"))


def _took_part(trace):
    return {e["round"] for e in trace if e["event"] == "apply" and e["participated"]}


def cost_of_break(brk, commits, directory, log, linked):
    """Returns the cost to one host. commits: of rounds.jsonl; log: its Logged; linked: the pairs at the end that have it."""
    trace = _trace(directory)
    part = _took_part(trace)
    rounds = [(c["round"], c["wall_us"] / 1e6) for c in commits]
    during = [r for r, t in rounds if brk.began <= t < brk.healed]
    after = [(r, t) for r, t in rounds if t >= brk.healed]
    back = next((i for i, (r, _) in enumerate(after) if r in part), None)
    first = min((r for r, t in rounds if t >= brk.began), default=0)
    return {
        "commands": brk.commands,
        "rounds_missed_before_healing": sum(r not in part for r in during),
        "rounds_missed_after_healing": back,  # until it took part; None: never
        "seconds_until_level": None if back is None else round(after[back][1] - brk.healed, 2),
        "rounds_missed_later": None if back is None else sum(r not in part for r, _ in after[back:-1]),
        "rounds_after": len(after),
        "place_kept": log.joins == 1,
        "training_kept": not any(e["event"] == "install" and e["round"] >= first for e in trace),
        "caught_up_with": sum(e["event"] == "apply" and not e["participated"] and e["round"] >= first for e in trace),
        "links_at_the_end": linked,
    }


def is_level(cost, most_rounds):
    back = cost["rounds_missed_after_healing"]
    return back is not None and back <= most_rounds and cost["place_kept"]


def share_of_computing(directory):
    """Returns the part of its time in which the worker trained, by metrics.jsonl; None: no rounds."""
    rounds = [e for e in read_events(os.path.join(directory, "metrics.jsonl")) if e.get("kind") == "round"]
    busy = sum(e["compute_us"] for e in rounds)
    total = sum(e["compute_us"] + e["reduce_us"] - e["overlap_us"] + e["idle_us"] for e in rounds)
    return round(busy / total, 2) if total else None


def bytes_relayed(directory):
    """Returns how many of its bytes went through relays."""
    rounds = [e for e in read_events(os.path.join(directory, "metrics.jsonl")) if e.get("kind") == "round"]
    return rounds[-1]["bytes_relayed"] if rounds else 0
