"""One member of an exchange by hivemind, for peers.py: averages COUNT floats again and again, in 8 bits.

    HIVEMIND_PYTHON hivemind_member.py IPV4 MEMBERS COUNT PAUSE_S [MULTIADDRESS OF THE FIRST]

The first one prints its multiaddress. Each prints a line after an exchange in which all took part, with the monotonic
clock when its call let the all-reduce begin and when the call returned: finding a group, which takes seconds, is outside.
"""
import sys
import time

import hivemind
import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.control import AveragingStage
from hivemind.compression import Uniform8BitQuantization

MATCHMAKING_S = 3.0
STEP_S = 120
POLL_S = 0.001


def open_dht(host, first):
    dht = hivemind.DHT(host_maddrs=[f"/ip4/{host}/tcp/0"], initial_peers=first, start=True)
    if not first:
        print("first " + next(str(a) for a in dht.get_visible_maddrs() if host in str(a)), flush=True)
    return dht


def exchange(averager):
    """Returns (members, began, ended)."""
    step = averager.step(wait=False, require_trigger=True, timeout=STEP_S)
    while step.stage != AveragingStage.AWAITING_TRIGGER and not step.done():
        time.sleep(POLL_S)
    began = time.monotonic()
    step.allow_allreduce()
    met = step.result(STEP_S)
    return len(met or ()), began, time.monotonic()


def main():
    host, members, count, pause_s, first = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5:]
    torch.set_num_threads(1)
    torch.manual_seed(count)
    averager = DecentralizedAverager([torch.randn(count)], open_dht(host, first), start=True, prefix="lines",
                                     target_group_size=members, min_group_size=members,
                                     min_matchmaking_time=MATCHMAKING_S, compression=Uniform8BitQuantization())
    done = 0
    while True:
        try:
            met, began, ended = exchange(averager)
        except Exception as e:  # no group was found, or one failed: the next step is another attempt
            print(f"again: {type(e).__name__} {e}", flush=True)
            continue
        if met == members:
            print(f"{done} {met} members, {began:.4f} to {ended:.4f}", flush=True)
            done += 1
        time.sleep(pause_s)


if __name__ == "__main__":
    main()
