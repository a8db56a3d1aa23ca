"""Puts the computer of a home to sleep, and wakes it after what it takes for an hour.

Its worker is rivulet-worker-sleeper, whose clocks are told how long it slept (sleeper_clock.c), and is stopped meanwhile.
Its line is cut once what it had sent is acknowledged, so that its kernel, too, has no timer that runs: it finds its
connections as it left them. By then its router has forgotten them, and everybody else's end of them is destroyed, as an
hour of silence does.
"""
import os
import signal
import struct
import subprocess
import time

import private

SLEPT_S = 3600
SETTLE_S = 0.3
NS = 1_000_000_000


def _states(pid):
    """Yields the state of each thread."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/stat") as f:
            yield f.read().rpartition(") ")[2][0]


class Sleeper:
    """One host and its worker."""

    def __init__(self, path):
        self.path, self.stopped_at, self.missed_ns, self.gained_ns = path, None, 0, 0
        self._write()

    def _write(self):
        """In place: the worker maps the file."""
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        os.pwrite(fd, struct.pack("<qq", self.missed_ns, self.gained_ns), 0)
        os.close(fd)

    def stop(self, worker):
        worker.send_signal(signal.SIGSTOP)
        while set(_states(worker.pid)) != {"T"}:
            time.sleep(0.001)
        self.stopped_at = time.monotonic()

    def wake(self, worker):
        stood_ns = int((time.monotonic() - self.stopped_at) * NS)
        self.missed_ns += stood_ns
        self.gained_ns += max(0, SLEPT_S * NS - stood_ns)
        self._write()
        worker.send_signal(signal.SIGCONT)


def destroy_connections(names, addresses):
    """Ends every connection with one of these addresses (none: with any) in these namespaces, also what is left of closed
    ones."""
    wanted = " or ".join(f"dst {address}" for address in addresses)
    for name in names:
        with private.inside(name):
            subprocess.run(["ss", "-K", "-a", "-t", *wanted.split()], capture_output=True, check=True)


def fall_asleep(homes, home, sleepers):
    """sleepers: [(Sleeper, worker)] of the home."""
    for sleeper, worker in sleepers:
        sleeper.stop(worker)
    time.sleep(SETTLE_S)
    homes.line(home, "cut")


def wake(homes, home, sleepers):
    others = [*homes.servers, *(h.name for other in homes.homes if other is not home for h in other.hosts)]
    destroy_connections(others, {home.public_v4(), *(h.v6 for h in home.hosts)} - {None})
    homes.forget(home)
    homes.line(home, "heal")
    for sleeper, worker in sleepers:
        sleeper.wake(worker)
