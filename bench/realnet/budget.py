"""The bytes of a day and a month, seen from outside: at the interface of a worker whose clock is moved by libfaketime while
it runs. Each round of this run is some 400 kB on its line in each direction."""
import json
import os
import shutil
import subprocess
import tempfile
import time

from cluster import Cluster
from shaped import ShapedNet

LIBRARY = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
CONFIG = {"n-layer": 2, "n-embd": 128, "n-head": 4, "context": 32, "batch": 1, "steps-per-round": 20, "rounds": 100000,
          "data-shards": 3, "min-workers": 2}
DAY_BYTES, MONTH_BYTES, QUIET_S, QUIET_BYTES = 12_000_000, 20_000_000, 10, 100_000


class Watched:
    """The last of three workers, with limits, at an interface that counts."""

    def __init__(self, bin_dir, where):
        self.bin, self.clock = bin_dir, f"{where}/clock"
        self.net = ShapedNet(bin_dir, 4, 0, 1, f"{where}/net.log")
        self.cluster = c = Cluster(bin_dir, f"{where}/run", self.net, CONFIG)
        self.move("+0")
        c.start_coordinator()
        c.add_workers(2)
        c.add_workers(1, ("--max-per-day", str(DAY_BYTES), "--max-per-month", str(MONTH_BYTES)),
                      env={"LD_PRELOAD": LIBRARY, "FAKETIME_TIMESTAMP_FILE": self.clock, "FAKETIME_NO_CACHE": "1",
                           "FAKETIME_DONT_FAKE_MONOTONIC": "1"})
        self.worker = c.workers[2]

    def move(self, offset):
        with open(f"{self.clock}.new", "w") as f:
            f.write(offset + "\n")
        os.rename(f"{self.clock}.new", self.clock)

    def status(self):
        done = subprocess.run(self.net.inside(self.worker.site) + [
            f"{self.bin}/rivulet-worker", "status", "--json", "--dir", f"{self.cluster.dir}/worker2"], capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else {"allowed": {"why": ""}, "given": {"rounds": 0}}

    def bytes(self):
        s = self.net.stats()
        return s["up"][self.worker.site - 1] + s["down"][self.worker.site - 1]

    def wait_why(self, why):
        self.cluster.wait(f"a pause by {why!r}", 240, lambda: self.status()["allowed"]["why"] == why, 0.2)

    def quiet_bytes(self):
        """Returns what passes in QUIET_S of a pause, in which the others go on."""
        before, commits = self.bytes(), len(self.cluster.commits())
        time.sleep(QUIET_S)
        passed = self.bytes() - before
        self.cluster.wait("rounds of the others", 120, lambda: len(self.cluster.commits()) > commits)
        return passed

    def close(self):
        if hasattr(self, "cluster"):
            self.cluster.close()
        self.net.close()


def stories(w):
    """Returns what was measured: bytes at the interface, and what the worker takes them for."""
    w.wait_why("bytes_today")
    day, told = w.bytes(), w.status()["allowed"]["bytes_today"]
    quiet = w.quiet_bytes()
    now = time.localtime()
    days_left = 32 - now.tm_mday  # at least: a month later than now is another month
    w.move("+1d" if now.tm_mday < 27 else "-1d")  # another day of this month
    w.cluster.wait("its next rounds", 60, lambda: w.status()["allowed"]["why"] == "")
    w.wait_why("bytes_this_month")
    month, quiet_month = w.bytes(), w.quiet_bytes()
    w.move(f"+{days_left + 1}d")
    given = w.status()["given"]["rounds"]
    w.cluster.wait("a round of the next month", 120, lambda: w.status()["given"]["rounds"] > given, 0.2)
    return {"day_bytes": day, "day_limit": DAY_BYTES, "day_told": told, "quiet_bytes": quiet, "month_bytes": month,
            "month_limit": MONTH_BYTES, "quiet_bytes_month": quiet_month}


def budget(a, say):
    if not os.path.exists(LIBRARY):
        say("budget", skipped="no libfaketime here: apt-get install faketime")
        return True
    where = tempfile.mkdtemp(prefix="rivulet-budget.")
    w = Watched(a.bin, where)
    try:
        m = stories(w)
    finally:
        w.close()
        shutil.rmtree(where, ignore_errors=True)
    met = (DAY_BYTES / 2 < m["day_bytes"] <= DAY_BYTES and m["month_bytes"] <= MONTH_BYTES and
           max(m["quiet_bytes"], m["quiet_bytes_month"]) <= QUIET_BYTES and abs(m["day_told"] / m["day_bytes"] - 1) < 0.1)
    say("budget", **m, met=met)
    return met
