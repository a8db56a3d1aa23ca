"""Kinds of homes, and the nftables rules of their routers.

What a router does is said in the terms of RFC 4787 and RFC 5382, for TCP:

    mapping    none            the host has the public address
               preserved       endpoint-independent; the public port is the host's, where no other host has it
               sequential      endpoint-independent; the public port is the next one from 40000
               linux           what `masquerade` does: the host's port, unless that makes two connections the same; so it
                               is endpoint-independent only while no other host of the home uses the port
               random          another port for every connection (symmetric)
    filtering  none            endpoint-independent: anybody may connect to a mapped port
               address         only from addresses that the port has sent to
               port            only from addresses and ports that the port has sent to

nftables has no mapping of its own that is independent of the endpoint and open to connections of others. So three tables
are kept by the path of the packets: `out` (host and port -> public port) and `in` (its reverse) from what left through
postrouting, and `met` (public port, peer) for the filters; prerouting lets in what these allow. An entry lives while
packets leave, and `idle_s` longer.
"""
from dataclasses import dataclass, replace

LAN = "192.168.1"  # in every home: addresses of two homes are the same, as in life
CARRIER_LAN = "100.64.0"
FIRST_SEQUENTIAL, SEQUENTIAL = 40000, 20000
LONG_S = 7200


@dataclass(frozen=True)
class Kind:
    mapping: str = "none"
    filtering: str = "none"
    v4: bool = True
    v6: str = ""  # "": none; open; firewall
    router: bool = True  # False: the host itself is on the internet
    upnp: bool = False
    carrier: bool = False  # behind another router, which may serve several homes
    # Options, by +NAME:
    hairpin: bool = False  # of the carrier, where there is one
    claims: bool = False  # a router with UPnP says that the carrier's address is its own
    reset: bool = False  # answers what it does not let in with RST, not with silence
    idle_s: int = 0  # a mapping and a connection are forgotten after that long; 0: not in a test's time


KINDS = {
    "open": Kind(router=False),
    "firewall": Kind(filtering="port"),
    "full-cone": Kind("preserved", "none"),
    "address-restricted": Kind("preserved", "address"),
    "port-restricted": Kind("preserved", "port"),
    "sequential": Kind("sequential", "port"),
    "masquerade": Kind("linux", "port"),
    "symmetric": Kind("random", "port"),
    "double": Kind("linux", "port", carrier=True),
    "upnp": Kind("linux", "port", upnp=True),
    "double-upnp": Kind("linux", "port", upnp=True, carrier=True),
    "ipv6": Kind(filtering="port", v4=False, v6="firewall"),
    "dual": Kind("linux", "port", v6="firewall"),
}
# RFC 6888: the mapping and the filter of a carrier's router are independent of the endpoint.
CARRIER = Kind("sequential", "none")


def parse(spec):
    """Returns (name of the kind, Kind, hosts, number of the carrier or None) of KIND[+OPTION...][*HOSTS][@CARRIER]."""
    rest, _, carrier = spec.partition("@")
    rest, _, hosts = rest.partition("*")
    name, *options = rest.split("+")
    if name not in KINDS:
        raise ValueError(f"{spec}: there is no home '{name}'; there are {', '.join(KINDS)}")
    kind = KINDS[name]
    for option in options:
        key, _, value = option.partition("=")
        if key == "idle" and value.isdigit():
            kind = replace(kind, idle_s=int(value))
        elif key in ("hairpin", "reset", "claims") and not value:
            kind = replace(kind, **{key: True})
        else:
            raise ValueError(f"{spec}: '{option}' must be hairpin, reset, claims or idle=SECONDS")
    if carrier and not kind.carrier:
        raise ValueError(f"{spec}: only a double home has a carrier")
    if hosts and (not hosts.isdigit() or not 1 <= int(hosts) <= 2 or not kind.router):
        raise ValueError(f"{spec}: a home has 1 or 2 hosts, and one without a router has 1")
    return name, kind, int(hosts or 1), int(carrier) if carrier else None


def _filter_rules(kind):
    refuse = "reject with tcp reset" if kind.reset else "drop"
    return f"""
table inet guard {{
    chain input {{
        type filter hook input priority filter; policy accept;
        iifname "wan0" ct state established,related accept
        iifname "wan0" meta l4proto {{ icmp, ipv6-icmp }} accept
        iifname "wan0" tcp flags syn {refuse}
        iifname "wan0" drop
    }}
    chain forward {{
        type filter hook forward priority filter + 10; policy accept;
        iifname "wan0" ct state established,related accept
        iifname "wan0" ct status dnat accept
        iifname "wan0" meta l4proto ipv6-icmp accept
        iifname "wan0" tcp flags syn {refuse}
        iifname "wan0" drop
    }}
}}
"""


def _masquerade_rules(kind):
    ports = " random,fully-random" if kind.mapping == "random" else ""
    return f"""
table ip nat {{
    chain source {{
        type nat hook postrouting priority srcnat; policy accept;
        oifname "wan0" masquerade{ports}
    }}
}}
"""


def _cone_rules(kind, lan):
    peer, sent_to = {"none": ("", "ip daddr"), "address": (" . ip saddr @met", "ip daddr"),
                     "port": (" . ip saddr . tcp sport @met", "ip daddr . tcp dport")}[kind.filtering]
    new_port = f"masquerade to :numgen inc mod {SEQUENTIAL} offset {FIRST_SEQUENTIAL}"
    preserved = "masquerade" if kind.mapping == "preserved" else new_port
    allowed = f"tcp dport{peer} " if peer else ""
    age = f"timeout {kind.idle_s or LONG_S}s"
    tcp = "meta l4proto tcp"
    hairpin_in = (f'iifname "lan0" {tcp} fib daddr type local ip daddr != {lan}.1 dnat ip to tcp dport map @in'
                  if kind.hairpin else "")
    hairpin_out = (f'oifname "lan0" {tcp} ct status dnat snat ip to ct original ip daddr : ip saddr . tcp sport map @out'
                   if kind.hairpin else "")
    return f"""
table ip nat {{
    map out {{ type ipv4_addr . inet_service : inet_service; flags dynamic,timeout; }}
    map in {{ type inet_service : ipv4_addr . inet_service; flags dynamic,timeout; }}
    set met {{ type inet_service . ipv4_addr{" . inet_service" if kind.filtering == "port" else ""}; flags dynamic,timeout; }}
    chain source {{
        type nat hook postrouting priority srcnat; policy accept;
        {hairpin_out}
        oifname "wan0" {tcp} ip saddr . tcp sport @out masquerade to :ip saddr . tcp sport map @out
        oifname "wan0" tcp sport @in {new_port}
        oifname "wan0" {tcp} {preserved}
        oifname "wan0" masquerade
    }}
    chain record {{
        type filter hook postrouting priority srcnat + 10; policy accept;
        ct direction reply accept
        oifname "wan0" {tcp} update @in {{ tcp sport {age} : ct original ip saddr . ct original proto-src }}
        oifname "wan0" {tcp} update @out {{ ct original ip saddr . ct original proto-src {age} : tcp sport }}
        oifname "wan0" {tcp} update @met {{ tcp sport . {sent_to} {age} }}
    }}
    chain destination {{
        type nat hook prerouting priority dstnat; policy accept;
        {hairpin_in}
        iifname "wan0" {tcp} fib daddr type local {allowed}dnat ip to tcp dport map @in
    }}
}}
"""


# The chains that miniupnpd fills; after Debian's nft_init.sh.
_UPNP_RULES = """
table inet upnp {
    chain allowed {
    }
    chain mapped {
    }
    chain mapped_out {
    }
    chain forward {
        type filter hook forward priority filter; policy accept;
        jump allowed
    }
    chain prerouting {
        type nat hook prerouting priority dstnat; policy accept;
        jump mapped
    }
    chain postrouting {
        type nat hook postrouting priority srcnat - 5; policy accept;
        jump mapped_out
    }
}
"""

# Of a server that answers nothing.
COUNT_ALL = """
table inet count {
    chain input {
        type filter hook input priority filter; policy accept;
        iifname "wan0" meta l4proto != ipv6-icmp counter drop
    }
}
"""

UPNP_HTTP_PORT = 5000
UPNP_CONF = """ext_ifname=wan0
listening_ip=lan0
http_port={port}
enable_natpmp=yes
enable_upnp=yes
secure_mode=yes
min_lifetime=1
max_lifetime=86400
upnp_table_name=upnp
upnp_nat_table_name=upnp
upnp_forward_chain=allowed
upnp_nat_chain=mapped
upnp_nat_postrouting_chain=mapped_out
lease_file=/run/leases-{name}
ipv6_disable=yes
{more}system_uptime=yes
uuid=00000000-0000-4000-8000-0000000000{number:02x}
allow 1024-65535 0.0.0.0/0 1024-65535
deny 0-65535 0.0.0.0/0 0-65535
"""


def rules(kind, lan=LAN):
    """Returns what `nft -f` makes the router of."""
    text = _filter_rules(kind)
    if kind.mapping in ("linux", "random"):
        text += _masquerade_rules(kind)
    elif kind.mapping != "none":
        text += _cone_rules(kind, lan)
    return text + (_UPNP_RULES if kind.upnp else "")
