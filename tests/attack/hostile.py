"""Runs of honest workers in homes, beside an attacker: what is committed, and which packets others get from it."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "nat"))

import private  # noqa: E402 (found by the line before)
from homes import Homes  # noqa: E402
from run_homes import report  # noqa: E402
from runs import Choices, Run, name_the_coordinator  # noqa: E402

DELAY_MS = 20
PATIENCE_S = 200


class Counted:
    """Counts the packets that hosts send to addresses, in their own namespaces: what routers and lines do to them is not
    asked."""

    def __init__(self, hosts, targets):
        """targets: {name: (IPv4 address, TCP port or None for any)}"""
        self.hosts, self.targets = hosts, targets
        rules = "".join(f"ip daddr {address} {f'tcp dport {port}' if port else 'meta l4proto tcp'} counter comment \"{name}\"\n"
                        for name, (address, port) in targets.items())
        for host in hosts:
            with private.inside(host):
                subprocess.run(["nft", "-f", "-"], input="table inet lies { chain output { type filter hook output priority 0;"
                               f" policy accept;\n{rules} }}\n}}\n", text=True, check=True)

    def packets(self):
        """Returns {target: {host: packets}}."""
        found = {name: {} for name in self.targets}
        for host in self.hosts:
            with private.inside(host):
                listed = subprocess.run(["nft", "-j", "list", "chain", "inet", "lies", "output"], capture_output=True,
                                        text=True, check=True).stdout
            for entry in json.loads(listed)["nftables"]:
                rule = entry.get("rule", {})
                counters = [e["counter"]["packets"] for e in rule.get("expr", []) if "counter" in e]
                if counters:
                    found[rule["comment"]][host] = counters[0]
        return found


def play(bin_dir, specs, rounds, choices, targets=None, keep=None, seconds=PATIENCE_S, until=None):
    """Plays a run until so many rounds are committed. Returns run_homes' report, with `packets` to the targets by host."""
    directory = keep or tempfile.mkdtemp(prefix="rivulet-hostile-")
    os.makedirs(directory, exist_ok=True)
    homes = Homes(bin_dir, specs, DELAY_MS)
    try:
        name_the_coordinator(homes.servers["coordinator"])
        counted = Counted([h.name for home in homes.homes for h in home.hosts] + ["coordinator"], targets or {})
        run = Run(bin_dir, directory, homes, choices)
        run.start()
        run.watch(seconds, rounds, until=until(run) if until else None)
        return {**report(run), "packets": counted.packets()}
    finally:
        homes.close()
        if not keep:
            shutil.rmtree(directory, ignore_errors=True)


def play_each(argv, doc, what, choices, play_one):
    """Plays the runs that the arguments choose. play_one(args, name): returns whether it ended as it should. Returns the
    exit status."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", metavar="BIN_DIR")
    parser.add_argument(f"--{what}", dest="chosen", choices=choices, action="append", help="only these (default: each)")
    parser.add_argument("--rounds", type=int, default=30, metavar="N", help="to be committed beside each (30)")
    parser.add_argument("--seconds", type=float, default=PATIENCE_S, help=f"for that ({PATIENCE_S})")
    parser.add_argument("--keep", metavar="DIR", help="for logs")
    args = parser.parse_args(argv)
    private.enter()
    if args.keep:
        os.makedirs(args.keep)
    failed = [name for name in args.chosen or choices if not play_one(args, name)]
    return int(bool(failed))


__all__ = ["Choices", "Counted", "play", "play_each"]
