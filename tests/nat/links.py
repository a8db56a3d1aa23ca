"""Who is linked with whom, and how: what the workers log (`path`, `link_down`), held against the sockets of the hosts.

A pair's way, as its two workers log it: dialed (by one of them), punched (both at one moment), relayed, none. A 6 is added
where the sockets have it over IPv6, and `lan` stands for a dial within a house.
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
        servers = homes.servers
        self.relays = {a for name in ("relay", "coordinator") for a in (servers[name].v4, servers[name].v6)}

    def addresses(self, home, host):
        return {host.v4, host.v6, home.public_v4()} - {None}

    def look(self, now):
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
        """Returns (way at the end or None, seconds to the first link, seconds to the last change of way, its time)."""
        events = self.links(member)
        ups = [e for e in events if e["event"] == "path"]
        if not ups:
            return None, None, None
        way = WAYS[events[-1]["path"]] if events[-1]["event"] == "path" else None
        return way, round(ups[0]["seconds"], 2), events[-1]["t"]


def _join(one, other):
    return one if one == other else f"{one} and {other}"


def _class(way, pair, links):
    """Adds what only the sockets know."""
    if way is None:
        return "none"
    if way == "relayed":
        return way
    addresses = links.over.get(pair, set())
    if any(a.startswith("192.168.") for a in addresses):
        return "lan"
    return way + "6" if any(":" in a for a in addresses) else way


def ways_of_pairs(links, logs, ended):
    """Returns {pair: {way, seconds, agrees}} from {host: Logged}. agrees: the sockets show the same; None: it changed too
    short a time before the end. A pair with different words of its two workers has both, and does not agree."""
    found = {}
    for (_, a), (_, b) in itertools.combinations(links.hosts, 2):
        x, y, pair = logs[a.name], logs[b.name], f"{a.name}-{b.name}"
        ends = [x.way(y.member), y.way(x.member)]
        way = _join(*(_class(end[0], pair, links) for end in ends))
        seconds = [end[1] for end in ends if end[1] is not None]
        changed = max((end[2] for end in ends if end[2] is not None), default=0)
        agrees = " and " not in way and (pair in links.last) == (way not in ("none", "relayed"))
        found[pair] = {"way": way, "seconds": min(seconds, default=None),
                       "agrees": agrees if changed < ended - SETTLED_S else None}
    return found
