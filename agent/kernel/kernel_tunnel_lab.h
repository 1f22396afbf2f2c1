/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a node of an overlay on a kernel of its own, and what it should then look like. */
#pragma once

#include "agent/kernel/kernel_lab.h"

static inline struct kernel_stats stats(struct lab *l)
{
	return kernel_stats(l->kernel);
}

/* --- a node of an overlay ------------------------------------------------------------------- */

static inline void tunnel(struct lab *l, const char *local, const char *a, const char *b)
{
	struct kernel_tunnel *t = &l->tunnels[l->n_tunnels++];

	*t = (struct kernel_tunnel){ .local = lab_address(local),
				     .mac = { { 2, 0, 0, 0, 9, 9 } },
				     .vni = 4096,
				     .port = 4789,
				     .mtu = 1450,
				     .checksum_offload = true };
	if (a)
		t->addresses[t->n_addresses++] = lab_address(a);
	if (b)
		t->addresses[t->n_addresses++] = lab_address(b);
}

/* NULL: it has none. */
static inline uint32_t remote(struct lab *l, const char *underlay, uint8_t mac, const char *vtep4,
			      const char *vtep6)
{
	struct kernel_remote *r = &l->remotes[l->n_remotes];
	struct address node = lab_address(underlay);

	*r = (struct kernel_remote){ .underlay = node, .mac = { { 2, 0, 0, 0, 0, mac } } };
	r->node[node.family == AF_INET6] = node;
	if (vtep4)
		r->vtep[0] = lab_address(vtep4);
	if (vtep6)
		r->vtep[1] = lab_address(vtep6);
	return (uint32_t)l->n_remotes++;
}

static inline void block(struct lab *l, uint32_t of, const char *text, bool direct)
{
	l->remote_blocks[l->n_remote_blocks++] = (struct kernel_remote_block){
		.block = lab_prefix(text), .remote = of, .may_be_direct = direct
	};
}

static inline void uplink(void)
{
	sh("ip link add eth9 up type veth peer name eth8 && ip link set eth8 up && "
	   "ip addr add 192.0.2.7/24 dev eth9 && ip addr add 2001:db8::7/64 dev eth9 nodad");
}

/* Both families over an IPv4 underlay; one node with tunnel addresses, one without. */
static inline struct lab *a_node(void **state)
{
	struct lab *l = lab_of(state);
	uint32_t a, b;

	uplink();
	l->ipv6 = true;
	tunnel(l, "192.0.2.7", "10.1.0.1", "fd00:1::1");
	a = remote(l, "198.51.100.8", 1, "10.2.0.1", "fd00:2::1");
	block(l, a, "10.2.0.0/26", false);
	block(l, a, "10.2.0.64/26", false);
	block(l, a, "fd00:2::/122", false);
	b = remote(l, "198.51.100.9", 2, "10.3.0.0", NULL);
	block(l, b, "10.3.0.0/24", false);
	return l;
}

static inline const char *routes(void)
{
	return lab_output("ip route show proto 114; ip -6 route show proto 114");
}

#define A_NODES_ROUTES                                                                             \
	"10.2.0.0/26 via 10.2.0.1 dev roost.vxlan onlink\n"                                        \
	"10.2.0.64/26 via 10.2.0.1 dev roost.vxlan onlink\n"                                       \
	"10.3.0.0/24 via 10.3.0.0 dev roost.vxlan onlink\n"                                        \
	"fd00:2::1 dev roost.vxlan metric 1 pref medium\n"                                         \
	"fd00:2::/122 via fd00:2::1 dev roost.vxlan metric 1 onlink pref medium"

/* As JSON: the text's order and words are others in each version of ip. A TTL that is set shows. */
#define DEVICE_IS(id, local, port)                                                                 \
	"\"id\":" id "\n\"learning\":false\n\"" local "\"\n\"port\":" port

static inline void expect_device(const char *name, const char *vxlan)
{
	assert_string_equal(
		lab_output("ip -j -d link show %s | grep -oE '\"id\":[0-9]+|\"learning\":[a-z]+|"
			   "\"local6?\":\"[^\"]*\"|\"port\":[0-9]+|\"ttl\":[1-9][0-9]*' | sort",
			   name),
		vxlan);
	assert_string_equal(
		lab_output("ip link show up dev %s | grep -o 'mtu [0-9]*\\|ether [^ ]*'", name),
		"mtu 1450\nether 02:00:00:00:09:09");
	assert_string_equal(lab_output("cat /proc/sys/net/ipv4/conf/%s/forwarding "
				       "/proc/sys/net/ipv4/conf/%s/rp_filter",
				       name, name),
			    "1\n2");
}

static inline void expect_whole(struct lab *l)
{
	expect_device("roost.vxlan", DEVICE_IS("4096", "local\":\"192.0.2.7", "4789"));
	assert_string_equal(lab_output("ip -br addr show dev roost.vxlan scope global | "
				       "sed 's/.*UNKNOWN *//; s/ *$//'"),
			    "10.1.0.1/32 fd00:1::1/128");
	assert_string_equal(lab_output("ip addr show dev roost.vxlan scope global tentative"), "");
	assert_string_equal(lab_output("cat /proc/sys/net/ipv6/conf/roost.vxlan/accept_ra "
				       "/proc/sys/net/ipv6/conf/roost.vxlan/forwarding"),
			    "0\n1");
	assert_string_equal(lab_output("bridge fdb show dev roost.vxlan | sort"),
			    "02:00:00:00:00:01 dst 198.51.100.8 self permanent\n"
			    "02:00:00:00:00:02 dst 198.51.100.9 self permanent");
	assert_string_equal(lab_output("ip neigh show dev roost.vxlan nud permanent | sort"),
			    "10.2.0.1 lladdr 02:00:00:00:00:01 PERMANENT proto 114\n"
			    "10.3.0.0 lladdr 02:00:00:00:00:02 PERMANENT proto 114\n"
			    "fd00:2::1 lladdr 02:00:00:00:00:01 PERMANENT proto 114");
	assert_string_equal(routes(), A_NODES_ROUTES);
}

static uint64_t repairs_before;
static inline bool is_repaired(struct lab *l)
{
	return stats(l).repairs > repairs_before;
}
