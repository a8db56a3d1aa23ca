#!/usr/bin/env python3
"""test_attack_coordinator.py BIN_DIR [SECONDS]: a coordinator tells its members to dial somebody else.

Three honest workers of a coordinator (evil_documents.c) whose signed documents name one address for every member, that of a
bystander on loopback, which closes what it accepts, and there is no relay. The workers cannot meet, so that they have every
reason to dial it on and on: without the bounds 1455 connections in 26 s. Each may dial an address that never showed a
member's key 10 times, then after 30 s, 1, 2, 4 min (net/mesh/book.h)."""
import os, socket, sys, threading, time

from attacked_run import Run

WORKERS = 3
FREE, PAUSES_S = 10, (30, 90, 210, 450)  # attempts at once; then one at each of these times
CONFIG = {"n-layer": 1, "n-head": 1, "n-embd": 32, "context": 16, "batch": 1, "steps-per-round": 2, "rounds": 1000000,
          "data-shards": WORKERS, "min-workers": WORKERS, "silence-ms": 4000}


class Bystander:
    """Counts the connections to a port that nobody ought to call."""

    def __init__(self):
        self.calls, self.socket = 0, socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.count, daemon=True).start()

    def count(self):
        while True:
            caller, _ = self.socket.accept()
            self.calls += 1
            caller.close()


class Misled(Run):
    """A run whose coordinator names `aim` as the address of everybody."""

    def __init__(self, binaries, text, aim):
        super().__init__(binaries, text, CONFIG)
        self.aim, self.text = aim, self.path("text.txt")
        with open(text) as f, open(self.text, "w") as to:
            to.write(f.read() * 400)

    def serve(self):
        self.start("coordinator", os.path.join(self.bin, "rivulet-evil-coordinator"), "serve", "--dir", self.path("run"),
                   "--listen", "127.0.0.1:0", "--no-relay", env={"RIVULET_EVIL_COORDINATOR": f"aim={self.aim}"})
        self.wait(lambda: os.path.exists(self.path("run/listen")), "the coordinator listens")


def most(seconds):
    """Connections that all workers together may make in that time, each to two others."""
    return WORKERS * (WORKERS - 1) * (FREE + sum(at <= seconds for at in PAUSES_S) + 1)


def main(argv):
    seconds, text = float(argv[2]) if len(argv) > 2 else 25, os.path.abspath(__file__)
    bystander = Bystander()
    run = Misled(os.path.abspath(argv[1]), text, f"127.0.0.1:{bystander.port}")
    try:
        run.serve()
        began = time.monotonic()
        for i in range(WORKERS):
            run.join(i)
        run.wait(lambda: bystander.calls > 0, "the bystander is called at all")
        time.sleep(seconds)
        calls, took = bystander.calls, time.monotonic() - began
        alive = sum(p.poll() is None for p in run.processes[1:])
        good = calls <= most(took) and alive == WORKERS
        print(f"{'ok' if good else 'FAILED'}: {calls} connections to a bystander in {took:.0f} s (at most {most(took)}), "
              f"{alive} of {WORKERS} workers go on")
        return 0 if good else 1
    finally:
        run.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
