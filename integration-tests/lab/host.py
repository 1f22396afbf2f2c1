# SPDX-License-Identifier: Apache-2.0
"""What of the host a test run must leave as it was."""

import json
import pathlib
import subprocess

_LINK = ("ifindex", "ifname", "link_type", "address", "mtu", "master")
_SYSCTLS = ("net/ipv4/ip_forward", "net/ipv4/conf/all/rp_filter", "net/ipv4/conf/all/proxy_arp",
            "net/ipv6/conf/all/forwarding", "kernel/hostname")


def _ip(*args):
    out = subprocess.run(["ip", "-j", *args], stdout=subprocess.PIPE, text=True, check=False).stdout
    return json.loads(out or "[]")


def state():
    """Links, addresses, routes, rules, settings and mounts of the host, as sorted lines."""
    lines = []
    for item in _ip("link", "show"):
        up = "UP" in item.get("flags", ())
        lines.append(f"link {[item.get(k) for k in _LINK]} {'up' if up else 'down'}")
    for family in "-4", "-6":
        for item in _ip(family, "addr", "show"):
            for a in item.get("addr_info", ()):
                lines.append(f"addr {item['ifname']} {a.get('local')}/{a.get('prefixlen')}")
        for item in _ip(family, "route", "show", "table", "all"):
            item.pop("expires", None)  # a route learned by advertisement counts down
            lines.append(f"route {json.dumps(item, sort_keys=True)}")
        for item in _ip(family, "rule", "show"):
            lines.append(f"rule {json.dumps(item, sort_keys=True)}")
    for name in _SYSCTLS:
        path = pathlib.Path("/proc/sys") / name
        if path.exists():
            lines.append(f"sysctl {name} {path.read_text().strip()}")
    # Without the mount's numbers: only what is where.
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        lines.append("mount " + " ".join(line.split()[3:]))
    lines += [f"netns {p.name}" for p in pathlib.Path("/run/netns").glob("*")]
    return sorted(lines)


def differences(before, after):
    """Lines "+ ..." that are new and "- ..." that are gone."""
    return ([f"- {x}" for x in before if x not in after] +
            [f"+ {x}" for x in after if x not in before])
