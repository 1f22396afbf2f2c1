/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/route_protocol.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>

uint8_t route_protocol = 114;
uint8_t static_route_protocol = 115;

/* The numbers are the kernel's and, from 191 on, FRR's; the names those of iproute2. */
static const char *const names[256] = {
	[RTPROT_UNSPEC] = "unspec",
	[RTPROT_REDIRECT] = "redirect",
	[RTPROT_KERNEL] = "kernel",
	[RTPROT_BOOT] = "boot",
	[RTPROT_STATIC] = "static",
	[RTPROT_GATED] = "gated",
	[RTPROT_RA] = "ra",
	[RTPROT_MRT] = "mrt",
	[RTPROT_ZEBRA] = "zebra",
	[RTPROT_BIRD] = "bird",
	[RTPROT_DNROUTED] = "dnrouted",
	[RTPROT_XORP] = "xorp",
	[RTPROT_NTK] = "ntk",
	[RTPROT_DHCP] = "dhcp",
	[RTPROT_MROUTED] = "mrouted",
	[RTPROT_KEEPALIVED] = "keepalived",
	[RTPROT_BABEL] = "babel",
	[80] = "calico",
	[84] = "ovn",
	[RTPROT_BGP] = "bgp",
	[RTPROT_ISIS] = "isis",
	[RTPROT_OSPF] = "ospf",
	[RTPROT_RIP] = "rip",
	[191] = "nhrp",
	[RTPROT_EIGRP] = "eigrp",
	[193] = "ldp",
	[194] = "sharp",
	[195] = "pbr",
	[196] = "zstatic",
	[197] = "openfabric",
	[198] = "srte",
};

const char *route_protocol_name(uint8_t protocol, char *text)
{
	if (names[protocol] && protocol != RTPROT_UNSPEC)
		snprintf(text, 12, "%s", names[protocol]);
	else
		snprintf(text, 12, "%u", protocol);
	return text;
}

static int check(const char *flag, uint32_t protocol, struct err *err)
{
	if (protocol > UINT8_MAX)
		return err_set(err, -EINVAL, "%s: %u is no protocol number: they end with 255",
			       flag, protocol);
	if (names[protocol])
		return err_set(err, -EINVAL,
			       "%s: %u is the number of \"%s\", whose routes would be taken for "
			       "ours: choose one that nobody uses",
			       flag, protocol, names[protocol]);
	return 0;
}

int route_protocols_check(uint32_t own, uint32_t statics, struct err *err)
{
	int r = check("--route-protocol", own, err);

	r = r ?: check("--static-route-protocol", statics, err);
	if (r == 0 && own == statics)
		r = err_set(err, -EINVAL,
			    "--route-protocol and --static-route-protocol are both %u: static "
			    "routes could not be told from pods'",
			    own);
	return r;
}

void route_protocols_set(uint32_t own, uint32_t statics)
{
	route_protocol = (uint8_t)own;
	static_route_protocol = (uint8_t)statics;
}
