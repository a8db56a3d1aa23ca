"""How much of their lines real workers use in an exchange of all the weights.

The limit is what the busiest line must take for the bytes that passed it, counted as they leave it, with retransmissions and
Ethernet headers. An exchange lasts until the last packet has left the last line, so delays and queues count; the first one, in
which everybody connects, does not.
"""
import bisect
import collections
import os
import re
import statistics
import subprocess
import threading
import time

SAMPLE_S = 0.01
PAUSE_S = 0.25  # without bulk: the exchange is over
TENTHS = 10
GIGA = 1e9
BULK = 0.05
BUSY_BYTES = 1 << 20
LOOK_S = 6.0  # more than an exchange and a pause
MODELS = {4: {"n-layer": 5, "n-embd": 256, "n-head": 8, "steps-per-round": 16},
          16: {"n-layer": 5, "n-embd": 512, "n-head": 8, "steps-per-round": 4}}
PARAMETERS = {4: 4016896, 16: 15898112}


def config(millions):
    """A model that computes next to nothing between two exchanges."""
    return {**MODELS[millions], "context": 8, "batch": 1, "rounds": 100000, "data-shards": 16}


def shape(a, net, workers, loss):
    for site in range(2, workers + 2):
        net.rate(site, a.up, a.down)
        net.buffer(site, a.buffer)
        net.loss(site, loss)


def idle_s():
    """Returns for how many seconds this machine's processors have had nothing to do, all together."""
    with open("/proc/stat") as f:
        idle, waiting = f.readline().split()[4:6]
    return (int(idle) + int(waiting)) / os.sysconf("SC_CLK_TCK")


class Sampler:
    """Counts every line all the time, in a thread of its own; closed at the end of the `with`."""

    def __init__(self, net):
        self.net, self.samples, self.over = net, [], threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self.over.wait(SAMPLE_S):
            s = self.net.stats()
            self.samples.append((s["us"] * 1e-6, s["up_wire"][1:], s["down_wire"][1:], sum(s["dropped"][1:]), idle_s()))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def moved(samples, i):
    """Returns the bytes since the sample before, on all uplinks or all downlinks: of the two, the most."""
    return max(sum(samples[i][k]) - sum(samples[i - 1][k]) for k in (1, 2))


def bursts(samples, least_bytes, up_bytes_per_s, pause_s=PAUSE_S):
    """Returns (first, last) samples of each stretch in which bulk passed, and in all at least that many bytes. Reports and
    votes are less than BULK of the uplinks."""
    found, first, last = [], None, None
    bulk = BULK * up_bytes_per_s * len(samples[0][1])
    for i in range(1, len(samples)):
        if moved(samples, i) > bulk * (samples[i][0] - samples[i - 1][0]):
            first, last = i - 1 if first is None else first, i
        if first is not None and samples[i][0] - samples[last][0] > pause_s:
            if sum(samples[last][1]) - sum(samples[first][1]) >= least_bytes:
                found.append((first, last))
            first = None
    return found


def tenths(samples, first, last, up_bytes_per_s):
    """Returns the use of all uplinks together in each tenth of the exchange."""
    t0, t1 = samples[first][0], samples[last][0]
    used, at = [], first
    for k in range(1, TENTHS + 1):
        end = at
        while end < last and samples[end][0] < t0 + (t1 - t0) * k / TENTHS:
            end += 1
        sent = sum(samples[end][1]) - sum(samples[at][1])
        used.append(round(sent / (len(samples[0][1]) * up_bytes_per_s * max(samples[end][0] - samples[at][0], 1e-9)), 2))
        at = end
    return used


def limit_s(samples, first, last, up_bytes_per_s, down_bytes_per_s):
    took = [(samples[last][k][i] - samples[first][k][i]) / rate
            for k, rate in ((1, up_bytes_per_s), (2, down_bytes_per_s)) for i in range(len(samples[0][1]))]
    return max(took)


def spanned(samples, spans):
    """Returns (first, last) samples of each (from, to)."""
    at = [s[0] for s in samples]
    return [(max(bisect.bisect(at, began) - 1, 0), min(bisect.bisect(at, ended), len(at) - 1)) for began, ended in spans]


def share(samples, first, last):
    """Returns the fewest and the most bytes that an uplink sent, over their mean."""
    sent = [samples[last][1][i] - samples[first][1][i] for i in range(len(samples[0][1]))]
    return min(sent) * len(sent) / sum(sent), max(sent) * len(sent) / sum(sent)


def measured(samples, up_mbit, down_mbit, stretches):
    """Returns {seconds, limit, use, tenths, lost, share, idle} of each exchange but the first; `stretches`: those of
    bursts() or spanned()."""
    up, down, got = up_mbit * 125000, down_mbit * 125000, []
    for first, last in stretches[1:]:
        seconds = samples[last][0] - samples[first][0]
        limit = limit_s(samples, first, last, up, down)
        got.append({"seconds": seconds, "limit": limit, "use": limit / seconds, "tenths": tenths(samples, first, last, up),
                    "lost": samples[last][3] - samples[first][3], "share": share(samples, first, last),
                    "idle": (samples[last][4] - samples[first][4]) / seconds / os.cpu_count()})
    return got


def roster_to_votes_s(commits):
    """Returns the median of the coordinator's records."""
    return round(statistics.median(c["reduce_us"] for c in commits[2:]) * 1e-6, 3)


def summary(got):
    if not got:
        raise RuntimeError("no exchange could be told from what passed the lines")
    middle = lambda key: round(statistics.median(x[key] for x in got), 3)
    return {"exchanges": len(got), "seconds": [round(x["seconds"], 2) for x in got], "limit_s": middle("limit"),
            "median_s": middle("seconds"), "use": middle("use"), "uses": [round(x["use"], 3) for x in got],
            "packets_lost": middle("lost"), "shares": [[round(v, 3) for v in x["share"]] for x in got],
            "uplinks_by_tenths": [round(statistics.median(x["tenths"][k] for x in got), 2) for k in range(TENTHS)],
            "processors_idle": middle("idle"), "load": round(os.getloadavg()[0], 1)}


def congestion_now(net, site):
    """Yields (addresses, congestion control) of each link of the site that has sent bulk, by ss(8)."""
    listed = subprocess.run(net.inside(site) + ["ss", "-tinH"], capture_output=True, text=True).stdout
    for ends, info in re.findall(r"^\S+\s+\d+\s+\d+\s+(.*\S)\s*\n\s+(.*bytes_sent:\d+.*)$", listed, re.M):
        if int(re.search(r"bytes_sent:(\d+)", info)[1]) >= BUSY_BYTES:
            yield ends, info.replace("ts sack ", "").split()[0]


def congestion(net, workers):
    """Returns how many links with bulk have which congestion control. A link that rests has BBR too (net/mesh/rest.c), so one
    that is seen with CUBIC within LOOK_S counts for that."""
    seen, end = collections.defaultdict(set), time.monotonic() + LOOK_S
    while time.monotonic() < end:
        for site in range(2, workers + 2):
            for ends, name in congestion_now(net, site):
                seen[site, ends].add(name)
    return dict(collections.Counter("cubic" if "cubic" in names else min(names) for names in seen.values()))


def router_s_per_gb(samples, cpu_s):
    """Returns the router's processor seconds over the bytes that left all uplinks."""
    return round(cpu_s * GIGA / (sum(samples[-1][1]) - sum(samples[0][1])), 3)


def watch(net, seconds, done):
    """Returns samples from now until `done` says so."""
    end = time.monotonic() + seconds
    with Sampler(net) as sampler:
        while not done():
            if time.monotonic() > end:
                raise RuntimeError(f"the exchanges were not over within {seconds} s")
            time.sleep(0.05)
        time.sleep(3 * PAUSE_S)
    return sampler.samples
