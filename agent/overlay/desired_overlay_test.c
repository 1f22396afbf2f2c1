/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/overlay/desired_overlay.h"
#include "lib/model/vtep.h"

/* --- the world ------------------------------------------------------------------------------ */

static const struct config_vxlan usual = { .vni = 4096, .port = 4789, .checksum_offload = true };
static const struct overlay_pool pools[] = {
	{ .name = "cross", .encapsulation = ENCAPSULATION_VXLAN_CROSS_SUBNET, .family = AF_INET },
	{ .name = "six", .encapsulation = ENCAPSULATION_VXLAN, .family = AF_INET6 },
	{ .name = "web", .encapsulation = ENCAPSULATION_VXLAN, .family = AF_INET },
};

static struct address address(const char *text)
{
	struct address a = { 0 };

	if (text)
		assert_int_equal(address_parse(text, &a), 0);
	return a;
}

static struct prefix prefix(const char *text)
{
	struct prefix p = { 0 };

	if (text)
		assert_int_equal(prefix_parse_host(text, &p), 0);
	return p;
}

static struct node node(const char *name, const char *ipv4, const char *ipv6)
{
	return (struct node){ .name = name,
			      .ipv4 = prefix(ipv4),
			      .ipv6 = prefix(ipv6),
			      .vtep = { .mac = vtep_mac(name) } };
}

static struct node lease(const char *name, const char *ipv4, const char *mac_of)
{
	return (struct node){ .name = name,
			      .ipv4 = prefix(ipv4),
			      .machine = "lease",
			      .boot = "lease",
			      .vtep = { .mac = vtep_mac(mac_of) } };
}

static struct block_place block(const char *text, const char *owner, const char *pool)
{
	return (struct block_place){ prefix(text), owner, pool };
}

/* --- what comes out, as text ---------------------------------------------------------------- */

static char said[2048];

static void say(const char *fmt, ...)
{
	size_t len = strlen(said);
	va_list args;

	va_start(args, fmt);
	vsnprintf(said + len, sizeof(said) - len, fmt, args);
	va_end(args);
}

static void show(const struct overlay_plan *p)
{
	char a[PREFIX_TEXT];

	for (size_t i = 0; i < p->n_tunnels; i++) {
		const struct kernel_tunnel *t = &p->tunnels[i];

		say("tunnel %s vni %u port %u mtu %u%s", address_print(&t->local, a), t->vni,
		    t->port, t->mtu, t->checksum_offload ? "" : " no offload");
		for (size_t j = 0; j < t->n_addresses; j++)
			say(" %s", address_print(&t->addresses[j], a));
		say("\n");
	}
	for (size_t i = 0; i < p->n_remotes; i++) {
		say("remote %s at %s", p->names[i], address_print(&p->remotes[i].underlay, a));
		for (size_t j = 0; j < 2; j++)
			if (p->remotes[i].vtep[j].family)
				say(" vtep %s", address_print(&p->remotes[i].vtep[j], a));
		say("\n");
	}
	for (size_t i = 0; i < p->n_blocks; i++)
		say("%s of %s%s\n", prefix_print(&p->blocks[i].block, a),
		    p->names[p->blocks[i].remote], p->blocks[i].may_be_direct ? " direct" : "");
	for (size_t i = 0; i < p->n_troubled; i++)
		say("no %s: %.34s\n", p->troubled[i].node,
		    overlay_trouble_text(p->troubled[i].trouble));
}

static void expect(struct overlay_input in, const struct node *nodes, size_t n_nodes,
		   const struct block_place *blocks, size_t n_blocks, const char *want)
{
	const struct node *node_list[8];
	const struct block_place *block_list[8];
	struct overlay_plan plan;

	for (size_t i = 0; i < n_nodes; i++)
		node_list[i] = &nodes[i];
	for (size_t i = 0; i < n_blocks; i++)
		block_list[i] = &blocks[i];
	in.self = in.self ?: "me";
	in.config = in.config ?: &usual;
	if (!in.pools) {
		in.pools = pools;
		in.n_pools = ARRAY_SIZE(pools);
	}
	in.nodes = node_list;
	in.n_nodes = n_nodes;
	in.blocks = block_list;
	in.n_blocks = n_blocks;
	assert_int_equal(desired_overlay(&in, &plan), 0);
	said[0] = '\0';
	show(&plan);
	assert_string_equal(said, want);
	overlay_plan_done(&plan);
}
#define EXPECT(in, nodes, blocks, want)                                                            \
	expect(in, nodes, ARRAY_SIZE(nodes), blocks, ARRAY_SIZE(blocks), want)

#define V4   ((struct overlay_input){ .address = { address("192.0.2.1") } })
#define BOTH ((struct overlay_input){ .address = { address("192.0.2.1"), address("2001:db8::1") } })

/* --- cases ---------------------------------------------------------------------------------- */

static void others_blocks_lead_to_their_tunnels(void **unused)
{
	struct node nodes[] = { node("a", "192.0.2.2/24", NULL), node("b", "198.51.100.2/24", NULL),
				node("me", "192.0.2.1/24", NULL) };
	struct block_place blocks[] = {
		block("10.1.0.0/26", "me", "web"),      block("10.1.0.64/26", "b", "web"),
		block("10.1.0.128/26", "a", "web"),     block("10.2.0.0/26", "a", "cross"),
		block("fd00:1::40/122", "b", "six"),    block("10.3.0.0/26", "a", "plain"),
		block("10.1.0.192/26", "b", "nowhere"),
	};
	struct overlay_input in = V4;

	nodes[1].vtep.ipv4 = address("10.1.0.64");
	nodes[1].vtep.ipv6 = address("fd00:1::40");
	in.tunnel[0] = address("10.1.0.0");
	in.tunnel[1] = address("fd00:1::1");
	in.uplink_mtu[0] = 9000;
	EXPECT(in, nodes, blocks,
	       "tunnel 192.0.2.1 vni 4096 port 4789 mtu 8950 10.1.0.0 fd00:1::1\n"
	       "remote a at 192.0.2.2 vtep 10.1.0.128\n"
	       "remote b at 198.51.100.2 vtep 10.1.0.64 vtep fd00:1::40\n"
	       "10.1.0.64/26 of b\n"
	       "10.1.0.128/26 of a\n"
	       "10.2.0.0/26 of a direct\n"
	       "fd00:1::40/122 of b\n");
}

static void without_such_a_pool_there_is_nothing(void **unused)
{
	struct node nodes[] = { node("a", "192.0.2.2/24", NULL) };
	struct block_place blocks[] = { block("10.1.0.0/26", "a", "web") };
	struct overlay_input in = V4;

	in.pools = pools;
	EXPECT(in, nodes, blocks, "");
}

static void a_node_without_blocks_is_no_remote(void **unused)
{
	struct node nodes[] = { node("a", "192.0.2.2/24", NULL) };
	struct block_place blocks[] = { block("10.3.0.0/26", "a", "plain") };

	EXPECT(V4, nodes, blocks, "tunnel 192.0.2.1 vni 4096 port 4789 mtu 1450\n");
}

static void nodes_meet_over_ipv4_if_both_have_it_else_over_ipv6(void **unused)
{
	struct node nodes[] = { node("both", "192.0.2.2/24", "2001:db8::2/64"),
				node("six", NULL, "2001:db8::3/64") };
	struct block_place blocks[] = { block("10.1.0.0/26", "both", "web"),
					block("10.1.0.64/26", "six", "web") };
	struct overlay_input six = { .address = { { 0 }, address("2001:db8::1") } };

	EXPECT(BOTH, nodes, blocks,
	       "tunnel 192.0.2.1 vni 4096 port 4789 mtu 1450\n"
	       "tunnel 2001:db8::1 vni 4096 port 4789 mtu 1430\n"
	       "remote both at 192.0.2.2 vtep 10.1.0.0\n"
	       "remote six at 2001:db8::3 vtep 10.1.0.64\n"
	       "10.1.0.0/26 of both\n"
	       "10.1.0.64/26 of six\n");
	EXPECT(six, nodes, blocks,
	       "tunnel 2001:db8::1 vni 4096 port 4789 mtu 1430\n"
	       "remote both at 2001:db8::2 vtep 10.1.0.0\n"
	       "remote six at 2001:db8::3 vtep 10.1.0.64\n"
	       "10.1.0.0/26 of both\n"
	       "10.1.0.64/26 of six\n");
	EXPECT(V4, nodes, blocks,
	       "tunnel 192.0.2.1 vni 4096 port 4789 mtu 1450\n"
	       "remote both at 192.0.2.2 vtep 10.1.0.0\n"
	       "10.1.0.0/26 of both\n"
	       "no six: has no address of a family that th\n");
}

/* The other end is met over IPv6 and has no block yet: it may send first. */
static void a_second_tunnel_is_there_only_for_whom_it_serves(void **unused)
{
	struct node both[] = { node("a", "192.0.2.2/24", "2001:db8::2/64") };
	struct node six[] = { node("a", NULL, "2001:db8::2/64") };
	struct block_place none[] = { block("10.3.0.0/26", "a", "plain") };

	EXPECT(BOTH, both, none, "tunnel 192.0.2.1 vni 4096 port 4789 mtu 1450\n");
	EXPECT(BOTH, six, none,
	       "tunnel 192.0.2.1 vni 4096 port 4789 mtu 1450\n"
	       "tunnel 2001:db8::1 vni 4096 port 4789 mtu 1430\n");
}

static void what_cannot_be_reached_is_named_and_the_rest_goes_on(void **unused)
{
	struct node nodes[] = { node("a", "192.0.2.2/24", NULL), node("b", "192.0.2.3/24", NULL),
				node("c", "192.0.2.4/24", NULL), node("d", "192.0.2.5/24", NULL) };
	struct block_place blocks[] = {
		block("10.1.0.0/26", "gone", "web"), block("10.1.0.64/26", "a", "web"),
		block("10.1.0.128/26", "b", "web"),  block("10.1.0.192/26", "gone", "web"),
		block("10.1.1.0/26", "c", "web"),    block("10.1.1.64/26", "d", "web"),
	};

	nodes[1].vtep.mac = (struct mac){ 0 };
	nodes[2].vtep.mac = vtep_mac("a");
	nodes[3].vtep.mac = vtep_mac("me");
	EXPECT(V4, nodes, blocks,
	       "tunnel 192.0.2.1 vni 4096 port 4789 mtu 1450\n"
	       "remote a at 192.0.2.2 vtep 10.1.0.64\n"
	       "10.1.0.64/26 of a\n"
	       "no b: reports no tunnel in its record ye\n"
	       "no c: reports a tunnel MAC that does not\n"
	       "no d: reports a tunnel MAC that does not\n"
	       "no gone: has blocks of the overlay, but no \n");
}

/* A lease client's MAC is its own choice; an agent that has the same one comes later or earlier. */
static void a_lease_takes_no_mac_of_an_agent_or_of_an_earlier_lease(void **unused)
{
	struct node nodes[] = { node("a", "192.0.2.2/24", NULL),
				lease("lease-192.0.2.3", "192.0.2.3/32", "a"),
				lease("lease-192.0.2.4", "192.0.2.4/32", "me"),
				lease("lease-192.0.2.5", "192.0.2.5/32", "free"),
				lease("lease-192.0.2.6", "192.0.2.6/32", "free"),
				node("n", "192.0.2.7/24", NULL),
				lease("nolease-192.0.2.8", "192.0.2.8/32", "free") };
	struct block_place blocks[] = {
		block("10.1.0.0/26", "a", "web"),
		block("10.1.0.64/26", "lease-192.0.2.3", "web"),
		block("10.1.0.128/26", "lease-192.0.2.4", "web"),
		block("10.1.0.192/26", "lease-192.0.2.5", "web"),
		block("10.1.1.0/26", "lease-192.0.2.6", "web"),
		block("10.1.1.64/26", "n", "web"),
		block("10.1.1.128/26", "nolease-192.0.2.8", "web"),
	};

	/* By name the lease would come before this agent. */
	nodes[1].vtep.mac = vtep_mac("n");
	EXPECT(V4, nodes, blocks,
	       "tunnel 192.0.2.1 vni 4096 port 4789 mtu 1450\n"
	       "remote a at 192.0.2.2 vtep 10.1.0.0\n"
	       "remote lease-192.0.2.5 at 192.0.2.5 vtep 10.1.0.192\n"
	       "remote n at 192.0.2.7 vtep 10.1.1.64\n"
	       "10.1.0.0/26 of a\n"
	       "10.1.0.192/26 of lease-192.0.2.5\n"
	       "10.1.1.64/26 of n\n"
	       "no lease-192.0.2.3: reports a tunnel MAC that another \n"
	       "no lease-192.0.2.4: reports a tunnel MAC that another \n"
	       "no lease-192.0.2.6: reports a tunnel MAC that another \n"
	       "no nolease-192.0.2.8: reports a tunnel MAC that does not\n");
}

static void a_tunnel_address_lies_in_the_nodes_own_blocks(void **unused)
{
	struct node nodes[] = { node("a", "192.0.2.2/24", NULL), node("b", "192.0.2.3/24", NULL),
				node("c", "192.0.2.4/24", NULL), node("d", "192.0.2.5/24", NULL) };
	struct block_place blocks[] = {
		block("10.1.0.0/26", "a", "web"),    block("10.1.0.64/26", "b", "web"),
		block("10.1.0.128/26", "c", "web"),  block("fd00:1::40/122", "c", "six"),
		block("10.1.0.192/26", "d", "web"),  block("10.3.0.0/26", "d", "plain"),
		block("fd00:1::80/122", "a", "six"),
	};

	nodes[0].vtep.ipv4 = address("10.1.0.0");
	nodes[1].vtep.ipv4 = address("10.1.0.0"); /* of a */
	nodes[2].vtep.ipv4 = address("10.1.0.128");
	nodes[2].vtep.ipv6 = address("fd00:1::80"); /* of a */
	nodes[3].vtep.ipv4 = address("10.3.0.1");   /* of a pool that left the overlay */
	EXPECT(V4, nodes, blocks,
	       "tunnel 192.0.2.1 vni 4096 port 4789 mtu 1450\n"
	       "remote a at 192.0.2.2 vtep 10.1.0.0 vtep fd00:1::80\n"
	       "remote d at 192.0.2.5 vtep 10.3.0.1\n"
	       "10.1.0.0/26 of a\n"
	       "10.1.0.192/26 of d\n"
	       "fd00:1::80/122 of a\n"
	       "no b: reports a tunnel address outside i\n"
	       "no c: reports a tunnel address outside i\n");
}

static void config_says_how_the_tunnel_is(void **unused)
{
	const struct config_vxlan flannel = { .vni = 1, .port = 8472, .mtu_overhead = 100 };
	struct node nodes[] = { node("me", "192.0.2.1/24", NULL) };
	struct block_place blocks[] = { block("10.1.0.0/26", "me", "web") };
	struct overlay_input in = V4;

	in.config = &flannel;
	EXPECT(in, nodes, blocks, "tunnel 192.0.2.1 vni 1 port 8472 mtu 1400 no offload\n");
	assert_int_equal(overlay_mtu(&flannel, 90, AF_INET), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_blocks_lead_to_their_tunnels),
		cmocka_unit_test(without_such_a_pool_there_is_nothing),
		cmocka_unit_test(a_node_without_blocks_is_no_remote),
		cmocka_unit_test(nodes_meet_over_ipv4_if_both_have_it_else_over_ipv6),
		cmocka_unit_test(a_second_tunnel_is_there_only_for_whom_it_serves),
		cmocka_unit_test(what_cannot_be_reached_is_named_and_the_rest_goes_on),
		cmocka_unit_test(a_lease_takes_no_mac_of_an_agent_or_of_an_earlier_lease),
		cmocka_unit_test(a_tunnel_address_lies_in_the_nodes_own_blocks),
		cmocka_unit_test(config_says_how_the_tunnel_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
