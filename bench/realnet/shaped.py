"""Sites for real processes: network namespaces joined by shaped_net, or plain loopback.

Site 1 is the coordinator's; workers live at sites 2, 3, ... The caller that opens a network closes it; namespaces that a killed
run left behind (their owner's pid is in the name and gone) are removed at the next start.
"""
import json
import os
import re
import shutil
import subprocess
import time

from process import start_child

PREFIX = "rvnet"


def what_is_missing():
    """Returns why namespaces are impossible here: reasons with remedies; empty: they are possible."""
    reasons = []
    if os.geteuid() != 0:
        reasons.append("network namespaces need root: run it as root, or through sudo")
    if not os.path.exists("/dev/net/tun"):
        reasons.append("/dev/net/tun is missing: load the kernel module (modprobe tun)")
    if shutil.which("ip") is None:
        reasons.append("the program ip is missing: install iproute2")
    if reasons:
        return reasons
    probe = f"{PREFIX}{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True)
    if made.returncode != 0:
        return [f"a network namespace cannot be made here (CAP_SYS_ADMIN is needed): {made.stderr.strip()}"]
    subprocess.run(["ip", "netns", "del", probe], check=False)
    return []


def remove_stale():
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    for name in re.findall(rf"^({PREFIX}(\d+)-\S+)", listed, re.M):
        if not os.path.exists(f"/proc/{name[1]}"):
            subprocess.run(["ip", "netns", "del", name[0]], check=False)


class Loopback:
    """Every site is this machine; nothing is shaped, and no line can be cut."""

    shaped = False

    def address(self, site):
        return "127.0.0.1"

    def inside(self, site):
        return []

    def close(self):
        pass


class ShapedNet:
    shaped = True

    def __init__(self, bin_dir, sites, rate_mbit, delay_ms, log):
        self.sites = sites
        self.names = []
        self.relay = None
        remove_stale()
        try:
            self._open(bin_dir, rate_mbit, delay_ms, log)
        except BaseException:
            self.close()
            raise

    def _open(self, bin_dir, rate_mbit, delay_ms, log):
        for i in range(1, self.sites + 1):
            name = f"{PREFIX}{os.getpid()}-{i}"
            subprocess.run(["ip", "netns", "add", name], check=True)
            self.names.append(name)
            subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        # First in line for the processor: a relay that waits would make the line slower than
        # requested.
        self.relay = start_child(
            ["nice", "-n", "-10", f"{bin_dir}/shaped_net", f"{rate_mbit * 1e6:.0f}", str(delay_ms), *self.names],
            stderr=open(log, "a"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.relay.stdout.readline().strip() != "ready":
            raise RuntimeError(f"shaped_net did not start; see {log}")
        for i, name in enumerate(self.names, 1):
            subprocess.run(["ip", "-n", name, "addr", "add", f"{self.address(i)}/16", "dev", "wan0"], check=True)
            subprocess.run(["ip", "-n", name, "link", "set", "wan0", "mtu", "1500", "txqueuelen", "1000", "up"],
                           check=True)

    def address(self, site):
        return f"10.86.0.{site}"

    def inside(self, site):
        """Returns the prefix of a command that runs at that site."""
        return ["ip", "netns", "exec", self.names[site - 1]]

    def _ask(self, command):
        self.relay.stdin.write(command + "\n")
        self.relay.stdin.flush()
        return self.relay.stdout.readline().strip()

    def _tell(self, command):
        answer = self._ask(command)
        if answer != "ok":
            raise RuntimeError(f"shaped_net: {answer}")

    def rate(self, site, up_mbit, down_mbit):
        self._tell(f"rate {site} {up_mbit * 1e6:.0f} {down_mbit * 1e6:.0f}")

    def delay(self, site, ms):
        self._tell(f"delay {site} {ms}")

    def buffer(self, site, ms):
        self._tell(f"buffer {site} {ms}")

    def loss(self, site, percent):
        self._tell(f"loss {site} {percent}")

    def cut(self, site):
        self._tell(f"cut {site}")

    def heal(self, site):
        self._tell(f"heal {site}")

    def remove_address(self, site):
        self._address("del", site, 0)

    def add_address(self, site):
        """Returns a new address; the relay reads the last byte only."""
        self._address("add", site, 1)

    def _address(self, verb, site, subnet):
        subprocess.run(["ip", "-n", self.names[site - 1], "addr", verb, f"10.86.{subnet}.{site}/16", "dev", "wan0"],
                       check=True)

    def stats(self):
        """Returns {"us": now, "up": [bytes of site 1, ...], "down": [...], "dropped": [packets]}, and "up_wire" and
        "down_wire": bytes with what Ethernet adds."""
        return json.loads(self._ask("stats"))

    def cpu_s(self):
        """Returns the router's processor time since its start."""
        with open(f"/proc/{self.relay.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        if self.relay is not None:
            self.relay.terminate()
            try:
                self.relay.wait(5)
            except subprocess.TimeoutExpired:
                self.relay.kill()
                self.relay.wait()
            self.relay = None
        for name in self.names:
            for _ in range(20):
                if subprocess.run(["ip", "netns", "del", name], capture_output=True).returncode == 0:
                    break
                time.sleep(0.05)
        self.names = []
