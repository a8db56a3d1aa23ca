"""A run of real processes: one coordinator, some workers, at the sites of a network."""
import os
import random
import subprocess
import time

from process import EventLog, Program

WORDS = ("the river runs to sea and many small streams are one in it we they go on until all of us have seen what is "
         "there").split()


class Timeout(Exception):
    pass


def write_text(path, seed, n_bytes=1 << 20):
    """Returns words in an order that no model learns at once."""
    rng, text = random.Random(seed), []
    size = 0
    while size < n_bytes:
        word = rng.choice(WORDS) + ("\n" if rng.random() < 0.08 else " ")
        text.append(word)
        size += len(word)
    with open(path, "w") as f:
        f.write("".join(text))


class Cluster:
    """Worker i (from 0) is at site i + 2. Member numbers are in the order of the joins, which may be another.
    `published`: the directory of a published text, which the run hands out; without it workers bring a text."""

    def __init__(self, bin_dir, directory, net, config, seed=1, published=None):
        self.bin, self.dir, self.net, self.seed = bin_dir, directory, net, seed
        os.makedirs(directory)
        self.config = dict(config)
        self.text = None if published else f"{directory}/text"
        if self.text:
            write_text(self.text, seed)
        with open(f"{directory}/run.conf", "w") as f:
            f.writelines(f"{name} = {value}\n" for name, value in self.config.items())
        self.run_dir = f"{directory}/coordinator"
        self._run(["new-run", "--dir", self.run_dir, "--config", f"{directory}/run.conf",
                   *(["--data", published] if published else [])])
        self.listen = f"{net.address(1)}:0"
        self.coordinator = Program("coordinator", None, f"{directory}/coordinator.log")
        self.workers = []

    def _run(self, args):
        argv = [f"{self.bin}/rivulet-coordinator", *args]
        done = subprocess.run(self.net.inside(1) + argv, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(args)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def start_coordinator(self):
        """The first time on any free port, then on the same."""
        self.coordinator.argv = self.net.inside(1) + [f"{self.bin}/rivulet-coordinator", "serve", "--dir", self.run_dir,
                                                      "--listen", self.listen]
        path = f"{self.run_dir}/listen"
        if os.path.exists(path):
            os.unlink(path)
        self.coordinator.start()
        self.wait("the coordinator's start", 20, lambda: os.path.exists(path) and os.path.getsize(path) > 0)
        with open(path) as f:
            self.listen = f.read().split()[0]

    def add_workers(self, n, args=(), failpoint=None):
        """Invites and starts n more, all at once: so each is there for the first round. `args`: more arguments.
        `failpoint`: the first one is the program that has failpoints, with this one set."""
        fresh = []
        for link in self._run(["invite", "--dir", self.run_dir, "--count", str(n)]).split():
            i = len(self.workers)
            site = i + 2
            argv = self.net.inside(site) + [f"{self.bin}/rivulet-worker"]
            text = ["--data", self.text] if self.text else []
            rest = ["--yes", "--on-battery", "--on-metered", "--dir", f"{self.dir}/worker{i}", *text, "--threads", "1", "--name", f"worker{i}",
                    "--listen", f"{self.net.address(site)}:0", "--eval-every", "0", *args]
            worker = Program(f"worker{i}", argv + rest, f"{self.dir}/worker{i}.log")
            worker.site, worker.index, worker.events = site, i, EventLog(f"{self.dir}/worker{i}.log")
            if failpoint and not fresh:
                worker.start([*argv[:-1], f"{argv[-1]}-failpoint", link, *rest], {"RIVULET_FAILPOINT": failpoint})
            else:
                worker.start(argv + [link] + rest)
            self.workers.append(worker)
            fresh.append(worker)
        self.wait("the join of all workers", 60, lambda: all(
            os.path.exists(f"{self.dir}/{w.name}/run.conf") or not w.running for w in fresh))
        for w in fresh:
            if not w.running:
                raise RuntimeError(f"{w.name} ended: {self.tail(w)}")

    def tail(self, program, lines=3):
        with open(program.log, errors="replace") as f:
            return " | ".join(f.read().splitlines()[-lines:])

    def wait(self, what, seconds, condition, poll_s=0.05):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise Timeout(f"{what} did not happen within {seconds} s; coordinator: {self.tail(self.coordinator)}")
            time.sleep(poll_s)

    def commits(self):
        """Returns the coordinator's record of each committed round, in order; a round once."""
        log = EventLog(f"{self.run_dir}/rounds.jsonl")
        rounds = {}
        for line in log.fresh():
            rounds.setdefault(line["round"], line)
        return [rounds[r] for r in sorted(rounds)]

    def programs(self):
        return [self.coordinator, *self.workers]

    def close(self):
        for p in self.workers:
            if p.stopped:
                p.kill9()
            p.ask_to_end()
        for p in [*self.workers, self.coordinator]:
            p.end()
