#!/usr/bin/env python3
"""test_attack_relay.py BIN_DIR [--attack NAME]... [--rounds N] [--keep DIR]: what a hostile relay does to four workers.

The operator has listed two relays; the first is evil (evil_relay.c). Four workers at home, of which no pair can do without
a relay or an opening, have to commit rounds all the same, and whom the relay aims them at must get but a few packets.
Prints a line for each attack. Exits with 77 where homes cannot be made."""
import argparse
import os
import sys

import hostile
from hostile import Choices

BYSTANDER = ("11.86.0.3", 7434)
ATTACKS = {
    "honest": "honest=1",
    "drop": "drop=1",
    "delay": "delay=800",
    "cut": "cut=20000",
    "cut-at-once": "cut=1",
    "replay": "replay=3000",
    "flood": "flood=50",
    "aim": f"aim={BYSTANDER[0]}:{BYSTANDER[1]}",
}
RELAYED, OPENED = ("symmetric",) * 4, ("masquerade", "port-restricted", "symmetric", "symmetric")
# For each worker, each address that a stranger stated is dialed four times at most, with three packets; all three members
# that it may dial can have that same one.
MOST_TO_BYSTANDER = 4 * 3 * 4 * 3


def play(args, name):
    specs = OPENED if name == "aim" else RELAYED
    keep = f"{args.keep}/{name}" if args.keep else None
    r = hostile.play(args.bin_dir, specs, args.rounds, Choices(relay="two", evil_relay=ATTACKS[name]), {"bystander": BYSTANDER},
                     keep, args.seconds)
    sent = sum(r["packets"]["bystander"].values())
    good = r["rounds"] >= args.rounds and sent <= MOST_TO_BYSTANDER and r["bystander_packets"] <= MOST_TO_BYSTANDER
    print(f"{name}: {'ok' if good else 'FAILED'}: {r['rounds']} rounds with {r['participants']} participants on average, the "
          f"first after {r['seconds_to_first_commit']} s, the last after {r['seconds_to_last_commit']} s, the longest gap "
          f"{r['longest_gap_s']} s; packets sent to the bystander {sent}, arrived {r['bystander_packets']}; ways {r['way']}",
          flush=True)
    return good


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", metavar="BIN_DIR")
    parser.add_argument("--attack", choices=ATTACKS, action="append", help="only this one (default: each)")
    parser.add_argument("--rounds", type=int, default=30, metavar="N", help="to be committed beside each (30)")
    parser.add_argument("--seconds", type=float, default=hostile.PATIENCE_S, help=f"for that ({hostile.PATIENCE_S})")
    parser.add_argument("--keep", metavar="DIR", help="for logs")
    args = parser.parse_args(argv)
    hostile.private.enter()
    if args.keep:
        os.makedirs(args.keep)
    failed = [name for name in args.attack or ATTACKS if not play(args, name)]
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
