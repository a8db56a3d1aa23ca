#!/usr/bin/env python3
"""test_attack_candidates.py BIN_DIR [--lies NAME]... [--rounds N] [--keep DIR]: a member lies about where it may be dialed.

Four honest workers at home and a fifth that names other people's addresses in its reports (evil_worker.c). It is behind a
symmetric router, so that the others have every reason to dial what it names. The rounds have to be committed, and hosts
must send but a few packets to any address that the liar named: counted where they leave. What they send to the liar's own
address shows that packets are counted. Prints a line for each. Exits with 77 where homes cannot be made."""
import sys

import hostile
from hostile import Choices

HONEST = ("open", "masquerade", "port-restricted", "symmetric")
LIAR, LIARS_OWN = "h5a", ("11.86.0.8", None)
SEEN, REFLECTED, PRIVATE, GIVEN = range(4)
BYSTANDER, COORDINATOR = "11.86.0.3", "11.86.0.1"
# By name: kind of candidate, address, port, most packets that all hosts together may send there. A GIVEN one may be probed:
# three times an hour, each time one attempt of three packets.
PROBES = 9
LIES = {
    "mixed": {"reflected": (REFLECTED, BYSTANDER, 7434, 0), "private": (PRIVATE, "192.168.1.77", 7434, 0),
              "broadcast": (GIVEN, "255.255.255.255", 7434, 0)},
    "somebody": {"reflected": (REFLECTED, BYSTANDER, 7434, 0), "given": (GIVEN, BYSTANDER, 7001, PROBES),
                 "private": (PRIVATE, BYSTANDER, 7002, 0)},
    "private": {"private": (PRIVATE, "192.168.1.77", 7434, 0), "given": (GIVEN, "192.168.1.78", 7434, 0),
                "reflected": (REFLECTED, "10.1.2.3", 7434, 0)},
    "nowhere": {"broadcast": (PRIVATE, "255.255.255.255", 7434, 0), "multicast": (GIVEN, "224.0.0.1", 7434, 0),
                "loopback": (PRIVATE, "127.0.0.1", 7400, 0)},
    "coordinator": {"given": (GIVEN, COORDINATOR, 22, 0), "reflected": (REFLECTED, COORDINATOR, 23, 0),
                    "private": (PRIVATE, COORDINATOR, 24, 0)},
}


def play(args, name):
    lies = LIES[name]
    evil = "candidates=" + ";".join(f"{kind}@{address}:{port}" for kind, address, port, _ in lies.values())
    choices = Choices(programs={LIAR: ("rivulet-worker-evil", {"RIVULET_EVIL": evil})})
    r = hostile.play(args.bin_dir, [*HONEST, "symmetric"], args.rounds, choices,
                     {"own": LIARS_OWN, **{what: (address, port) for what, (_, address, port, _) in lies.items()}},
                     f"{args.keep}/{name}" if args.keep else None, args.seconds)
    sent = {what: sum(r["packets"][what].values()) for what in lies}
    good = r["rounds"] >= args.rounds and all(sent[what] <= most for what, (_, _, _, most) in lies.items())
    own = sum(r["packets"]["own"].values())
    good = good and own > 0 and r["bystander_packets"] <= sum(sent.values())
    print(f"{name}: {'ok' if good else 'FAILED'}: {r['rounds']} rounds with {r['participants']} participants on average, the "
          f"last after {r['seconds_to_last_commit']} s; packets sent to each: {sent} (at most "
          f"{[most for _, _, _, most in lies.values()]}), arrived at the bystander: {r['bystander_packets']}; to the liar's own: "
          f"{own}", flush=True)
    return good


if __name__ == "__main__":
    sys.exit(hostile.play_each(sys.argv[1:], __doc__, "lies", LIES, play))
