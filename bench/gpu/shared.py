"""The last step: workers on the GPU and on the CPU share a run in bf16, which is then replayed from their records."""
import json
import subprocess
import time

import process
from checks import FIXED, small_model, write_text
from context import Failed, OutOfTime, tail
from step import Item

DEVICES = ("cuda", "cuda", "cpu")


class Run:
    """A coordinator and workers, all with algorithms that give the same bits every time."""

    def __init__(self, c):
        self.c, self.env, self.text = c, c.env(**FIXED), write_text(c)
        self.dir = c.fresh("shared")

    def _tool(self, *words):
        ended = self.c.run([self.c.bin / "rivulet-coordinator"] + list(words), 30)
        if ended.rc != 0:
            raise Failed("rivulet-coordinator %s: %s" % (words[0], tail(ended.err)))
        return ended.out

    def start(self, name, words):
        with open(self.dir / (name + ".log"), "wb") as log:
            return process.start(words, self.env, log, log)

    def wait_for(self, what, seconds, there):
        end = time.monotonic() + min(seconds, self.c.left_s())
        while not there():
            if self.c.left_s() <= 0:
                raise OutOfTime()
            if time.monotonic() > end:
                raise Failed("%s took more than %d s" % (what, seconds))
            time.sleep(0.05)

    def open(self):
        coordinator = self.dir / "coordinator"
        settings = dict(small_model(self.c), **{"steps-per-round": 2 if self.c.emulated else 20, "rounds": 3,
                                                "data-shards": len(DEVICES), "min-workers": len(DEVICES),
                                                "dtype": "bf16"})
        config = self.dir / "run.conf"
        config.write_text("".join("%s = %s\n" % pair for pair in settings.items()))
        self._tool("new-run", "--dir", coordinator, "--config", config)
        self.start("coordinator", [self.c.bin / "rivulet-coordinator", "serve", "--dir", coordinator, "--listen",
                                   "127.0.0.1:0"])
        self.wait_for("the coordinator", 30, (coordinator / "listen").exists)
        links = self._tool("invite", "--dir", coordinator, "--count", len(DEVICES)).split()
        if len(links) != len(DEVICES):
            raise Failed("invite printed %d links, not %d" % (len(links), len(DEVICES)))
        return [self.join(i, link) for i, link in enumerate(links)]

    def join(self, i, link):
        folder = self.dir / ("worker%d" % i)
        worker = self.start("worker%d" % i, [self.c.bin / "rivulet-worker", link, "--yes", "--on-battery", "--on-metered", "--dir", folder, "--data", self.text,
                                             "--device", DEVICES[i], "--threads", 1, "--eval-every", 0, "--listen",
                                             "127.0.0.1:0"])
        self.wait_for("worker %d's join" % i, 60, lambda: (folder / "run.conf").exists() or worker.poll() is not None)
        return worker

    def log_of(self, i):
        return (self.dir / ("worker%d.log" % i)).read_text(errors="replace")

    def finish(self, workers):
        for i, worker in enumerate(workers):
            try:
                status = worker.wait(max(1.0, min(120.0, self.c.left_s())))
            except subprocess.TimeoutExpired:
                if self.c.left_s() <= 0:
                    raise OutOfTime() from None
                raise Failed("worker %d (%s) did not finish: %s" % (i, DEVICES[i], tail(self.log_of(i)))) from None
            if status != 0:
                raise Failed("worker %d (%s): %s" % (i, DEVICES[i], tail(self.log_of(i))))

    def states(self):
        found = []
        for i in range(len(DEVICES)):
            lines = (self.dir / ("worker%d" % i) / "metrics.jsonl").read_text().splitlines()
            ends = [r for r in map(json.loads, lines) if r["kind"] == "end"]
            if not ends:
                raise Failed("worker %d has no end in its metrics" % i)
            found.append((ends[0]["state"], ends[0]["round"]))
        return found

    def replay(self):
        folders = [self.dir / ("worker%d" % i) for i in range(len(DEVICES))]
        ended = self.c.run([self.c.bin / "rivulet", "replay", "--data", self.text] + folders, 120, env=self.env)
        if ended.rc != 0:
            raise Failed("replay: %s" % (tail(ended.err + ended.out) or ended.how()))
        return tail(ended.out, 1)


def _shared(c):
    run = Run(c)
    run.finish(run.open())
    states = run.states()
    if len(set(states)) != 1:
        raise Failed("the states differ: %s" % states)
    data = {"devices": DEVICES, "rounds": states[0][1], "state": states[0][0]}
    try:
        data["replay"] = run.replay()
    except Failed as e:
        raise Failed(str(e), data) from None
    return data


def shared(_c):
    return [Item("cuda, cuda and cpu, replayed", _shared, 25)]
