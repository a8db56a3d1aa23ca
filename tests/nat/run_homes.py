#!/usr/bin/env python3
"""Runs Rivulet in homes behind routers, and tells who met, how fast, and which rounds were committed.

    run_homes.py BIN_DIR [--delay MS] [--rate MBIT] [--seconds S] [--rounds N] [--dir DIR] [--do SECONDS:COMMAND]... HOME...

HOMES are those of homes.py: one worker for each host, started as a volunteer would. The coordinator has a public IPv4 and
IPv6 address. COMMAND is `forget HOME`, `move HOME`, `cut HOME` or `heal HOME`, that many seconds after the first commit
(or 60 s after the start, where there is none). Logs stay in DIR. Prints a line of JSON, and the same for people. Needs root.
"""
import argparse
import ipaddress
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import private
from homes import Homes, answer

PORT = 7433
NAME = "coordinator.test"
START_S = 60
LOOK_S = 0.1
ESTABLISHED = "01"
CONFIG = {"n-layer": 2, "n-head": 2, "n-embd": 64, "context": 16, "batch": 1, "data-shards": 4, "min-workers": 2,
          "steps-per-round": 2, "rounds": 1000000, "snapshot-every": 16}


def read_events(path):
    """Returns the JSON lines of a log; the last one may be incomplete."""
    events = []
    with open(path, "rb") as f:
        for line in f.read().split(b"\n"):
            try:
                events.append(json.loads(line))
            except ValueError:
                pass  # plain text, or not yet whole
    return [e for e in events if isinstance(e, dict)]


def name_the_coordinator(server):
    """Gives it a name with both addresses, as a run on the internet has. Only programs in the private place see it."""
    shutil.copy("/etc/hosts", "/run/hosts")
    with open("/run/hosts", "a") as f:
        f.write(f"{server.v4} {NAME}\n{server.v6} {NAME}\n")
    subprocess.run(["mount", "--bind", "/run/hosts", "/etc/hosts"], check=True)


def established(host):
    """Returns the remote (address, port) of every established TCP connection in the host's namespace."""
    found = set()
    with private.inside(host.name):
        for name, width in (("tcp", 4), ("tcp6", 16)):
            with open(f"/proc/thread-self/net/{name}") as f:
                for fields in (line.split() for line in list(f)[1:]):
                    remote, port = fields[2].split(":")
                    if fields[3] == ESTABLISHED:
                        found.add((read_address(bytes.fromhex(remote), width), int(port, 16)))
    return found


def read_address(words, width):
    """The kernel prints words of 32 bits in this machine's order."""
    packed = b"".join(words[i:i + 4][::-1] for i in range(0, width, 4)) if sys.byteorder == "little" else words
    address = ipaddress.ip_address(packed)
    return str(getattr(address, "ipv4_mapped", None) or address)


class Links:
    """Who is connected with whom, by the sockets of the hosts: nothing is taken from what Rivulet logs. A pair is
    linked when each has an established connection with an address of the other; behind one carrier's router two homes
    look alike. Connections with the relay are counted apart."""

    def __init__(self, homes):
        self.homes, self.hosts = homes, [(home, host) for home in homes.homes for host in home.hosts]
        self.first, self.last, self.relayed = {}, set(), {}

    def addresses(self, home, host):
        return {host.v4, host.v6, home.public_v4()} - {None}

    def look(self, now):
        peers = {host.name: {address for address, _ in established(host)} for _, host in self.hosts}
        relays = {self.homes.servers["relay"].v4, self.homes.servers["relay"].v6}
        for name, remote in peers.items():
            if remote & relays:
                self.relayed.setdefault(name, now)
        self.last = {f"{a[1].name}-{b[1].name}" for a, b in itertools.combinations(self.hosts, 2)
                     if peers[a[1].name] & self.addresses(*b) and peers[b[1].name] & self.addresses(*a)}
        for pair in self.last:
            self.first.setdefault(pair, now)


class Run:
    def __init__(self, bin_dir, directory, homes):
        self.bin, self.dir, self.homes = os.path.abspath(bin_dir), directory, homes
        self.hosts = [(home, host) for home in homes.homes for host in home.hosts]
        self.workers, self.links = [], Links(homes)

    def _coordinator(self, *args):
        argv = [f"{self.bin}/rivulet-coordinator", *args]
        with private.inside("coordinator"):
            return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    def _log(self, name):
        return open(f"{self.dir}/{name}.out", "wb")

    def start(self):
        run_dir, text = f"{self.dir}/coordinator", f"{self.dir}/text"
        with open(f"{self.dir}/run.conf", "w") as f:
            f.writelines(f"{key} = {value}\n" for key, value in CONFIG.items())
        with open(text, "w") as f:
            f.write("".join(f"{i} small streams are one in the river\n" for i in range(40000)))
        self._coordinator("new-run", "--dir", run_dir, "--config", f"{self.dir}/run.conf")
        with self._log("coordinator") as log:
            self.homes.start([f"{self.bin}/rivulet-coordinator", "serve", "--dir", run_dir, "--listen", f"[::]:{PORT}",
                              "--advertise", f"{NAME}:{PORT}"], "coordinator", stdout=log, stderr=log)
        self.wait(lambda: os.path.exists(f"{run_dir}/listen"), "the coordinator's start")
        links = self._coordinator("invite", "--dir", run_dir, "--count", str(len(self.hosts))).split()
        for (_, host), link in zip(self.hosts, [l for l in links if l.startswith("rivulet://")]):
            with self._log(host.name) as log:
                argv = [f"{self.bin}/rivulet-worker", link, "--dir", f"{self.dir}/{host.name}", "--data", text, "--threads",
                        "1", "--eval-every", "0", "--name", host.name, "--log-file", f"{self.dir}/{host.name}.log"]
                self.workers.append(self.homes.start(argv, host.name, stdout=log, stderr=log))

    def wait(self, condition, what):
        end = time.monotonic() + START_S
        while not condition():
            if time.monotonic() > end:
                raise RuntimeError(f"{what} did not happen within {START_S} s; logs are in {self.dir}")
            time.sleep(0.05)

    def watch(self, seconds, rounds, commands):
        """Waits for so many seconds, or rounds, and carries out the commands. Ends the workers: their logs are whole."""
        start = time.monotonic()
        todo = sorted(commands)
        zero, done = None, 0
        while time.monotonic() < start + seconds and done < (rounds or done + 1):
            done = len(self.commits())
            if zero is None and (done or time.monotonic() > start + START_S):
                zero = time.monotonic()
            while zero is not None and todo and time.monotonic() >= zero + todo[0][0]:
                answer(self.homes, todo.pop(0)[1])
            self.links.look(time.time())
            time.sleep(LOOK_S)
        for worker in self.workers:
            worker.kill()
            worker.wait()

    def commits(self):
        path = f"{self.dir}/coordinator/rounds.jsonl"
        return read_events(path) if os.path.exists(path) else []

    # ---- what came of it ----

    def _facts_of(self, host):
        """Returns (time of its start, rounds that it took part in); None: it did not start."""
        events = read_events(f"{self.dir}/{host.name}.log")
        started = [e for e in events if e["event"] == "started"]
        if not started:
            print(f"{host.name} did not start: {events[-1]['text'] if events else 'it logged nothing'}", file=sys.stderr)
            return None
        return started[0]["t"], {e["round"] for e in events if e["event"] == "round" and e.get("exchange_tx_bytes", 0) > 0}

    def report(self):
        facts = {host.name: self._facts_of(host) for _, host in self.hosts}
        commits = self.commits()
        begin = max((f[0] for f in facts.values() if f), default=0)
        times = [c["wall_us"] / 1e6 - begin for c in commits]
        return {"homes": [home.spec for home in self.homes.homes], "rounds": len(commits),
                "seconds_to_first_commit": round(times[0], 2) if times else None,
                "seconds_to_last_commit": round(times[-1], 2) if times else None,
                "longest_gap_s": round(max((b - a for a, b in zip(times, times[1:])), default=0), 2),
                "participants": round(statistics.mean(c["participants"] for c in commits), 2) if commits else 0,
                "rounds_of": {name: len(f[1]) if f else None for name, f in facts.items()},
                "seconds_to_link": {pair: self._seconds(facts, pair) for pair in
                                    (f"{a}-{b}" for a, b in itertools.combinations(facts, 2))},
                "linked_at_the_end": sorted(self.links.last), "with_the_relay": sorted(self.links.relayed),
                "bystander_packets": self.homes.bystander_packets()}

    def _seconds(self, facts, pair):
        """Returns from the start of the later one to the first link; None: no link."""
        ends = [facts[name] for name in pair.split("-")]
        if pair not in self.links.first or None in ends:
            return None
        return round(max(0.0, self.links.first[pair] - max(start for start, _ in ends)), 2)


def print_report(r):
    print(json.dumps(r))
    seconds = r["seconds_to_link"]
    linked = sum(s is not None for s in seconds.values())
    print(f"homes: {' '.join(r['homes'])}")
    print(f"  {r['rounds']} rounds committed with {r['participants']} participants on average; the first after "
          f"{r['seconds_to_first_commit']} s, the last after {r['seconds_to_last_commit']} s; the longest gap "
          f"{r['longest_gap_s']} s")
    print(f"  rounds that each took part in: {r['rounds_of']}")
    print(f"  {linked} of {len(seconds)} pairs linked ({len(r['linked_at_the_end'])} at the end), seconds: {seconds}")
    print(f"  connected with the relay: {r['with_the_relay']}; packets to the bystander: {r['bystander_packets']}", flush=True)


def read_command(text):
    at, _, command = text.partition(":")
    return float(at), command


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", metavar="BIN_DIR")
    parser.add_argument("homes", nargs="+", metavar="HOME")
    parser.add_argument("--delay", type=float, default=20, metavar="MS", help="from a site to another (20)")
    parser.add_argument("--rate", type=float, default=0, metavar="MBIT", help="of a line, each way (0: unlimited)")
    parser.add_argument("--seconds", type=float, default=60, help="from the start of the workers (60)")
    parser.add_argument("--rounds", type=int, default=0, metavar="N", help="end after so many, and exit with 1 before it")
    parser.add_argument("--participants", type=float, default=0, metavar="N", help="exit with 1 with fewer on average")
    parser.add_argument("--dir", help="for logs; must not exist (default: a temporary one, removed at the end)")
    parser.add_argument("--do", type=read_command, action="append", default=[], metavar="SECONDS:COMMAND")
    args = parser.parse_args(argv)
    private.enter()
    directory = args.dir or tempfile.mkdtemp(prefix="rivulet-homes-")
    os.makedirs(directory, exist_ok=not args.dir)
    homes = Homes(args.bin_dir, args.homes, args.delay, args.rate)
    try:
        name_the_coordinator(homes.servers["coordinator"])
        run = Run(args.bin_dir, directory, homes)
        run.start()
        run.watch(args.seconds, args.rounds, args.do)
        report = run.report()
        print_report(report)
        return int(report["rounds"] < args.rounds or report["participants"] < args.participants)
    finally:
        homes.close()
        if not args.dir:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
