"""Random faults of real processes and their lines: when, on which, for how long; each ends by itself."""
import random
import resource
import signal

BASE_PER_HOUR = 125 / 32  # for each replica
KINDS = ("kill", "freeze", "cut", "slow", "disk", "coordinator")
WEIGHTS = (4, 3, 3, 2, 1, 1)
SECONDS = {"kill": (1, 15), "freeze": (2, 20), "cut": (2, 20), "slow": (10, 30), "disk": (5, 20), "coordinator": (1, 10)}
ABOUT = {"kill": "kill -9, started again", "freeze": "SIGSTOP, SIGCONT", "cut": "line cut silently, healed",
         "slow": "line at a tenth of its rate", "disk": "writes fail (file size limit)",
         "coordinator": "coordinator killed (-9), started again"}
DISK_LIMIT_BYTES = 20000


class Fault:
    def __init__(self, kind, worker, start_s, seconds):
        self.kind, self.worker, self.start_s, self.until_s = kind, worker, start_s, start_s + seconds
        self.active = True

    def record(self):
        return {"kind": self.kind, "worker": self.worker.name if self.worker else None,
                "start_s": round(self.start_s, 2), "seconds": round(self.until_s - self.start_s, 2)}


class Faults:
    """Faults at the given rate (exponential gaps): one at a time for a worker, any number of workers at once."""

    def __init__(self, cluster, per_hour, rate_mbit, seed):
        self.c, self.per_hour, self.rate_mbit = cluster, per_hour, rate_mbit
        self.rng = random.Random(seed)
        self.all = []
        self.next_s = self._gap()

    def _gap(self):
        return self.rng.expovariate(self.per_hour / 3600) if self.per_hour > 0 else float("inf")

    def active(self):
        return [f for f in self.all if f.active]

    def step(self, now_s):
        """Ends faults that are over, begins those due; yields the latter."""
        for f in self.active():
            if now_s >= f.until_s:
                self._undo(f)
        while now_s >= self.next_s:
            self.next_s += self._gap()
            fault = self._draw(now_s)
            if fault:
                self.all.append(fault)
                self._begin(fault)
                yield fault

    def heal_all(self, now_s):
        for f in self.active():
            f.until_s = now_s
            self._undo(f)

    def _draw(self, now_s):
        kind = self.rng.choices(KINDS, WEIGHTS)[0]
        seconds = self.rng.uniform(*SECONDS[kind])
        hit = {f.worker for f in self.active()}
        if kind == "coordinator":
            return Fault(kind, None, now_s, seconds) if None not in hit else None
        free = [w for w in self.c.workers if w not in hit]
        return Fault(kind, self.rng.choice(free), now_s, seconds) if free else None

    def _limit_files(self, worker, limit):
        if worker.running:
            resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    def _begin(self, f):
        if f.kind == "kill":
            f.worker.kill9()
        elif f.kind == "freeze":
            f.worker.signal(signal.SIGSTOP)
        elif f.kind == "cut":
            self.c.net.cut(f.worker.site)
        elif f.kind == "slow":
            self.c.net.rate(f.worker.site, self.rate_mbit / 10, self.rate_mbit / 10)
        elif f.kind == "disk":
            self._limit_files(f.worker, DISK_LIMIT_BYTES)
        else:
            self.c.coordinator.kill9()

    def _undo(self, f):
        f.active = False
        if f.kind == "kill":
            f.worker.start()
        elif f.kind == "freeze":
            f.worker.signal(signal.SIGCONT)
        elif f.kind == "cut":
            self.c.net.heal(f.worker.site)
        elif f.kind == "slow":
            self.c.net.rate(f.worker.site, self.rate_mbit, self.rate_mbit)
        elif f.kind == "disk":
            self._limit_files(f.worker, resource.RLIM_INFINITY)
        else:
            self.c.start_coordinator()
