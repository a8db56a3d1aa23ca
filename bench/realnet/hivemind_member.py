"""One member of an exchange by hivemind, for peers.py: averages COUNT floats again and again, in 8 bits.

    HIVEMIND_PYTHON hivemind_member.py SELF IPV4 MEMBERS COUNT PAUSE_S [MULTIADDRESS OF THE FIRST]

The first one prints its multiaddress. Each prints a line after an exchange in which all took part, with the monotonic
clock when its call let the all-reduce begin and when the call returned: finding a group, which takes seconds, is outside.
Ends with a fault if the mean is not that of all: hivemind 1.1.12 reports success without the others' parts, too, and with NumPy
2.4 never has them (its decompression fails in silence).
"""
import sys
import time

import hivemind
import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.control import AveragingStage
from hivemind.compression import Uniform8BitQuantization

MATCHMAKING_S = 3.0
REQUEST_S = 1.0
STEP_S = 120
POLL_S = 0.001
WORST_ERROR = 0.2  # of the mean's norm: 8 bits of six sigmas cost 0.03, a missing part 1


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


def numbers(member, count):
    return torch.randn(count, generator=torch.Generator().manual_seed(member))


def check(averager, expected):
    with averager.get_tensors() as (mean,):
        error = float((mean - expected).norm() / expected.norm())
    if not error < WORST_ERROR:
        raise SystemExit(f"hivemind: the mean is wrong by {error:.3f} of its norm: parts are missing (NumPy before 2.4?)")
    return error


def main():
    self_index, host, members, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    pause_s, first, done = float(sys.argv[5]), sys.argv[6:], 0
    torch.set_num_threads(1)
    own, expected = numbers(self_index, count), sum(numbers(i, count) for i in range(members)) / members
    averager = DecentralizedAverager([own.clone()], open_dht(host, first), start=True, prefix="lines",
                                     target_group_size=members, min_group_size=members, request_timeout=REQUEST_S,
                                     min_matchmaking_time=MATCHMAKING_S, compression=Uniform8BitQuantization())
    while True:
        with averager.get_tensors() as (values,):
            values.copy_(own)
        try:
            met, began, ended = exchange(averager)
        except Exception as e:  # no group was found, or one failed: the next step is another attempt
            print(f"again: {type(e).__name__} {e}", flush=True)
            continue
        if met == members:
            print(f"{done} {met} members, {began:.4f} to {ended:.4f}, error {check(averager, expected):.4f}", flush=True)
            done += 1
        time.sleep(pause_s)


if __name__ == "__main__":
    main()
