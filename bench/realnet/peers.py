"""What others make of the same lines: as many floats as our model has parameters, in 8 bits.

tls-cubic, tls-bbr: bare streams (bench_streams.c), the same bytes from everybody to everybody: what TLS alone reaches here.
pccl: PCCL_DIR, a checkout of github:PrimeIntellect-ai/pccl with a build (libpccl.so, ccoip_master). It does not encrypt.
hivemind: HIVEMIND_PYTHON, a python that has it (default: python3). It does not encrypt either.
The router counts them, as ours (exchange.py); hivemind's exchanges are told apart by what its members say, not by pauses.
"""
import functools
import glob
import os
import re
import signal
import subprocess
import tempfile
import time

from process import start_child

HERE = os.path.dirname(os.path.abspath(__file__))
PAUSE_S = 1.0  # between two exchanges: long enough to tell them apart
START_S = 60
CODED = 65 / 64  # bytes of int8 for a parameter, with its block's share of a scale


def find_streams(bin_dir):
    path = f"{bin_dir}/bench_streams"
    return (path, None) if os.path.exists(path) else (None, f"{path} is not built")


def find_pccl(_):
    """Returns (libpccl.so, ccoip_master), or what is missing."""
    top = os.environ.get("PCCL_DIR")
    if not top:
        return None, "PCCL_DIR names no checkout of github:PrimeIntellect-ai/pccl with a build"
    found = [sorted(glob.glob(f"{top}/**/{name}", recursive=True)) for name in ("libpccl.so", "ccoip_master")]
    found = [next((f for f in files if os.path.isfile(f)), None) for files in found]
    return (found, None) if all(found) else (None, f"{top} has no libpccl.so or no ccoip_master: build it as a shared library")


def find_hivemind(_):
    python = os.environ.get("HIVEMIND_PYTHON", "python3")
    has = subprocess.run([python, "-c", "import hivemind"], capture_output=True)
    return (python, None) if has.returncode == 0 else (None, f"{python} has no hivemind: HIVEMIND_PYTHON names one that has")


class Members:
    """Processes of another program, member i at site i + 2; closed at the end of the `with`."""

    def __init__(self, net, members, count):
        self.net, self.members, self.count, self.children = net, members, count, []
        self.dir = tempfile.TemporaryDirectory(prefix="rivulet-peers.")

    def start(self, site, argv, name, env=None):
        with open(f"{self.dir.name}/{name}", "wb") as log:
            self.children.append(start_child(self.net.inside(site) + argv, stdout=log, stderr=subprocess.STDOUT,
                                             env={**os.environ, **(env or {})}))

    def text(self, name):
        with open(f"{self.dir.name}/{name}", errors="replace") as f:
            return f.read()

    def exchanges(self):
        """Returns how many are over at every member."""
        for c in self.children:
            if c.poll() is not None:
                tails = " | ".join(self.text(name)[-200:] for name in sorted(os.listdir(self.dir.name)))
                raise RuntimeError(f"a peer's program ended: {tails}")
        return min(sum(" members" in line for line in self.text(i).splitlines()) for i in range(self.members))

    def spans(self):
        """Returns (from, to) of each exchange, by the first and the last member, on the monotonic clock; [] if they do not
        say."""
        said = [re.findall(r"members, ([0-9.]+) to ([0-9.]+)", self.text(i)) for i in range(self.members)]
        return [(min(float(x[0]) for x in one), max(float(x[1]) for x in one)) for one in zip(*said)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for c in self.children:
            os.killpg(c.pid, signal.SIGKILL)  # start_child makes a group of each, and hivemind has children of its own
            c.wait()
        self.dir.cleanup()


def start_pccl(peers, found):
    library, master = found
    peers.start(1, [master], "master", {"LD_LIBRARY_PATH": os.path.dirname(library)})
    time.sleep(1)
    for i in range(peers.members):
        peers.start(i + 2, ["python3", "-B", f"{HERE}/pccl_member.py", library, peers.net.address(1), str(peers.members),
                            str(peers.count), str(PAUSE_S)], str(i))


def start_streams(peers, program, congestion):
    hosts = [peers.net.address(i + 2) for i in range(peers.members)]
    each = round(2 * peers.count * CODED / peers.members)  # a contribution and a mean of a share, to every other one
    for i in range(peers.members):
        peers.start(i + 2, [program, str(i), str(each), str(PAUSE_S), congestion, *hosts], str(i))


def first_address(peers):
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        found = re.search(r"^first (\S+)$", peers.text("0"), re.M)
        if found:
            return found[1]
        time.sleep(0.1)
    raise RuntimeError(f"hivemind did not start within {START_S} s: {peers.text('0')[-300:]}")


def start_hivemind(peers, python):
    for i in range(peers.members):
        first = [first_address(peers)] if i > 0 else []
        peers.start(i + 2, [python, "-B", f"{HERE}/hivemind_member.py", str(i), peers.net.address(i + 2), str(peers.members),
                            str(peers.count), str(PAUSE_S), *first], str(i))


PEERS = {"tls-cubic": (find_streams, functools.partial(start_streams, congestion="cubic")),
         "tls-bbr": (find_streams, functools.partial(start_streams, congestion="bbr")),
         "pccl": (find_pccl, start_pccl), "hivemind": (find_hivemind, start_hivemind)}
