"""A run of Rivulet in homes: a coordinator with a public address, relays, and a worker on each host, as volunteers start it."""
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field

import private
import sleep
from homes import answer
from level import Breaks
from links import Links, Logged, read_events

PORT, RELAY_PORT = 7433, 7435
NAME = "coordinator.test"
START_S = 60
LOOK_S = 0.1
CONDITION_LOOKS = 10  # looks between evaluations of a condition
CONFIG = {"n-layer": 2, "n-head": 2, "n-embd": 64, "context": 16, "batch": 1, "data-shards": 4, "min-workers": 2,
          "steps-per-round": 2, "rounds": 1000000, "snapshot-every": 16}
# Servers with a relay of their own, in the order of the list, beside the one in `serve`.
RELAYS = {"serve": [], "apart": ["relay"], "both": ["relay"], "two": ["relay", "coordinator"], "none": []}
KEY = re.compile(r"\b[0-9a-f]{64}\b")


def name_the_coordinator(server):
    """Gives it a name with both addresses, as a run on the internet has. Only programs in the private place see it."""
    if os.path.exists("/run/hosts"):
        return
    shutil.copy("/etc/hosts", "/run/hosts")
    with open("/run/hosts", "a") as f:
        f.write(f"{server.v4} {NAME}\n{server.v6} {NAME}\n")
    subprocess.run(["mount", "--bind", "/run/hosts", "/etc/hosts"], check=True)


@dataclass
class Choices:
    """What a run has of its own."""

    settings: dict = field(default_factory=dict)  # more lines of its configuration
    relay: str = "serve"  # one of RELAYS
    programs: dict = field(default_factory=dict)  # {host: (program, environment)} where it is not rivulet-worker
    evil_relay: str = ""  # RIVULET_EVIL_RELAY of the first relay of RELAYS
    hosts: list = None  # [(home, host)]; None: all
    port: int = PORT  # of its coordinator


class Run:
    """Ends with `homes`, which it borrows."""

    def __init__(self, bin_dir, directory, homes, choices=None):
        self.bin, self.dir, self.homes, self.choices = os.path.abspath(bin_dir), directory, homes, choices or Choices()
        self.hosts = self.choices.hosts or [(home, host) for home in homes.homes for host in home.hosts]
        self.workers, self.servers, self.sleepers, self.todo, self.ended = {}, [], {}, [], 0
        self.links, self.breaks = Links(homes, self.hosts), Breaks()

    def coordinator(self, *args):
        argv = [f"{self.bin}/rivulet-coordinator", *args]
        with private.inside("coordinator"):
            return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    def _log(self, name):
        return open(f"{self.dir}/{name}.out", "wb")

    # ---- its start ----

    def start(self):
        text, links = self.open()
        for (_, host), link in zip(self.hosts, links):
            self.start_worker(host, link, text)

    def open(self):
        """Starts the coordinator and relays. Returns the path of the text, and an invite for each host."""
        run_dir, text = f"{self.dir}/coordinator", f"{self.dir}/text"
        with open(f"{self.dir}/run.conf", "w") as f:
            f.writelines(f"{key} = {value}\n" for key, value in {**CONFIG, **self.choices.settings}.items())
        with open(text, "w") as f:
            f.write("".join(f"{i} small streams are one in the river\n" for i in range(40000)))
        run_key = KEY.search(self.coordinator("new-run", "--dir", run_dir, "--config", f"{self.dir}/run.conf"))[0]
        self._start_coordinator(run_dir, [self._start_relay(i, server, run_key)
                                          for i, server in enumerate(RELAYS[self.choices.relay])])
        links = self.coordinator("invite", "--dir", run_dir, "--count", str(len(self.hosts))).split()
        return text, [link for link in links if link.startswith("rivulet://")]

    def _start_coordinator(self, run_dir, relays):
        port, own = self.choices.port, "--relay" if self.choices.relay in ("serve", "both") else "--no-relay"
        argv = [f"{self.bin}/rivulet-coordinator", "serve", "--dir", run_dir, "--listen", f"[::]:{port}", "--advertise",
                f"{NAME}:{port}", own, *(["--relay-at", ",".join(relays)] if relays else [])]
        with self._log("coordinator") as log:
            self.servers.append(self.homes.start(argv, "coordinator", stdout=log, stderr=log))
        self.wait(lambda: os.path.exists(f"{run_dir}/listen"), "the coordinator's start")

    def _start_relay(self, i, server, run_key):
        """Returns HOST:PORT=KEY of a relay at that server."""
        evil = self.choices.evil_relay if i == 0 else ""
        name, port = f"relay-at-{server}", RELAY_PORT
        argv = [f"{self.bin}/{'rivulet-evil-relay' if evil else 'rivulet-coordinator'}", "relay", "--run-key", run_key,
                "--listen", f"[::]:{port}", "--state", f"{self.dir}/{name}"]
        with self._log(name) as log:
            self.servers.append(self.homes.start(argv, server, stdout=log, stderr=log,
                                                 env={**os.environ, "RIVULET_EVIL_RELAY": evil}))
        self.wait(lambda: self._listening(name), f"the start of {name}")
        return f"{self.homes.servers[server].v4}:{port}={self._listening(name)}"

    def _listening(self, name):
        """Returns the key of the relay once it listens."""
        return next((e["key"] for e in read_events(f"{self.dir}/{name}.out") if e["event"] == "listening"), None)

    def start_worker(self, host, link, text):
        program, environment = self.choices.programs.get(host.name, ("rivulet-worker", {}))
        if program == "rivulet-worker-sleeper":
            self.sleepers[host.name] = sleep.Sleeper(f"{self.dir}/{host.name}.slept")
            environment = {**environment, "RIVULET_SLEPT": f"{self.dir}/{host.name}.slept"}
        with self._log(host.name) as log:
            argv = [f"{self.bin}/{program}", link, "--yes", "--on-battery", "--on-metered", "--dir", f"{self.dir}/{host.name}", "--data", text, "--threads", "1",
                    "--eval-every", "0", "--name", host.name, "--log-file", f"{self.dir}/{host.name}.log"]
            self.workers[host.name] = self.homes.start(argv, host.name, stdout=log, stderr=log,
                                                       env={**os.environ, **environment})

    def wait(self, condition, what):
        end = time.monotonic() + START_S
        while not condition():
            if time.monotonic() > end:
                raise RuntimeError(f"{what} did not happen within {START_S} s; logs are in {self.dir}")
            time.sleep(0.05)

    # ---- its time ----

    def watch(self, seconds, rounds=0, commands=(), until=None):
        """Waits for so many seconds, or rounds, or until a condition, and carries out the commands, each (seconds from the
        first commit, text). Then stops the workers."""
        start = time.monotonic()
        self.todo, looks = sorted(commands), 0
        zero, done = None, 0
        while time.monotonic() < start + seconds and done < (rounds or done + 1):
            done = len(self.commits())
            if zero is None and (done or time.monotonic() > start + START_S):
                zero = time.monotonic()
            while zero is not None and self.todo and time.monotonic() >= zero + self.todo[0][0]:
                self.do(self.todo.pop(0)[1])
            self.links.look(time.time())
            looks += 1
            if until and looks % CONDITION_LOOKS == 0 and until():
                break
            time.sleep(LOOK_S)
        self.stop_workers()

    def stop_workers(self):
        """All at once: none of them logs that another one has gone."""
        self.ended = time.time()
        for what in (signal.SIGSTOP, signal.SIGKILL):
            for worker in self.workers.values():
                worker.send_signal(what)
        for worker in self.workers.values():
            worker.wait()

    def stop_servers(self):
        for server in self.servers:
            server.kill()
            server.wait()

    def logs(self):
        """Returns {host: Logged}."""
        return {host.name: Logged(f"{self.dir}/{host.name}.log", self.ended or time.time(), self.ahead_s(host))
                for _, host in self.hosts}

    def do(self, command):
        verb, number = command.split()
        home = self.homes.homes[int(number) - 1]
        if verb in ("sleep", "wake"):
            mine = [(self.sleepers[h.name], self.workers[h.name]) for h in home.hosts]
            (sleep.fall_asleep if verb == "sleep" else sleep.wake)(self.homes, home, mine)
        else:
            answer(self.homes, command)
        self.breaks.note(home, command)

    def ahead_s(self, host):
        """Returns by how much the host's wall clock is ahead."""
        return self.sleepers[host.name].gained_ns / sleep.NS if host.name in self.sleepers else 0

    def commits(self):
        return read_events(f"{self.dir}/coordinator/rounds.jsonl")
