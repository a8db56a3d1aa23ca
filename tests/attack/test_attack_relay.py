#!/usr/bin/env python3
"""test_attack_relay.py BIN_DIR [--attack NAME]... [--rounds N] [--keep DIR]: what a hostile relay does to four workers.

The operator has listed two relays; the first is evil (evil_relay.c). Four workers at home, of which no pair can do without
a relay or an opening, have to commit rounds all the same, and whom the relay aims them at must get but a few packets.
Prints a line for each attack. Exits with 77 where homes cannot be made."""
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
# Each worker takes part in 8 openings to hosts that are no peer's, then one in 30 s; an opening lasts 1.5 s, in which TCP
# sends two packets.
MOST_TO_BYSTANDER = 4 * (8 + hostile.PATIENCE_S // 30) * 2


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


if __name__ == "__main__":
    sys.exit(hostile.play_each(sys.argv[1:], __doc__, "attack", ATTACKS, play))
