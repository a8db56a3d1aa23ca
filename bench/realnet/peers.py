"""What others make of the same lines: PCCL in 8 bits, as many floats as our model has parameters.

PCCL_DIR: a checkout of github:PrimeIntellect-ai/pccl with a build (libpccl.so, ccoip_master). It does not encrypt; it is measured
by the router, as ours (exchange.py).
"""
import glob
import os
import subprocess
import tempfile
import time

from process import start_child

HERE = os.path.dirname(os.path.abspath(__file__))
PAUSE_S = 1.0  # between two exchanges: long enough to tell them apart


def find_pccl():
    """Returns (libpccl.so, ccoip_master), or what is missing."""
    top = os.environ.get("PCCL_DIR")
    if not top:
        return None, "PCCL_DIR names no checkout of github:PrimeIntellect-ai/pccl with a build"
    found = [sorted(glob.glob(f"{top}/**/{name}", recursive=True)) for name in ("libpccl.so", "ccoip_master")]
    found = [next((f for f in files if os.path.isfile(f)), None) for files in found]
    return (found, None) if all(found) else (None, f"{top} has no libpccl.so or no ccoip_master: build it as a shared library")


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

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for c in self.children:
            c.kill()
            c.wait()
        self.dir.cleanup()


def start_pccl(peers, found):
    library, master = found
    peers.start(1, [master], "master", {"LD_LIBRARY_PATH": os.path.dirname(library)})
    time.sleep(1)
    for i in range(peers.members):
        peers.start(i + 2, ["python3", "-B", f"{HERE}/pccl_member.py", library, peers.net.address(1), str(peers.members),
                            str(peers.count), str(PAUSE_S)], str(i))


PEERS = {"pccl": (find_pccl, start_pccl)}
