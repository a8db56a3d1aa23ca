#!/usr/bin/env python3
"""Each kind of home is told before its join how others reach it, by real programs (docs/nat.md): test_nat_reach.py BIN_DIR

One worker is in the run alone, a second one joins; these two test all others, which come at once. Needs root; exits with
77 where homes cannot be made.
"""
import json
import os
import shutil
import signal
import sys
import tempfile
import time

import private
from homes import Homes
from links import read_events
from runs import Run, name_the_coordinator

# Home, what its worker is told, and a part of the text. Without a mapping the carrier's router of `double` lets everybody
# in, the home's does not; with the mapping that its own router makes, both do, at the port that a relay sees.
ALONE = ("open", "not known", "no member at another address could test it")
TOLD = [
    ("open", "direct", "directly, at 11.86.0.{site}:7434"),
    ("full-cone", "direct", "directly, at 11.86.0.{site}:7434"),
    ("masquerade", "punch", "forward TCP port 7434 in your router to this machine (192.168.1.10)"),
    ("symmetric", "relay", "your router is symmetric"),
    ("upnp", "mapped", "the port that your router mapped, 11.86.0.{site}:7434"),
    ("double-upnp+claims", "direct", "directly, at 11.86.0.{site}:"),
    ("double", "punch", "forward TCP port 7434 in your router to this machine (192.168.1.10)"),
    ("firewall", "punch", "let TCP port 7434 in through the firewall of this machine or its router (11.86."),
]


class Joins(Run):
    """Its workers come one after the other."""

    def open(self):
        self.text, self.invites = super().open()

    def join(self, home):
        self.start_worker(home.hosts[0], self.invites.pop(), self.text)

    def event(self, home, name):
        events = read_events(f"{self.dir}/{home.hosts[0].name}.log")
        return next((e for e in events if e["event"] == name), None)

    def live(self):
        """Returns how many members the coordinator has heard of lately: they can be asked to test."""
        status = json.loads(self.coordinator("status", "--dir", f"{self.dir}/coordinator", "--json"))
        return sum(m["alive"] for m in status["members"])


def check(run, home, told, faults):
    """Compares what one worker was told, and when, with the table."""
    spec, reach, text = told
    event, joined = run.event(home, "reach"), run.event(home, "joined")
    text = text.format(site=home.site)
    if event["reach"] != reach or text not in event["text"]:
        faults.append(f"{spec}: told '{event['reach']}' ({event['text']}), must be '{reach}' ({text})")
    if event["symmetric"] != (spec == "symmetric"):
        faults.append(f"{spec}: symmetric is {event['symmetric']}")
    if event["mapping_refuted"] != spec.endswith("+claims"):
        faults.append(f"{spec}: mapping_refuted is {event['mapping_refuted']}")
    stdin = os.readlink(f"/proc/{run.workers[home.hosts[0].name].pid}/fd/0")
    if stdin != os.devnull:
        faults.append(f"{spec}: its standard input is {stdin}, was {os.devnull}")
    if joined["t"] < event["t"]:
        faults.append(f"{spec}: joined before it was told")
    print(f"{spec}: {event['text']}", flush=True)


def begin(run, home, live):
    run.join(home)
    run.wait(lambda: run.event(home, "started") and run.live() == live, f"the start of worker {live}")


def is_interrupted(run, home, *probers):
    """Ctrl-C ends a worker that waits for probers which never answer; its invite is not spent."""
    name = home.hosts[0].name
    for prober in probers:
        run.workers[prober.hosts[0].name].send_signal(signal.SIGSTOP)
    run.join(home)
    run.wait(lambda: os.path.exists(f"{run.dir}/{name}/identity.key"), "the last worker's key")
    time.sleep(1)  # it has asked by then, or ends even sooner
    begun = time.monotonic()
    run.workers[name].send_signal(signal.SIGINT)
    run.workers[name].wait()
    seconds = time.monotonic() - begun
    print(f"asked to end, the last worker ended after {seconds:.1f} s", flush=True)
    return run.event(home, "joined") is None


def test(run, homes):
    faults = []
    alone, second, *others, last = homes.homes
    run.open()
    begin(run, alone, 1)
    begin(run, second, 2)
    for home in others:
        run.join(home)
    for home in others:
        run.wait(lambda home=home: run.event(home, "joined"), f"the join of {home.spec}")
    for home, told in zip([alone, second, *others], [ALONE, *TOLD]):
        check(run, home, told, faults)
    if not is_interrupted(run, last, alone, second, *others):
        faults.append("Ctrl-C during the test: the worker joined, or went on")
    if homes.bystander_packets() != 0:
        faults.append(f"{homes.bystander_packets()} packets to the bystander")
    return faults


def main(argv):
    private.enter(("unshare", "ip", "nft", "conntrack", "miniupnpd"))
    directory = tempfile.mkdtemp(prefix="rivulet-reach-")
    homes = Homes(argv[0], ["open", *(told[0] for told in TOLD), "masquerade"])
    try:
        name_the_coordinator(homes.servers["coordinator"])
        faults = test(Joins(argv[0], directory, homes), homes)
        print("\n".join(faults), flush=True)
        return int(bool(faults))
    finally:
        homes.close()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
