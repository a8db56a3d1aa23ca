"""Who is linked with whom, and how: what the workers log (`path`, `link_down`), held against the sockets of the hosts.

A pair's way, as its two workers log it: dialed (by one of them), punched (both at one moment), each with a 6 over IPv6; lan
(dialed at an address of the house), relayed, none.
"""
import ipaddress
import itertools
import json
import os
import sys

import private

ESTABLISHED = "01"
PEERS_PORT, RELAY_PORTS = 7434, range(7435, 7500)
SETTLED_S = 2  # what was logged less than that before the end is not held against the sockets
WAYS = {"dialed": "dialed", "accepted": "dialed", "punched": "punched", "relayed": "relayed"}


def read_events(path):
    """Returns the JSON lines of a log; the last one may be incomplete."""
    if not os.path.exists(path):
        return []
    events = []
    with open(path, "rb") as f:
        for line in f.read().split(b"\n"):
            try:
                events.append(json.loads(line))
            except ValueError:
                pass  # plain text, or not yet whole
    return [e for e in events if isinstance(e, dict)]


def read_address(words, width):
    """The kernel prints words of 32 bits in this machine's order."""
    packed = b"".join(words[i:i + 4][::-1] for i in range(0, width, 4)) if sys.byteorder == "little" else words
    address = ipaddress.ip_address(packed)
    return str(getattr(address, "ipv4_mapped", None) or address)


def established(host):
    """Returns (local port, remote address, remote port) of every established TCP connection in the host's namespace."""
    found = set()
    with private.inside(host.name):
        for name, width in (("tcp", 4), ("tcp6", 16)):
            with open(f"/proc/thread-self/net/{name}") as f:
                for fields in (line.split() for line in list(f)[1:]):
                    local, (remote, port) = fields[1].split(":")[1], fields[2].split(":")
                    if fields[3] == ESTABLISHED:
                        found.add((int(local, 16), read_address(bytes.fromhex(remote), width), int(port, 16)))
    return found


class Links:
    """What the sockets say: a pair is linked directly when each has an established connection with an address of the
    other; behind one carrier's router two homes look alike. Connections with relays are counted apart."""

    def __init__(self, homes, hosts):
        self.homes, self.hosts = homes, hosts
        self.first, self.last, self.relayed, self.over = {}, set(), {}, {}
        self.looked = 0  # when it looked last
        servers = homes.servers
        self.relays = {a for name in ("relay", "coordinator") for a in (servers[name].v4, servers[name].v6)}

    def addresses(self, home, host):
        return {host.v4, host.v6, home.public_v4()} - {None}

    def look(self, now):
        self.looked = now
        sockets = {host.name: established(host) for _, host in self.hosts}
        peers = {name: {address for _, address, port in found if port not in RELAY_PORTS or address not in self.relays}
                 for name, found in sockets.items()}
        for name, found in sockets.items():
            if any(address in self.relays and port in RELAY_PORTS for _, address, port in found):
                self.relayed.setdefault(name, now)
        self.last = set()
        for a, b in itertools.combinations(self.hosts, 2):
            there, here = peers[a[1].name] & self.addresses(*b), peers[b[1].name] & self.addresses(*a)
            if there and here:
                pair = f"{a[1].name}-{b[1].name}"
                self.last.add(pair)
                self.first.setdefault(pair, now)
                self.over[pair] = there


class Logged:
    """What one worker logs of its links, until the run `ended`; since it slept its clock is ahead."""

    def __init__(self, path, ended, ahead_s=0):
        self.events = read_events(path)
        for e in self.events:
            e["t"] -= ahead_s if e["t"] > ended + 1 else 0
        joined = [e["member"] for e in self.events if e["event"] in ("joined", "started") and "member" in e]
        self.member = joined[0] if joined else None
        self.joins = sum(e["event"] == "joined" for e in self.events)

    def links(self, member):
        """Returns the `path` and `link_down` events with that member."""
        return [e for e in self.events if e["event"] in ("path", "link_down") and e["member"] == member]

    def way(self, member):
        """Returns (way at the end, seconds to the first link or None, time of the last change of way or 0)."""
        events = self.links(member)
        ups = [e for e in events if e["event"] == "path"]
        if not ups:
            return "none", None, 0
        way = _logged_way(events[-1]) if events[-1]["event"] == "path" else "none"
        return way, round(ups[0]["seconds"], 2), events[-1]["t"]


def _logged_way(e):
    return "lan" if e["lan"] else WAYS[e["path"]] + ("6" if e["family"] == 6 else "")


def _way_of_sockets(pair, links):
    """Returns lan, 6, 4, or none: through a relay, or not at all."""
    if pair not in links.last:
        return "none"
    if any(a.startswith("192.168.") for a in links.over[pair]):
        return "lan"
    return "6" if any(":" in a for a in links.over[pair]) else "4"


def _agree(way, seen):
    return seen == {"relayed": "none", "none": "none", "lan": "lan"}.get(way, "6" if way.endswith("6") else "4")


def _join(one, other):
    """A punch from a port that nobody foretold (a symmetric router's) is an accepted link to its other end."""
    for suffix in ("", "6"):
        if {one, other} == {"punched" + suffix, "dialed" + suffix}:
            return "punched" + suffix
    return one if one == other else f"{one} and {other}"


def ways_of_pairs(links, logs, ended):
    """Returns {pair: {way, seconds, agrees}} from {host: Logged}. agrees: the sockets show the same; None: it changed too
    short a time before the last look, or after it. A pair with different words of its two workers has both, and does not agree."""
    found = {}
    for (_, a), (_, b) in itertools.combinations(links.hosts, 2):
        x, y, pair = logs[a.name], logs[b.name], f"{a.name}-{b.name}"
        (one, first, changed), (other, also_first, also_changed) = x.way(y.member), y.way(x.member)
        seconds = [s for s in (first, also_first) if s is not None]
        settled = max(changed, also_changed) < min(ended, links.looked) - SETTLED_S
        way = _join(one, other)
        agrees = " and " not in way and _agree(way, _way_of_sockets(pair, links))
        found[pair] = {"way": way, "seconds": min(seconds, default=None),
                       "agrees": agrees if settled else None}
    return found
