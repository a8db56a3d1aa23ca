"""Measures from outside what a home's router does to TCP (RFC 4787, RFC 5382), and how two hosts can meet.

Knows nothing of the routers' rules: it opens sockets in the namespaces of hosts and servers, and looks at who connects.
All sockets are this process's; asyncio waits for many at once.
"""
import asyncio
import itertools
import socket
import struct
from contextlib import ExitStack
from dataclasses import dataclass

from private import inside

PATIENCE_S = 30  # for what must work
SILENCE_S = 1.5  # after which nothing will come: longer than the first repetition of a SYN
ATTEMPT_S = 0.5
REFLECTOR_PORTS = (7000, 7001)

_ports = itertools.count(20000)


def fresh_port():
    """Returns a port that no other probe uses: a router that preserves ports has no reason to choose another."""
    return next(_ports)


def open_socket(host, port, v6=False):
    """Returns a socket of that host, bound to the port, which other sockets may share."""
    with inside(host.name):
        s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_STREAM)
    if v6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # no TIME_WAIT
    s.setblocking(False)
    s.bind(("::" if v6 else "0.0.0.0", port))
    return s


def listen(host, port, v6=False):
    s = open_socket(host, port, v6)
    s.listen(1024)
    return s


async def connect(s, to):
    await asyncio.get_running_loop().sock_connect(s, to)


async def send_line(s, text):
    await asyncio.get_running_loop().sock_sendall(s, text.encode() + b"\n")


async def read_line(s):
    text = b""
    while not text.endswith(b"\n"):
        part = await asyncio.get_running_loop().sock_recv(s, 256)
        if not part:
            raise ConnectionResetError("closed before the end of a line")
        text += part
    return text.decode().strip()


class Service:
    """Answers each connection to a port by a line; `text` makes it of the peer's address and port."""

    def __init__(self, host, port, text, v6=False):
        self.listener, self.text, self.kept = listen(host, port, v6), text, []
        self.task = asyncio.create_task(self._serve())

    async def _serve(self):
        while True:
            s, peer = await asyncio.get_running_loop().sock_accept(self.listener)
            self.kept.append(s)
            await send_line(s, self.text(*peer[:2]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.task.cancel()
        for s in [self.listener, *self.kept]:
            s.close()


class Reflectors:
    """Two servers, two ports each, that say to a client which address and port it is seen from."""

    def __init__(self, homes):
        self.servers = [homes.servers["coordinator"], homes.servers["relay"]]
        self.stack = ExitStack()

    def __enter__(self):
        for server in self.servers:
            for port in REFLECTOR_PORTS:
                for v6 in (False, True):
                    self.stack.enter_context(Service(server, port, lambda a, p: f"{a} {p}", v6))
        return self

    def __exit__(self, *_):
        self.stack.close()

    async def learn(self, host, port, server=0, at=0, v6=False):
        """Returns (socket, (address, port)): from where that server sees that port of the host. The socket stays open:
        so does the mapping."""
        server = self.servers[server]
        s = open_socket(host, port, v6)
        await asyncio.wait_for(connect(s, (server.v6 if v6 else server.v4, REFLECTOR_PORTS[at])), PATIENCE_S)
        address, seen = (await asyncio.wait_for(read_line(s), PATIENCE_S)).split()
        return s, (address, int(seen))


async def try_connect(s, to, expect, silence_s=SILENCE_S, greeting="hello"):
    """Returns "open", "reset" or "silence"; "stranger" where somebody answers with another line than `expect`."""
    async def attempt():
        await connect(s, to)
        await send_line(s, greeting)
        return "open" if await read_line(s) == expect else "stranger"
    try:
        return await asyncio.wait_for(attempt(), silence_s)
    except ConnectionRefusedError:
        return "reset"
    except (asyncio.TimeoutError, OSError):  # or no route, or the address and port are taken by another connection
        return "silence"


@dataclass(frozen=True)
class Nat:
    """What was measured. mapping: none, independent, address, port (another one for each address, or port); filtering:
    none, address, port; refusal: how what is not let in is answered."""

    mapping: str
    preserved: bool
    filtering: str
    refusal: str


async def measure_mapping(reflectors, host, port=None, v6=False):
    """Returns (mapping, whether the public port is the host's)."""
    port = port or fresh_port()
    seen = [await reflectors.learn(host, port, server, at, v6) for server, at in ((0, 0), (0, 1), (1, 0))]
    for s, _ in seen:
        s.close()
    first, other_port, other_server = (where for _, where in seen)
    preserved = first[1] == port
    if first[0] == (host.v6 if v6 else host.v4):
        return "none", preserved
    if first == other_port == other_server:
        return "independent", preserved
    return ("address" if first == other_port else "port"), preserved


async def measure_filtering(reflectors, host, v6=False):
    """Returns (filtering, refusal). Another port of the server that the host has connected to, and another server,
    connect to the port that was learnt."""
    port = fresh_port()
    with Service(host, port, lambda *_: "inside", v6):
        kept, where = await reflectors.learn(host, port, v6=v6)
        sockets = [open_socket(server, fresh_port(), v6) for server in reflectors.servers]
        same, other = await asyncio.gather(*(try_connect(s, where, "inside") for s in sockets))
        for s in [kept, *sockets]:
            s.close()
    filtering = "none" if other == "open" else "address" if same == "open" else "port"
    return filtering, "" if filtering == "none" else other


async def measure(reflectors, host, v6=False):
    (mapping, preserved), (filtering, refusal) = await asyncio.gather(
        measure_mapping(reflectors, host, v6=v6), measure_filtering(reflectors, host, v6))
    return Nat(mapping, preserved, filtering, refusal)


# ---- two hosts ----


class End:
    """One host of a pair: a port with a listener, the connection by which its mapping was learnt, and all attempts."""

    def __init__(self, host, v6):
        self.host, self.v6, self.port = host, v6, fresh_port()
        self.service = Service(host, self.port, lambda *_: host.name, v6)
        self.kept = self.where = None

    async def learn(self, reflectors):
        self.kept, self.where = await reflectors.learn(self.host, self.port, v6=self.v6)

    def close(self):
        self.service.__exit__()
        if self.kept:
            self.kept.close()

    async def dial(self, other, from_port, silence_s=SILENCE_S):
        """Returns whether the other host answers at the mapping that it has learnt."""
        with open_socket(self.host, from_port, self.v6) as s:
            return await try_connect(s, other.where, other.host.name, silence_s, self.host.name) == "open"


async def either(one, other):
    return any(await asyncio.gather(one, other))


async def two_ends(reflectors, x, y, v6, then):
    ends = End(x, v6), End(y, v6)
    try:
        await asyncio.gather(*(end.learn(reflectors) for end in ends))
        return await then(*ends)
    finally:
        for end in ends:
            end.close()


async def can_dial(x, y, v6=False):
    """Returns whether one of them reaches the other's address at a port of which nobody has learnt anything."""
    async def dial(a, b):
        port = fresh_port()
        with open_socket(a, fresh_port(), v6) as s, Service(b, port, lambda *_: b.name, v6):
            return await try_connect(s, (b.v6 if v6 else b.v4, port), b.name) == "open"
    return await either(dial(x, y), dial(y, x))


async def can_dial_learnt(reflectors, x, y, v6=False):
    """Returns whether one of them reaches the mapping that the other has learnt, which itself does nothing."""
    async def then(a, b):
        return await either(a.dial(b, fresh_port()), b.dial(a, fresh_port()))
    return await two_ends(reflectors, x, y, v6, then)


async def punch(a, b, attempts=5):
    """Both ends dial the mapping that the other has learnt, each from the port of its own: the SYN of one opens its
    router for the SYN of the other. Returns the number of attempts that it took; 0: no connection."""
    for attempt in range(1, attempts + 1):
        if await either(a.dial(b, a.port, ATTEMPT_S), b.dial(a, b.port, ATTEMPT_S)):
            return attempt
    return 0


async def can_punch(reflectors, x, y, v6=False):
    return await two_ends(reflectors, x, y, v6, punch) > 0
