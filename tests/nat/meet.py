"""How two hosts can meet: what the types of their routers promise, and what is measured.

    lan       at the private address: they are in one house
    direct    one has a public address that lets everybody in
    mapped    one has had a port mapped by its router (UPnP IGD, NAT-PMP, PCP)
    learnt    one can be dialed at the mapping of its port, which a reflector has seen
    punch     both dial the mapping of the other at the same time (TCP simultaneous open); punch6: over IPv6
    hairpin   the same within one carrier's network, whose router turns the packets round
    relay     by a third host only
"""
import asyncio

import probe
from kinds import UPNP_HTTP_PORT

WAYS = ("lan", "direct", "mapped", "learnt", "punch6", "punch", "hairpin", "relay")



def is_worse(way, than):
    return WAYS.index(way) > WAYS.index(than)


# ---- what the types promise ----


def _is_independent(kind):
    """A port has one mapping, whatever it connects to."""
    return kind.mapping != "random"


def _lets_in(kind, caller):
    """A caller reaches the learnt mapping, once the port has sent something to where the caller is seen."""
    return _is_independent(kind) and (kind.filtering != "port" or _is_independent(caller))


def _expected_v4(a, b):
    x, y = a.kind, b.kind
    if not (x.router and y.router):
        return "direct"
    if any(k.upnp and not k.carrier for k in (x, y)):
        return "mapped"
    if any(k.mapping != "none" and _is_independent(k) and k.filtering == "none" for k in (x, y)):
        return "learnt"
    return "punch" if _lets_in(x, y) or _lets_in(y, x) else "relay"


def expected_way(a, b):
    """Returns the best way between a host of home a and a host of home b, from RFC 4787's types alone."""
    if a is b:
        return "lan"
    v4 = _expected_v4(a, b) if a.kind.v4 and b.kind.v4 else "relay"
    if v4 in ("direct", "mapped", "learnt"):
        return v4
    if a.kind.v6 and b.kind.v6:
        return "punch6"
    if a.edge == b.edge and v4 == "punch":  # one carrier
        return "hairpin" if a.kind.hairpin else "relay"
    return v4


# ---- what is measured ----


async def _when(condition, answer):
    return await answer if condition else _drop(answer)


def _drop(coroutine):
    coroutine.close()
    return False


async def map_port(host, port):
    """Asks the router, by UPnP IGD, for the public port of the same number. Returns whether it says that it is mapped."""
    where = f"http://192.168.1.1:{UPNP_HTTP_PORT}/rootDesc.xml"
    argv = ["ip", "netns", "exec", host.name, "upnpc", "-u", where, "-a", host.v4, str(port), str(port), "tcp"]
    for _ in range(50):  # the router may not have started
        child = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE,
                                                     stderr=asyncio.subprocess.STDOUT)
        said = (await child.communicate())[0]
        text = said.decode(errors="replace")  # upnpc prints bytes of its memory where a router answers late
        if "is redirected to internal" in text or "failed with code" in text:
            return "is redirected to internal" in text
        await asyncio.sleep(0.1)
    raise RuntimeError(f"{host.name}: upnpc: {text}")


async def _can_dial_mapped(a, b):
    """Returns whether the host of a reaches a port that b's router maps."""
    (_, caller), (home, host) = a, b
    port = probe.fresh_port()
    if not await map_port(host, port):
        return False
    with probe.Service(host, port, lambda *_: host.name), probe.open_socket(caller, probe.fresh_port()) as s:
        return await probe.try_connect(s, (home.public_v4(), port), host.name) == "open"


async def _mapped(a, b):
    asked = [_can_dial_mapped(x, y) for x, y in ((a, b), (b, a)) if y[0].kind.upnp]
    return any(await asyncio.gather(*asked))


async def measure_way(reflectors, a, b):
    """Returns the best way between two hosts, each (home, host); all ways are tried."""
    x, y = a[1], b[1]
    v4, v6 = bool(x.v4 and y.v4), bool(x.v6 and y.v6)
    private = v4 and x.v4.startswith("192.168.") and y.v4.startswith("192.168.")
    dials, learnt, punch6, punch, mapped = await asyncio.gather(
        _when(v4, probe.can_dial(x, y)), _when(v4, probe.can_dial_learnt(reflectors, x, y)),
        _when(v6, probe.can_punch(reflectors, x, y, v6=True)), _when(v4, probe.can_punch(reflectors, x, y)),
        _when(v4, _mapped(a, b)))
    if dials:
        return "lan" if private else "direct"
    for way, works in (("mapped", mapped), ("learnt", learnt), ("punch6", punch6)):
        if works:
            return way
    if punch:
        return "hairpin" if a[0].edge == b[0].edge else "punch"
    return "relay"


async def measure_ways(homes, pairs):
    """Returns the way of each pair of (home, host), all measured at the same time."""
    with probe.Reflectors(homes) as reflectors:
        return await asyncio.gather(*(measure_way(reflectors, a, b) for a, b in pairs))
