#!/usr/bin/env python3
"""Homes behind routers of many kinds, and an internet between them, of network namespaces. Needs root; leaves nothing.

    homes.py BIN_DIR [--delay MS] [--rate MBIT] HOME... [-- COMMAND [ARGUMENT...]]

HOME is KIND[+hairpin][+reset][+claims][+idle=SECONDS][*HOSTS][@CARRIER]; the kinds are in kinds.py. BIN_DIR has the program
shaped_net. Home 1 has the hosts h1a and (with *2) h1b, and the router r1; homes with the same @CARRIER share the router
c<CARRIER>. Servers on the internet: coordinator, relay, and bystander, which drops and counts whatever is sent to it.
Without a COMMAND, commands are read from stdin and each is answered by one line of JSON:

    list                    every host with its namespace and addresses (also printed at the start)
    forget HOME             its routers forget all mappings and connections
    move HOME               its public address becomes another one
    cut HOME | heal HOME    nothing passes its line, and nobody is notified
    unplug HOME             its hosts lose their cable, and with it their addresses
    wireless HOME           its hosts have another interface with other addresses
    bystander               packets that were sent to the bystander
    run HOST COMMAND...     output goes to stderr; the answer is the exit status
"""
import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import replace

import private
from kinds import CARRIER, CARRIER_LAN, COUNT_ALL, LAN, UPNP_CONF, UPNP_HTTP_PORT, parse, rules
from private import enter_namespace, inside

SERVERS = ("coordinator", "relay", "bystander")
PR_SET_PDEATHSIG = 1
MOST_SITES = 40  # of shaped_net


def ip(lines, name=None):
    """Runs lines of `ip -batch`, in the namespace."""
    where = ["-n", name] if name else []
    subprocess.run(["ip", *where, "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True)


def write_sysctls(name, settings):
    with inside(name):
        for key, value in settings.items():
            with open(f"/proc/sys/net/{key}", "w") as f:
                f.write(str(value))


class Host:
    def __init__(self, name, v4=None, v6=None):
        self.name, self.v4, self.v6 = name, v4, v6
        self.device, self.joined = "eth0", 0  # in a home: its interface, the wireless ones that it has had

    def as_json(self):
        return {"namespace": f"{private.NETNS}/{self.name}", "v4": self.v4, "v6": self.v6}


class Home:
    def __init__(self, number, spec):
        self.number, self.spec = number, spec
        self.name, self.kind, hosts, self.carrier = parse(spec)
        self.hosts = [Host(f"h{number}{letter}") for letter in "ab"[:hosts]]
        self.router = f"r{number}" if self.kind.router else None
        self.edge = None  # the namespace with wan0 on the internet
        self.site = None
        self.moves = 0

    def public_v4(self):
        return f"11.86.{self.moves}.{self.site}"


class Homes:
    """Opens the internet and the homes; the caller closes it, or ends. `delay_ms`: from one site to another."""

    def __init__(self, bin_dir, specs, delay_ms=0, rate_mbit=0):
        self.homes = [Home(i, spec) for i, spec in enumerate(specs, 1)]
        self.servers = {name: Host(name, f"11.86.0.{i}", f"2a11:86:1::{i:x}") for i, name in enumerate(SERVERS, 1)}
        self.children, self.internet, self.carriers = [], None, {}
        sites = self._place()
        if len(sites) > MOST_SITES:
            raise ValueError(f"{len(sites)} lines to the internet: at most {MOST_SITES}")
        try:
            self._make_namespaces(sites)
            self._join_with_cables()
            self._start_internet(bin_dir, sites, delay_ms, rate_mbit)
            self._make_servers()
            for name, (site, kind) in self.carriers.items():
                self._make_carrier(name, site, kind)
            for home in self.homes:
                self._make_home(home)
        except BaseException:
            self.close()
            raise

    # ---- who has which line ----

    def _place(self):
        """Returns the namespaces that have a line to the internet, in the order of their sites."""
        sites = list(SERVERS)
        for home in self.homes:
            if home.kind.carrier:
                key = f"c{home.carrier}" if home.carrier is not None else f"c-{home.number}"
                if key not in self.carriers:
                    sites.append(key)
                    self.carriers[key] = (len(sites), replace(CARRIER, hairpin=home.kind.hairpin))
                home.edge, home.site = key, self.carriers[key][0]
            else:
                home.edge = home.router or home.hosts[0].name
                sites.append(home.edge)
                home.site = len(sites)
        return sites

    def _make_namespaces(self, sites):
        self.names = list(dict.fromkeys(sites + [n for home in self.homes for n in
                                                 [home.router, *(h.name for h in home.hosts)] if n]))
        ip([f"netns add {name}" for name in self.names])

    def _join_with_cables(self):
        lines = []
        for home in self.homes:
            if home.router:
                lines += [f"link add eth0 netns {h.name} type veth peer name lan{h.name[-1]} netns {home.router}"
                          for h in home.hosts]
            if home.kind.carrier:
                lines.append(f"link add wan0 netns {home.router} type veth peer name s{home.number} netns {home.edge}")
        if lines:
            ip(lines)

    def start(self, argv, name=None, **options):
        """Starts a child, in the namespace, that ends with this process."""
        def prepare():
            private.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if name:
                enter_namespace(name)
        options.setdefault("stdin", subprocess.DEVNULL)
        child = subprocess.Popen(argv, preexec_fn=prepare, **options)
        self.children.append(child)
        return child

    def _start_internet(self, bin_dir, sites, delay_ms, rate_mbit):
        self.internet = self.start([f"{bin_dir}/shaped_net", f"{rate_mbit * 1e6:.0f}", str(delay_ms), *sites],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.internet.stdout.readline().strip() != "ready":
            raise RuntimeError("shaped_net did not start")

    # ---- what is where ----

    def _make_servers(self):
        for server in self.servers.values():
            ip(["link set lo up", f"addr add {server.v4}/32 dev wan0", f"addr add {server.v6}/128 dev wan0 nodad",
                "link set wan0 mtu 1500 up", "route add default dev wan0", "route add ::/0 dev wan0"], server.name)
        self._nft("bystander", COUNT_ALL)

    def _nft(self, name, text):
        with inside(name):
            subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)

    def _make_carrier(self, name, site, kind):
        ports = [f"s{home.number}" for home in self.homes if home.edge == name]
        self._wire(name, ports, [f"addr add 11.86.0.{site}/32 dev wan0", f"addr add {CARRIER_LAN}.1/24 dev lan0",
                                 "route add default dev wan0"])
        self._make_router(name, kind, CARRIER_LAN)

    def _wire(self, name, ports, lines):
        """Makes the bridge lan0 of the ports, and sets addresses."""
        ip(["link set lo up", "link add lan0 type bridge", "link set wan0 mtu 1500 up",
            *(f"link set {port} master lan0 up" for port in ports), "link set lan0 up", *lines], name)

    def _make_router(self, name, kind, lan):
        settings = {"ipv4/ip_forward": 1, "ipv6/conf/all/forwarding": 1}
        if kind.idle_s:
            settings["netfilter/nf_conntrack_tcp_timeout_established"] = kind.idle_s
        if os.path.exists("/proc/sys/net/bridge"):  # the router does not look at what stays in its LAN
            settings["bridge/bridge-nf-call-iptables"] = settings["bridge/bridge-nf-call-ip6tables"] = 0
        write_sysctls(name, settings)
        self._nft(name, rules(kind, lan))

    def _make_home(self, home):
        if not home.router:
            host = home.hosts[0]
            host.v4 = home.public_v4()
            ip(["link set lo up", f"addr add {host.v4}/32 dev wan0", "link set wan0 mtu 1500 up",
                "route add default dev wan0"], host.name)
            return
        lines = []
        if home.kind.v4:
            lines += self._v4_lines(home)
        if home.kind.v6:
            lines += [f"addr add 2a11:86:0:{home.site:x}::1/64 dev lan0 nodad", "route add ::/0 dev wan0"]
        self._wire(home.router, [f"lan{h.name[-1]}" for h in home.hosts], lines)
        self._make_router(home.router, home.kind, LAN)
        for i, host in enumerate(home.hosts):
            self._make_host(home, host, i)
        if home.kind.upnp:
            self._start_upnp(home)

    def _v4_lines(self, home):
        if home.kind.carrier:
            address = [f"addr add {CARRIER_LAN}.{10 + home.number}/24 dev wan0", f"route add default via {CARRIER_LAN}.1"]
        elif home.kind.mapping == "none":  # the hosts have the public addresses
            address = ["addr add 192.0.0.8/32 dev wan0", "route add default dev wan0",
                       *(f"route add 11.86.{100 + i}.{home.site}/32 dev lan0" for i in range(len(home.hosts)))]
        else:
            address = [f"addr add {home.public_v4()}/32 dev wan0", "route add default dev wan0"]
        return [*address, f"addr add {LAN}.1/24 dev lan0"]

    def _make_host(self, home, host, i):
        device, lines = host.device, ["link set lo up", f"link set {host.device} mtu 1500 up"]
        if home.kind.v4:
            own = f"{LAN}.{10 + i}/24" if home.kind.mapping != "none" else f"11.86.{100 + i}.{home.site}/32"
            host.v4 = own.split("/")[0]
            lines += [f"addr add {own} dev {device}", f"route add {LAN}.1 dev {device}",
                      f"route add default via {LAN}.1 onlink dev {device}"]
        if home.kind.v6:
            host.v6 = f"2a11:86:0:{home.site:x}::{i + 10:x}:{home.site:x}"
            lines += [f"addr add {host.v6}/64 dev {device} nodad", f"route add ::/0 via 2a11:86:0:{home.site:x}::1 dev {device}"]
        ip(lines, host.name)

    def _start_upnp(self, home):
        conf = f"/run/upnp-{home.router}.conf"
        with open(conf, "w") as f:
            more = f"ext_ip={home.public_v4()}\n" if home.kind.claims else ""
            f.write(UPNP_CONF.format(name=home.router, number=home.number, port=UPNP_HTTP_PORT, more=more))
        with open(f"/run/upnp-{home.router}.log", "w") as log:
            self.start(["miniupnpd", "-d", "-f", conf, "-P", f"/run/upnp-{home.router}.pid"], home.router, stdout=log,
                       stderr=log)

    # ---- what is done to them ----

    def host(self, name):
        """Returns the host of that name: coordinator, h3a, ..."""
        if name in self.servers:
            return self.servers[name]
        for home in self.homes:
            for host in home.hosts:
                if host.name == name:
                    return host
        raise ValueError(f"there is no host {name}")

    def routers(self, home):
        return [n for n in dict.fromkeys((home.router, home.edge)) if n and not n.startswith("h")]

    def forget(self, home):
        for name in self.routers(home):
            with inside(name):
                listed = subprocess.run(["nft", "list", "maps"], capture_output=True, text=True, check=True).stdout
                if "map out" in listed:
                    self._nft(name, "flush map ip nat out; flush map ip nat in; flush set ip nat met")
                subprocess.run(["conntrack", "-F"], capture_output=True, check=True)

    def move(self, home):
        """Its line gets another public address; connections are not notified."""
        if home.kind.mapping == "none" and home.router or not home.kind.v4:
            raise ValueError(f"{home.spec}: has no IPv4 address of a router that could change")
        old = home.public_v4()
        home.moves += 1
        ip([f"addr del {old}/32 dev wan0", f"addr add {home.public_v4()}/32 dev wan0", "route replace default dev wan0"],
           home.edge)
        for other in self.homes:
            if other.edge == home.edge:
                other.moves = home.moves
                if not other.router:
                    other.hosts[0].v4 = other.public_v4()

    def _must_have_lan(self, home):
        if not home.router or home.kind.mapping == "none" and home.kind.v4:
            raise ValueError(f"{home.spec}: its hosts have the addresses of its line, not of a network at home")

    def unplug(self, home):
        """The hosts lose their interface and its addresses: connections made from them cannot go on."""
        self._must_have_lan(home)
        for host in home.hosts:
            ip([f"link set {host.device} down", f"addr flush dev {host.device}"], host.name)

    def wireless(self, home):
        """The hosts, which were unplugged, join the router's network by a new interface with new addresses."""
        self._must_have_lan(home)
        for i, host in enumerate(home.hosts):
            host.device, host.joined = f"wlan{host.joined}", host.joined + 1
            port = f"{host.device}{host.name[-1]}"
            ip([f"link add {host.device} netns {host.name} type veth peer name {port} netns {home.router}"])
            ip([f"link set {port} master lan0 up"], home.router)
            self._make_host(home, host, 20 * host.joined + i)

    def line(self, home, command):
        """Sends `cut`, `heal`, `rate UP DOWN` (bits per second), `delay MS` or `buffer MS` to its line."""
        verb, *values = command.split()
        self.internet.stdin.write(" ".join([verb, str(home.site), *values]) + "\n")
        self.internet.stdin.flush()
        answer = self.internet.stdout.readline().strip()
        if answer != "ok":
            raise RuntimeError(f"shaped_net: {answer}")

    def bystander_packets(self):
        with inside("bystander"):
            listed = subprocess.run(["nft", "-j", "list", "chain", "inet", "count", "input"], capture_output=True,
                                    text=True, check=True).stdout
        for entry in json.loads(listed)["nftables"]:
            for expression in entry.get("rule", {}).get("expr", []):
                if "counter" in expression:
                    return expression["counter"]["packets"]
        raise RuntimeError("the bystander has no counter")

    def as_json(self):
        made = {name: {**server.as_json(), "home": 0, "kind": name} for name, server in self.servers.items()}
        for home in self.homes:
            for host in home.hosts:
                made[host.name] = {**host.as_json(), "home": home.number, "kind": home.spec}
        return made

    def close(self):
        for child in self.children:
            child.kill()
        for child in self.children:
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe:
                    pipe.close()
        self.children = []
        for name in getattr(self, "names", []):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


# ---- the program ----


def answer(homes, line):
    """Carries out a command of stdin. Returns its answer."""
    verb, *rest = shlex.split(line)
    if verb == "list":
        return homes.as_json()
    if verb == "bystander":
        return {"packets": homes.bystander_packets()}
    if verb == "run" and len(rest) > 1:
        return {"status": homes.start(rest[1:], homes.host(rest[0]).name, stdout=sys.stderr).wait()}
    if verb in ("forget", "move", "unplug", "wireless", "cut", "heal") and len(rest) == 1 and 1 <= int(rest[0]) <= len(homes.homes):
        home = homes.homes[int(rest[0]) - 1]
        if verb in ("forget", "move", "unplug", "wireless"):
            getattr(homes, verb)(home)
        else:
            homes.line(home, verb)
        return {"ok": True, "public": home.public_v4()}
    raise ValueError(f"cannot do '{line.strip()}'")


def serve(homes):
    print(json.dumps(homes.as_json()), flush=True)
    for line in sys.stdin:
        if line.strip():
            try:
                print(json.dumps(answer(homes, line)), flush=True)
            except (ValueError, RuntimeError) as e:
                print(json.dumps({"error": str(e)}), flush=True)


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", metavar="BIN_DIR")
    parser.add_argument("homes", nargs="+", metavar="HOME")
    parser.add_argument("--delay", type=float, default=0, metavar="MS", help="from a site to another (0)")
    parser.add_argument("--rate", type=float, default=0, metavar="MBIT", help="of a line, each way (0: unlimited)")
    at = argv.index("--") if "--" in argv else len(argv)
    args, command = parser.parse_args(argv[:at]), argv[at + 1:]
    private.enter()
    homes = Homes(args.bin_dir, args.homes, args.delay, args.rate)
    try:
        if command:
            return homes.start(command, stdin=None, env={**os.environ, "HOMES": json.dumps(homes.as_json())}).wait()
        serve(homes)
        return 0
    finally:
        homes.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
