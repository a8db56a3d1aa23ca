#!/usr/bin/env python3
"""Measures what TCP simultaneous open needs: how far apart two dials may be, how many attempts, which socket options.

    punch_timing.py BIN_DIR [--delay MS] [--trials N]

Two homes dial each other's learnt mapping, the second one SKEW later, once per trial, with and without routers that answer
an unexpected SYN with RST; then with up to 8 attempts of ATTEMPT_S each. Needs root.
"""
import argparse
import asyncio
import errno
import socket
import sys
import time

import private
import probe
from homes import Homes

SKEWS = (0, 0.5, 0.9, 1.1, 2, 4)  # in one-way delays
ONE_ATTEMPT_S = 4  # the kernel repeats a SYN after 1 s and after 3 s
PAIRS = (("port-restricted", "port-restricted"), ("masquerade", "masquerade"), ("masquerade", "masquerade+reset"),
         ("masquerade+reset", "masquerade+reset"))


async def later(seconds, coroutine):
    await asyncio.sleep(seconds)
    return await coroutine


async def one_attempt(reflectors, x, y, skew_s):
    """Returns the seconds that a connection took, from the first dial; None: there is none."""
    async def then(a, b):
        start, took = time.monotonic(), None
        dials = a.dial(b, a.port, ONE_ATTEMPT_S), later(skew_s, b.dial(a, b.port, ONE_ATTEMPT_S))
        for dial in asyncio.as_completed(dials):
            if await dial and took is None:
                took = time.monotonic() - start
        return took
    return await probe.two_ends(reflectors, x, y, False, then)


async def attempts_until_connected(reflectors, x, y, skew_s):
    """Returns the number of attempts of ATTEMPT_S, each begun with that skew; 0: none of 8."""
    async def then(a, b):
        for attempt in range(1, 9):
            if await probe.either(a.dial(b, a.port, probe.ATTEMPT_S), later(skew_s, b.dial(a, b.port, probe.ATTEMPT_S))):
                return attempt
        return 0
    return await probe.two_ends(reflectors, x, y, False, then)


def shown(seconds):
    met = sorted(s for s in seconds if s is not None)
    return f"{len(met)}/{len(seconds)}" + (f" {met[len(met) // 2]:.2f} s" if met else "")


async def measure_timing(homes, delay_s, trials):
    with probe.Reflectors(homes) as reflectors:
        print("| homes | skew, one-way delays | one attempt: met, median | attempts of 0.5 s |\n|---|---|---|---|")
        for i, pair in enumerate(PAIRS):
            x, y = (homes.homes[2 * i + k].hosts[0] for k in range(2))
            for skew in SKEWS:
                once = await asyncio.gather(*(one_attempt(reflectors, x, y, skew * delay_s) for _ in range(trials)))
                tries = await asyncio.gather(*(attempts_until_connected(reflectors, x, y, skew * delay_s)
                                               for _ in range(trials)))
                print(f"| {', '.join(pair)} | {skew} | {shown(once)} | {sorted(tries)} |", flush=True)


def bind_beside(listener_options, dialer_options, port):
    """Returns what bind() says to a dialer on the port of a listener."""
    with socket.socket() as listener, socket.socket() as dialer:
        for s, options in ((listener, listener_options), (dialer, dialer_options)):
            for option in options:
                s.setsockopt(socket.SOL_SOCKET, option, 1)
        listener.bind(("0.0.0.0", port))
        listener.listen()
        try:
            dialer.bind(("0.0.0.0", port))
            return "works"
        except OSError as e:
            return e.strerror


def print_options():
    sets = {"none": (), "REUSEADDR": (socket.SO_REUSEADDR,), "REUSEPORT": (socket.SO_REUSEPORT,)}
    print("\n| listener | dialer on the same port | bind() |\n|---|---|---|")
    for at, (listener, options) in enumerate(sets.items()):
        for dialer, others in sets.items():
            print(f"| {listener} | {dialer} | {bind_beside(options, others, 31000 + at)} |")


def dial_what_was_accepted():
    """Returns what connect() says where a connection of the same two addresses and ports came in through the listener."""
    sockets = [socket.socket() for _ in range(3)]
    listener, caller, dialer = sockets
    for s, port in zip(sockets, (31010, 31011, 31010)):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(("127.0.0.1", port))
        if s is listener:
            s.listen()
    caller.connect(("127.0.0.1", 31010))
    accepted, _ = listener.accept()
    code = dialer.connect_ex(("127.0.0.1", 31011))
    for s in [*sockets, accepted]:
        s.close()
    return errno.errorcode.get(code, "works")


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", metavar="BIN_DIR")
    parser.add_argument("--delay", type=float, default=40, metavar="MS", help="from a home to another, one way (40)")
    parser.add_argument("--trials", type=int, default=10)
    args = parser.parse_args(argv)
    private.enter()
    homes = Homes(args.bin_dir, [spec for pair in PAIRS for spec in pair], args.delay)
    try:
        asyncio.run(measure_timing(homes, args.delay / 1000, args.trials))
    finally:
        homes.close()
    print_options()
    print(f"\nconnect() to a peer whose connection the listener has accepted: {dial_what_was_accepted()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
