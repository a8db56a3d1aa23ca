#!/usr/bin/env python3
"""test_nat_portmap.py BIN_DIR: net/portmap gets a port of a real router (miniupnpd) by each protocol, strangers reach
the host there, the mapping is gone afterwards; and what it says of routers that give none. Exits with 77 where homes
cannot be made."""
import asyncio
import subprocess
import sys
import unittest

import private

private.enter(("unshare", "ip", "nft", "conntrack", "miniupnpd"))

from homes import Homes  # noqa: E402 (after the program has been started again)
from kinds import LAN  # noqa: E402
from probe import Service, fresh_port, open_socket, try_connect  # noqa: E402

BIN_DIR = sys.argv.pop(1)
TRIES = 5
# A NAT-PMP router that answers the question about its address twice: as one does that was so slow that it was asked again.
TWICE = """
import socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 5351))
print("listens", flush=True)
while True:
    question, where = s.recvfrom(64)
    if question[1] == 0:
        for _ in range(2):
            s.sendto(struct.pack("!BBHI4s", 0, 128, 0, 1, socket.inet_aton("11.86.0.4")), where)
    else:
        s.sendto(struct.pack("!BBHIHHI", 0, 128 + question[1], 0, 1, *struct.unpack("!HHI", question[4:])), where)
"""


class PortMap(unittest.TestCase):
    def open_homes(self, *specs):
        homes = Homes(BIN_DIR, specs)
        self.addCleanup(homes.close)
        return homes

    def map(self, homes, host, protocol, port):
        """Returns the program, and its line: protocol, host, port, text."""
        child = homes.start([f"{BIN_DIR}/map_port", protocol, str(port)], host, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
        return child, child.stdout.readline().split(maxsplit=3)

    def map_by(self, homes, host, protocol, port):
        """The same; again until the router serves."""
        for _ in range(TRIES):
            child, said = self.map(homes, host, protocol, port)
            if said[0] != "none":
                break
            child.stdin.close()
            child.wait()
        return child, said

    def end(self, child):
        child.stdin.close()
        self.assertEqual(child.wait(), 0)
        child.stdout.close()

    def dialed(self, homes, host, inside, outside):
        """What a stranger gets from the port of the first home's router."""
        async def dial():
            with Service(homes.host(host), inside, lambda *_: "inside"), \
                    open_socket(homes.servers["relay"], fresh_port()) as s:
                return await try_connect(s, (homes.homes[0].public_v4(), outside), "inside")
        return asyncio.run(dial())

    def test_each_protocol(self):
        homes = self.open_homes("upnp")
        for protocol in ("PCP", "NAT-PMP", "UPnP"):
            with self.subTest(protocol):
                port = fresh_port()
                child, said = self.map_by(homes, "h1a", protocol, port)
                self.assertEqual(said[:3], [protocol, homes.homes[0].public_v4(), str(port)])
                self.assertEqual(self.dialed(homes, "h1a", port, port), "open")
                self.end(child)
                self.assertEqual(self.dialed(homes, "h1a", port, port), "silence")

    def test_an_answer_that_comes_twice_is_none_to_the_next_question(self):
        homes = self.open_homes("masquerade")
        router = homes.start([sys.executable, "-c", TWICE, f"{LAN}.1"], homes.homes[0].router, stdout=subprocess.PIPE, text=True)
        router.stdout.readline()
        port = fresh_port()
        child, said = self.map(homes, "h1a", "NAT-PMP", port)
        self.assertEqual(said[:3], ["NAT-PMP", "11.86.0.4", str(port)])
        self.end(child)
        router.kill()
        router.wait()
        router.stdout.close()

    def test_two_workers_of_a_house_get_two_ports(self):
        homes = self.open_homes("upnp*2")
        for protocol in ("any", "UPnP"):
            with self.subTest(protocol):
                port = fresh_port()
                one, said_one = self.map_by(homes, "h1a", protocol, port)
                two, said_two = self.map_by(homes, "h1b", protocol, port)
                self.assertNotEqual(said_one[2], said_two[2])
                self.assertEqual(self.dialed(homes, "h1a", port, int(said_one[2])), "open")
                self.assertEqual(self.dialed(homes, "h1b", port, int(said_two[2])), "open")
                self.end(one)
                self.end(two)
                self.assertEqual(self.dialed(homes, "h1b", port, int(said_two[2])), "silence")

    def test_a_router_that_maps_nothing(self):
        homes = self.open_homes("masquerade")
        child, said = self.map(homes, "h1a", "any", fresh_port())
        self.assertEqual(said[0], "none")
        self.assertIn("neither PCP nor NAT-PMP nor UPnP", " ".join(said))
        self.end(child)

    def test_a_router_behind_a_carriers(self):
        homes = self.open_homes("double-upnp")
        for _ in range(TRIES):  # until the router serves
            child, said = self.map(homes, "h1a", "any", fresh_port())
            self.end(child)
            if "another router" in " ".join(said):
                return
        self.fail(" ".join(said))

    def test_no_router_at_all(self):
        homes = self.open_homes("open")
        child, said = self.map(homes, "h1a", "any", fresh_port())
        self.assertEqual(said[0], "none")
        self.end(child)


if __name__ == "__main__":
    unittest.main(verbosity=2)
