#!/usr/bin/env python3
"""test_nat_homes.py BIN_DIR: the homes of homes.py are what they are called, by probes that know nothing of their rules.

Mapping and filtering of each kind, the way of each pair, what a router forgets, real UPnP, NAT-PMP and PCP, and that a
killed program leaves nothing. Exits with 77 where homes cannot be made."""
import asyncio
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest

import private

PROGRAMS = ("unshare", "ip", "nft", "conntrack", "miniupnpd", "upnpc", "natpmpc")
private.enter(PROGRAMS)

import probe  # noqa: E402 (after the program has been started again)
from homes import Homes  # noqa: E402
from kinds import LAN  # noqa: E402
from matrix import TRIES, Matrix  # noqa: E402
from probe import Nat, Reflectors, Service, fresh_port, open_socket, try_connect  # noqa: E402

BIN_DIR = sys.argv.pop(1)
DEADLINE_S = 60  # for what must happen
ROUTER = f"{LAN}.1"

# RFC 4787's words for each home; by the name of the kind, as a router's documentation would say it.
TYPES = {
    "open": Nat("none", True, "none", ""),
    "firewall": Nat("none", True, "port", "silence"),
    "firewall+reset": Nat("none", True, "port", "reset"),
    "full-cone": Nat("independent", True, "none", ""),
    "address-restricted": Nat("independent", True, "address", "silence"),
    "port-restricted": Nat("independent", True, "port", "silence"),
    "port-restricted+reset": Nat("independent", True, "port", "reset"),
    "sequential": Nat("independent", False, "port", "silence"),
    "masquerade": Nat("independent", True, "port", "silence"),
    "symmetric": Nat("port", False, "port", "silence"),
    "double": Nat("independent", False, "port", "silence"),
    "upnp": Nat("independent", True, "port", "silence"),
    "double-upnp": Nat("independent", False, "port", "silence"),
    "ipv6": Nat("none", True, "port", "silence"),
    "dual": Nat("independent", True, "port", "silence"),
}


class Scene(unittest.TestCase):
    """A test with homes of its own: `open_homes`, then `run`."""

    def open_homes(self, *specs, delay_ms=0):
        homes = Homes(BIN_DIR, specs, delay_ms)
        self.addCleanup(homes.close)
        return homes

    def with_reflectors(self, homes, test):
        async def body():
            with Reflectors(homes) as reflectors:
                return await test(reflectors)
        return asyncio.run(body())


class Types(Scene):
    def test_each_home_is_of_the_type_that_it_is_called(self):
        homes = self.open_homes(*TYPES)
        found = {}
        for _ in range(TRIES):
            todo = [home for home in homes.homes if found.get(home.spec) != TYPES[home.spec]]
            measured = self.with_reflectors(homes, lambda r, todo=todo: self.measure_all(r, todo))
            found.update((home.spec, nat) for home, nat in zip(todo, measured))
        self.assertEqual(found, TYPES)

    async def measure_all(self, reflectors, homes):
        hosts = [home.hosts[0] for home in homes]
        return await asyncio.gather(*(probe.measure(reflectors, host, v6=not host.v4) for host in hosts))

    def test_the_firewall_of_a_dual_home_holds_for_ipv6(self):
        homes = self.open_homes("dual")
        found = self.with_reflectors(homes, lambda r: probe.measure(r, homes.host("h1a"), v6=True))
        self.assertEqual(found, Nat("none", True, "port", "silence"))

    def test_masquerade_is_independent_of_the_endpoint_only_while_no_other_host_uses_the_port(self):
        homes = self.open_homes("masquerade*2", "port-restricted*2")

        async def same_port_twice(reflectors, first, second):
            """Returns the port of both hosts and the public ports: the first's at server 0, the second's at 1 and at 0."""
            port = fresh_port()
            seen = [await reflectors.learn(homes.host(h), port, server)
                    for h, server in ((first, 0), (second, 1), (second, 0))]
            for s, _ in seen:
                s.close()
            return [port, *(where[1] for _, where in seen)]

        port, first, at_1, at_0 = self.with_reflectors(homes, lambda r: same_port_twice(r, "h1a", "h1b"))
        self.assertEqual((first, at_1), (port, port))
        self.assertNotEqual(at_0, port)
        port, first, at_1, at_0 = self.with_reflectors(homes, lambda r: same_port_twice(r, "h2a", "h2b"))
        self.assertEqual(first, port)
        self.assertNotEqual(at_1, port)
        self.assertEqual(at_0, at_1)


class Pairs(Scene):
    def test_each_pair_meets_in_the_way_that_its_types_promise(self):
        matrix = Matrix(BIN_DIR)
        self.addCleanup(matrix.homes.close)
        for name, (expected, way) in matrix.measure().items():
            with self.subTest(pair=name):
                self.assertEqual(way, expected)


class Routers(Scene):
    def test_a_router_forgets_its_mappings(self):
        homes = self.open_homes("full-cone", "sequential", "full-cone+idle=1")
        self.with_reflectors(homes, lambda r: self.forgotten(homes, r))

    async def is_reached(self, homes, host, where, port):
        """Returns whether the relay, which the host has not contacted, reaches its port."""
        with Service(host, port, lambda *_: "inside"), open_socket(homes.servers["relay"], fresh_port()) as s:
            return await try_connect(s, where, "inside", 1.0) == "open"

    async def forgotten(self, homes, reflectors):
        cone, sequential, idle = (home.hosts[0] for home in homes.homes)
        ports = fresh_port(), fresh_port(), fresh_port()
        kept = [await reflectors.learn(host, port) for host, port in zip((cone, sequential, idle), ports)]
        where = [address for _, address in kept]
        self.assertTrue(await self.is_reached(homes, cone, where[0], ports[0]))
        for home in homes.homes[:2]:
            homes.forget(home)
        self.assertFalse(await self.is_reached(homes, cone, where[0], ports[0]))
        s, again = await reflectors.learn(sequential, ports[1], server=1)
        self.assertNotEqual(again[1], where[1][1])
        await asyncio.sleep(1.5)
        self.assertFalse(await self.is_reached(homes, idle, where[2], ports[2]))
        for s in [s, *(s for s, _ in kept)]:
            s.close()

    def test_a_router_gets_another_public_address(self):
        homes = self.open_homes("masquerade", "open", "double@1", "double@1")

        async def moved(reflectors):
            for home in homes.homes[:3]:
                s, before = await reflectors.learn(home.hosts[0], fresh_port())
                homes.move(home)
                s.close()
                s, after = await reflectors.learn(home.hosts[0], fresh_port())
                s.close()
                self.assertNotEqual(after[0], before[0])
                self.assertEqual(after[0], home.public_v4())
            self.assertEqual(homes.homes[3].public_v4(), homes.homes[2].public_v4())

        self.with_reflectors(homes, moved)

    def test_a_line_has_the_delay_that_was_asked_for_and_can_be_cut(self):
        homes = self.open_homes("masquerade", delay_ms=40)

        async def timed(reflectors):
            start = time.monotonic()
            s, _ = await reflectors.learn(homes.host("h1a"), fresh_port())
            s.close()
            self.assertGreater(time.monotonic() - start, 2 * 2 * 0.040 - 0.005)  # connection, then a line
            homes.line(homes.homes[0], "cut")
            with open_socket(homes.host("h1a"), fresh_port()) as s:
                self.assertEqual(await try_connect(s, ("11.86.0.1", 7000), None, 1.0), "silence")
            homes.line(homes.homes[0], "heal")
            s, _ = await reflectors.learn(homes.host("h1a"), fresh_port())
            s.close()

        self.with_reflectors(homes, timed)

    def test_the_bystander_counts_and_answers_nothing(self):
        homes = self.open_homes("masquerade")
        self.assertEqual(homes.bystander_packets(), 0)

        async def knock():
            with open_socket(homes.host("h1a"), fresh_port()) as s:
                return await try_connect(s, (homes.servers["bystander"].v4, 80), None, 1.0)

        end = time.monotonic() + DEADLINE_S  # a packet that is late is not lost
        while homes.bystander_packets() == 0 and time.monotonic() < end:
            self.assertEqual(asyncio.run(knock()), "silence")
        self.assertGreaterEqual(homes.bystander_packets(), 1)


class PortMapping(Scene):
    """miniupnpd is what a home's router runs; Debian's clients, and a PCP request by hand, are its judges."""

    def test_a_port_is_mapped_by_each_of_the_three_protocols_and_removed(self):
        homes = self.open_homes("upnp")
        host = homes.host("h1a")
        self.assertIn("Found valid IGD", self.run_until(homes, ["upnpc", "-m", "eth0", "-s"], "Found valid IGD"))
        protocols = {"UPnP IGD": (self.add_upnp, self.remove_upnp), "NAT-PMP": (self.add_natpmp, self.remove_natpmp),
                     "PCP": (self.add_pcp, self.remove_pcp)}
        ports = {name: fresh_port() for name in protocols}
        self.assert_dialed(homes, host, ports, "silence")
        for name, (add, _) in protocols.items():
            add(homes, ports[name])
        self.assert_dialed(homes, host, ports, "open")
        for name, (_, remove) in protocols.items():
            remove(homes, ports[name])
        self.assert_dialed(homes, host, ports, "silence")

    def test_a_router_that_claims_its_carriers_address_maps_ports_that_nobody_reaches(self):
        homes = self.open_homes("double-upnp+claims")
        ports = {"UPnP IGD": fresh_port(), "NAT-PMP": fresh_port()}
        self.add_upnp(homes, ports["UPnP IGD"])
        self.add_natpmp(homes, ports["NAT-PMP"])
        self.assert_dialed(homes, homes.host("h1a"), ports, "silence")

    def assert_dialed(self, homes, host, ports, what):
        """What a stranger gets from each of the ports of the router."""
        async def dial(port):
            with Service(host, port, lambda *_: "inside"), open_socket(homes.servers["relay"], fresh_port()) as s:
                return await try_connect(s, (homes.homes[0].public_v4(), port), "inside")

        async def dial_all():
            return await asyncio.gather(*(dial(port) for port in ports.values()))

        self.assertEqual(dict(zip(ports, asyncio.run(dial_all()))), dict.fromkeys(ports, what))

    def run_until(self, homes, argv, text):
        end = time.monotonic() + DEADLINE_S
        while True:
            child = homes.start(argv, "h1a", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            said = child.communicate()[0]
            if text in said or time.monotonic() > end:
                return said
            time.sleep(0.2)

    def upnpc(self, homes, text, *args):
        self.assertIn(text, self.run_until(homes, ["upnpc", "-u", f"http://{ROUTER}:5000/rootDesc.xml", *args], text))

    def add_upnp(self, homes, port):
        self.upnpc(homes, "is redirected to internal", "-a", f"{LAN}.10", str(port), str(port), "tcp")

    def remove_upnp(self, homes, port):
        self.upnpc(homes, "UPNP_DeletePortMapping() returned : 0", "-d", str(port), "tcp")

    def natpmpc(self, homes, port, lifetime_s):
        argv = ["natpmpc", "-g", ROUTER, "-a", str(port), str(port), "tcp", str(lifetime_s)]
        self.assertIn("Mapped public port", self.run_until(homes, argv, "Mapped public port"))

    def add_natpmp(self, homes, port):
        self.natpmpc(homes, port, 3600)

    def remove_natpmp(self, homes, port):
        self.natpmpc(homes, port, 0)

    def pcp(self, homes, port, lifetime_s):
        """A MAP request of RFC 6887, section 11.1. Returns (result code, external port, external address)."""
        def mapped(address):
            return b"\0" * 10 + b"\xff\xff" + socket.inet_aton(address)
        request = struct.pack("!BBHI", 2, 1, 0, lifetime_s) + mapped(f"{LAN}.10")
        request += b"rivulet-test" + struct.pack("!B3xHH", socket.IPPROTO_TCP, port, port) + mapped("0.0.0.0")
        with private.inside("h1a"):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with s:
            s.settimeout(DEADLINE_S)
            s.sendto(request, (ROUTER, 5351))
            reply = s.recv(1100)
        external, = struct.unpack_from("!H", reply, 42)
        return reply[3], external, socket.inet_ntoa(reply[56:60])

    def add_pcp(self, homes, port):
        self.assertEqual(self.pcp(homes, port, 3600), (0, port, homes.homes[0].public_v4()))

    def remove_pcp(self, homes, port):
        self.assertEqual(self.pcp(homes, port, 0)[0], 0)


class Leftovers(unittest.TestCase):
    def test_a_killed_program_leaves_nothing(self):
        here = os.path.dirname(os.path.abspath(__file__))
        program = subprocess.Popen([sys.executable, "-B", f"{here}/homes.py", BIN_DIR, "masquerade", "upnp"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        made = json.loads(program.stdout.readline())
        self.assertEqual(made["h1a"]["v4"], f"{LAN}.10")
        self.assertTrue(os.path.exists(f"/proc/{program.pid}/root{made['h1a']['namespace']}"))
        self.assertTrue(self.children_of(program.pid))
        program.send_signal(signal.SIGKILL)
        program.wait()
        end = time.monotonic() + DEADLINE_S
        while self.programs("shaped_net|miniupnpd|homes.py"):
            self.assertLess(time.monotonic(), end, self.programs("."))
            time.sleep(0.05)
        self.assertFalse(os.path.exists(made["h1a"]["namespace"]))
        program.stdin.close()
        program.stdout.close()

    def children_of(self, pid):
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return f.read().split()

    def programs(self, pattern):
        """Returns the command lines in this process's own process-id namespace, without its own."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline") as f:
                    text = f.read().replace("\0", " ")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(pid) != os.getpid() and re.search(pattern, text):
                found.append(text)
        return found


if __name__ == "__main__":
    unittest.main(verbosity=2)
