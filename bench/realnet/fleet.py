"""What N members cost the coordinator: fake members with keys of their own over real mutual TLS, a hundred in a
process (bench/bench_fleet.c), at a real rivulet-coordinator. They join, report at every change and every heartbeat,
wait for documents and vote, as workers do; their training and averaging are pauses. The coordinator's processor time
is the kernel's; bytes are those of the TLS connections. With --joins only their joining is measured, all at once.
"""
import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

from process import EventLog, Program, start_child

PER_PROCESS = 100
INVITES_AT_ONCE = 256
DESCRIPTORS_PER_MEMBER = 3


class Fault(Exception):
    pass


def parse():
    p = argparse.ArgumentParser(prog="./dev bench fleet", description=__doc__)
    p.add_argument("--members", default="4,16,64", help="one or more numbers (default: %(default)s)")
    p.add_argument("--rounds", type=int, default=12, help="that are measured (default: 12)")
    p.add_argument("--warm", type=int, default=3, help="rounds before these (default: 3)")
    p.add_argument("--train", default="500,300", help="ms of training: at least, and up to that much more "
                   "(default: %(default)s)")
    p.add_argument("--average", default="300,300", help="ms of averaging (default: %(default)s)")
    p.add_argument("--patience", type=float, default=300, help="seconds for a case, at most (default: 300)")
    p.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="an option of the run, such as "
                   "row-size=16")
    p.add_argument("--joins", type=int, default=0, metavar="TIMES", help="measure how fast they join, this many times")
    p.add_argument("--beside", default="", metavar="FOLDER", help="--joins: and at the rivulet-coordinator in this "
                   "folder, in turn")
    p.add_argument("--profile", default="", metavar="FILE", help="write what `perf record` sees of the coordinator")
    return p.parse_args()


class Fleet:
    """A coordinator, and N fake members at it."""

    def __init__(self, a, bin_dir, directory, n, coordinator_dir=""):
        self.a, self.bin, self.dir, self.n = a, coordinator_dir or bin_dir, directory, n
        self.fleet_program = f"{bin_dir}/bench_fleet"
        self.run_dir = f"{directory}/run"
        os.makedirs(directory)
        config = {"n-layer": 1, "n-embd": 32, "n-head": 1, "context": 8, "batch": 1, "steps-per-round": 2,
                  "rounds": 100000, "min-workers": n, "grace-ms": 5000, "data-shards": n}
        config.update(item.split("=", 1) for item in a.set)
        with open(f"{directory}/run.conf", "w") as f:
            f.writelines(f"{name} = {value}\n" for name, value in config.items())
        self._run(["new-run", "--dir", self.run_dir, "--config", f"{directory}/run.conf"])
        self.coordinator = Program("coordinator", [f"{self.bin}/rivulet-coordinator", "serve", "--dir", self.run_dir,
                                                   "--listen", "127.0.0.1:0", "--no-relay"],
                                   f"{directory}/coordinator.log")
        self.log = EventLog(f"{self.run_dir}/rounds.jsonl")
        self.members, self.done = [], 0

    def _run(self, args):
        done = subprocess.run([f"{self.bin}/rivulet-coordinator", *args], capture_output=True, text=True)
        if done.returncode != 0:
            raise Fault(f"{' '.join(args)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def start(self):
        self.coordinator.start()
        path, end = f"{self.run_dir}/listen", time.monotonic() + 20
        while not (os.path.exists(path) and os.path.getsize(path)):
            self.check(end, "the coordinator's start")
            time.sleep(0.05)
        links = []
        while len(links) < self.n:
            count = min(INVITES_AT_ONCE, self.n - len(links))
            links += self._run(["invite", "--dir", self.run_dir, "--count", str(count)]).split()
        a = self.a
        window = [str(a.warm), str(a.warm + a.rounds)]
        for first in range(0, self.n, PER_PROCESS):
            argv = [self.fleet_program, str(first), *a.train.split(","), *a.average.split(","), *window]
            with open(f"{self.dir}/members{first}.log", "wb") as errors:
                child = start_child(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
            self.members.append(child)
        self.t0, self.cpu0 = time.monotonic(), self.coordinator.cpu_s()
        for i, child in enumerate(self.members):
            child.stdin.write("".join(f"{x}\n" for x in links[i * PER_PROCESS:(i + 1) * PER_PROCESS]))
            child.stdin.close()
            child.stdin = None

    def wait_joins(self):
        """Returns how long it took all to join, and the coordinator's processor time."""
        for child in self.members:
            if "joined" not in child.stdout.readline():
                raise Fault("not all have joined: " + self.tail("members0.log"))
        return time.monotonic() - self.t0, self.coordinator.cpu_s() - self.cpu0

    def check(self, end, what):
        for name in os.listdir(self.dir):
            if name.endswith(".log") and "refused" in open(f"{self.dir}/{name}", errors="replace").read():
                raise Fault(self.tail(name))
        if not self.coordinator.running:
            raise Fault(self.tail("coordinator.log"))
        if time.monotonic() > end:
            raise Fault(f"{what} took longer than {self.a.patience:.0f} s ({self.done} rounds): "
                        f"{self.tail('coordinator.log')}")

    def tail(self, name):
        with open(f"{self.dir}/{name}", errors="replace") as f:
            return " | ".join(f.read().splitlines()[-3:])

    def wait_commits(self, n, end):
        at = 0
        while self.done < n:
            self.done += len(self.log.fresh())
            time.sleep(0.005)
            at += 1
            if at % 100 == 0:
                self.check(end, f"round {n}")

    def measure(self):
        """Returns the figures of the rounds that count."""
        a, end = self.a, time.monotonic() + self.a.patience
        self.wait_commits(a.warm, end)
        profiler = self.profile()
        t0, cpu0 = time.monotonic(), self.coordinator.cpu_s()
        self.wait_commits(a.warm + a.rounds, end)
        t1, cpu1 = time.monotonic(), self.coordinator.cpu_s()
        if profiler:
            profiler.terminate()
            profiler.wait()
        memory, descriptors = self.coordinator.usage()
        self.wait_commits(a.warm + a.rounds + 1, end)  # so that every member has read the last document that counts
        sums = {}
        for child in self.members:
            child.terminate()
        for child in self.members:
            for name, value in json.loads(child.stdout.read()).items():
                sums[name] = sums.get(name, 0) + value
            child.wait()
        return {"cpu_ms": round(1e3 * (cpu1 - cpu0) / a.rounds, 1), "round_s": round((t1 - t0) / a.rounds, 3),
                "document_bytes": round(sums["document_bytes"] / max(1, sums["documents"])),
                "documents": round(sums["documents"] / a.rounds / self.n, 2),
                "served_bytes": round(sums["rx_bytes"] / a.rounds), "taken_bytes": round(sums["tx_bytes"] / a.rounds),
                "requests": round(sums["requests"] / a.rounds), "faults": sums["faults"],
                "memory_mib": round(memory / 2**20, 1), "descriptors": descriptors}

    def profile(self):
        if not self.a.profile:
            return None
        return subprocess.Popen(["perf", "record", "-q", "-g", "-o", self.a.profile, "-p", str(self.coordinator.pid)])

    def close(self):
        for child in self.members:
            if child.poll() is None:
                child.kill()
                child.wait()
        self.coordinator.end()


def raise_limit(n):
    """The coordinator inherits the limit of open files as this shell has it; members need their own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = DESCRIPTORS_PER_MEMBER * min(n, PER_PROCESS) + 64
    if hard < need:
        raise Fault(f"the limit of open files is {hard}, {need} are needed: ulimit -n {need}")
    if soft < need:
        resource.setrlimit(resource.RLIMIT_NOFILE, (need, hard))


def print_table(rows):
    print("\n| members | coordinator CPU per commit | a document | documents a member and round | served a round | "
          "taken a round | requests a round | round | memory |\n|---|---|---|---|---|---|---|---|---|")
    for r in rows:
        print(f"| {r['members']} | {r['cpu_ms']} ms | {r['document_bytes']} B | {r['documents']} | "
              f"{r['served_bytes'] / 1e3:.1f} kB | {r['taken_bytes'] / 1e3:.1f} kB | {r['requests']} | "
              f"{r['round_s']} s | {r['memory_mib']} MiB |")


def measure_joins(a, n, bin_dir, top):
    """Members that join at once, at each of the coordinators in turn."""
    figures = {}
    for turn in range(a.joins):
        for name, folder in [("ours", ""), ("beside", a.beside)][:2 if a.beside else 1]:
            fleet = Fleet(a, bin_dir, f"{top}/{n}-{turn}-{name}", n, folder)
            try:
                fleet.start()
                seconds, cpu = fleet.wait_joins()
            finally:
                fleet.close()
            figures.setdefault(name, []).append((round(n / seconds, 1), round(1e3 * cpu / n, 2)))
    median = {name: sorted(x)[len(x) // 2][0] for name, x in figures.items()}
    print(json.dumps({"bench": "fleet", "members": n, "joins_per_s_and_cpu_ms_each": figures, "median": median,
                      **({"ratio": round(median["ours"] / median["beside"], 2)} if a.beside else {})}), flush=True)


def main():
    a = parse()
    top = tempfile.mkdtemp(prefix="rivulet-fleet.")
    rows, ok = [], True
    try:
        for n in map(int, a.members.split(",")):
            raise_limit(n)
            if a.joins:
                measure_joins(a, n, os.environ["RIVULET_BIN"], top)
                continue
            fleet = Fleet(a, os.environ["RIVULET_BIN"], f"{top}/{n}", n)
            try:
                fleet.start()
                fleet.wait_joins()
                rows.append({"members": n, **fleet.measure()})
                print(json.dumps({"bench": "fleet", **rows[-1]}), flush=True)
            finally:
                fleet.close()
    except Fault as e:
        print(json.dumps({"bench": "fleet", "error": str(e)}), flush=True)
        ok = False
    finally:
        shutil.rmtree(top, ignore_errors=True)
    if rows:
        print_table(rows)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
