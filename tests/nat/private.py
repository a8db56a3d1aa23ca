"""A private place for network namespaces: /run and the process ids of this process are its own.

Nothing outlives the process, not even when it is killed: its mount and process-id namespaces end with it, with every
child and every network namespace. From outside, a namespace is /proc/PID/root/run/netns/NAME, where PID is that of the
program `unshare` which the command line has become.
"""
import ctypes
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000
SKIPPED = 77
NETNS = "/run/netns"
MARK = "RIVULET_NAT_PRIVATE"

libc = ctypes.CDLL(None, use_errno=True)


def what_is_missing(programs=("unshare", "ip", "nft", "conntrack")):
    """Returns why homes cannot be made here, with the remedy; "": they can be."""
    packages = {"unshare": "util-linux", "ip": "iproute2", "miniupnpd": "miniupnpd-nftables", "nft": "nftables",
                "upnpc": "miniupnpc"}
    if os.geteuid() != 0:
        return "network namespaces need root: run it as root, or through sudo"
    if not os.path.exists("/dev/net/tun"):
        return "/dev/net/tun is missing: load the kernel module (modprobe tun)"
    for program in programs:
        if shutil.which(program) is None:
            return f"the program {program} is missing: install {packages.get(program, program)}"
    probe = ["unshare", "--net", "nft", "add table ip t; add chain ip t c { type nat hook postrouting priority 100; };"
             " add rule ip t c masquerade random,fully-random"]
    made = subprocess.run(probe, capture_output=True, text=True, check=False)
    return f"network address translation cannot be had here: {made.stderr.strip()}" if made.returncode != 0 else ""


def enter(programs=("unshare", "ip", "nft", "conntrack")):
    """Starts this program again in the private place, where it returns. Exits with 77 where that is impossible."""
    if os.environ.get(MARK) == "1":
        os.environ.pop(MARK)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        return
    why = what_is_missing(programs)
    if why:
        print(f"skipped: {why}", flush=True)
        sys.exit(SKIPPED)
    os.environ[MARK] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-B",
                          *sys.argv])


def _setns(fd):
    if libc.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def enter_namespace(name):
    """Moves the calling thread, and what it starts, for good: between fork and exec."""
    fd = os.open(f"{NETNS}/{name}", os.O_RDONLY)
    _setns(fd)
    os.close(fd)


@contextmanager
def inside(name):
    """The calling thread is in that namespace: sockets that it opens stay there."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        enter_namespace(name)
        yield
    finally:
        _setns(home)
        os.close(home)
