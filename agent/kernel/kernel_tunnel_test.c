/* SPDX-License-Identifier: Apache-2.0 */
/* The overlay on a kernel of its own, as nodes come and go, beside strangers. */
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "agent/kernel/kernel_tunnel_lab.h"

static void the_first_pass_makes_device_and_all_on_it(void **state)
{
	struct lab *l = a_node(state);

	lab_open(l);
	assert_string_equal(lab_warnings, "");
	expect_whole(l);
	assert_int_equal(stats(l).routes, 5);
	assert_int_equal(stats(l).neighbours, 3);
	assert_int_equal(stats(l).fdb, 2);
	assert_int_equal(stats(l).repairs, 0);
	assert_int_equal(stats(l).failures, 0);
}

/* What the configuration changes is no repair, and of what can stay nothing goes. */
static void other_parameters_are_taken_over(void **state)
{
	struct lab *l = a_node(state);
	char index[64];

	lab_open(l);
	snprintf(index, sizeof(index), "%s",
		 lab_output("ip -o link show roost.vxlan | cut -d: -f1"));
	l->tunnels[0].mtu = 1400;
	l->tunnels[0].addresses[0] = lab_address("10.1.0.2");
	kernel_mark(l->kernel);
	lab_settle(l);
	assert_string_equal(lab_output("ip -br -4 addr show dev roost.vxlan | grep -o '10.*'"),
			    "10.1.0.2/32");
	assert_string_equal(lab_output("ip link show roost.vxlan | grep -o 'mtu [0-9]*'"),
			    "mtu 1400");
	assert_string_equal(lab_output("ip -o link show roost.vxlan | cut -d: -f1"), index);
	assert_string_equal(routes(), A_NODES_ROUTES);
	l->tunnels[0].mtu = 1450;
	l->tunnels[0].addresses[0] = lab_address("10.1.0.1");
	l->tunnels[0].vni = 77;
	l->tunnels[0].port = 8472;
	kernel_mark(l->kernel);
	lab_settle(l);
	expect_device("roost.vxlan", DEVICE_IS("77", "local\":\"192.0.2.7", "8472"));
	assert_string_equal(routes(), A_NODES_ROUTES);
	assert_string_equal(lab_warnings, "");
	assert_int_equal(stats(l).repairs, 0);
}

/* --- who owns what -------------------------------------------------------------------------- */

static void before_all_is_known_nothing_of_it_is_removed(void **state)
{
	struct lab *l = a_node(state);

	sh("ip link add roost.vxlan up type vxlan id 5 dstport 4789 && "
	   "ip link add roost.vxlan6 up type vxlan id 6 dstport 4789 && "
	   "bridge fdb add 02:00:00:00:00:55 dev roost.vxlan dst 192.0.2.55 self permanent && "
	   "ip addr add 10.9.9.9/32 dev roost.vxlan && "
	   "ip route add 10.55.0.0/24 via 10.55.0.0 dev roost.vxlan onlink proto 114");
	lab_start(l);
	kernel_start(l->kernel);
	until(l, lab_quiet);
	assert_string_equal(lab_output("ip -d link show roost.vxlan | grep -o 'vxlan id [0-9]*'; "
				       "ip -d link show roost.vxlan6 | grep -o 'vxlan id [0-9]*'; "
				       "bridge fdb show dev roost.vxlan | grep -c 55; "
				       "ip addr show dev roost.vxlan | grep -c 10.9.9.9; "
				       "ip route show 10.55.0.0/24 | grep -c onlink"),
			    "vxlan id 5\nvxlan id 6\n1\n1\n1");
	kernel_open(l->kernel);
	until(l, lab_quiet);
	lab_settle(l);
	expect_whole(l);
	assert_string_equal(lab_output("ip link show roost.vxlan6 2>&1"),
			    "Device \"roost.vxlan6\" does not exist.");
}

static void with_no_overlay_any_more_all_of_it_goes(void **state)
{
	struct lab *l = a_node(state);

	lab_open(l);
	l->n_tunnels = l->n_remotes = l->n_remote_blocks = 0;
	kernel_mark(l->kernel);
	lab_settle(l);
	assert_string_equal(routes(), "");
	assert_string_equal(lab_output("ip link show roost.vxlan 2>&1"),
			    "Device \"roost.vxlan\" does not exist.");
	assert_int_equal(stats(l).routes + stats(l).neighbours + stats(l).fdb, 0);
	assert_string_equal(lab_warnings, "");
}

static const char *health_of(struct lab *l, const char *part)
{
	return health_reason(l->health, part) ?: "";
}

static void a_strangers_device_of_that_name_is_left_and_told(void **state)
{
	struct lab *l = a_node(state);

	sh("ip link add roost.vxlan type veth peer name peer && ip addr add 10.9.9.9/32 dev "
	   "roost.vxlan");
	lab_open(l);
	assert_string_equal(lab_output("ip -d link show roost.vxlan | grep -c veth"), "1");
	assert_string_equal(lab_output("ip addr show dev roost.vxlan | grep -c 10.9.9.9"), "1");
	assert_string_equal(routes(), "");
	assert_string_equal(
		health_of(l, "tunnel-device/roost.vxlan"),
		"device roost.vxlan cannot be created: a device of that name exists and is "
		"not of kind vxlan; remove or rename it");
	sh("ip link set roost.vxlan name other");
	kernel_mark(l->kernel);
	lab_settle(l);
	expect_whole(l);
	assert_string_equal(health_of(l, "tunnel-device/roost.vxlan"), "");
}

static bool is_failed(struct lab *l)
{
	return stats(l).failures > 0;
}

static void a_vni_that_another_device_has_is_told(void **state)
{
	struct lab *l = a_node(state);

	sh("ip link add other type vxlan id 4096 dstport 4789");
	lab_start(l);
	kernel_open(l->kernel);
	until(l, is_failed);
	assert_non_null(strstr(health_of(l, "kernel"), "device roost.vxlan: "));
	assert_non_null(strstr(health_of(l, "kernel"), "VNI already exists"));
	sh("ip link del other");
	until(l, lab_quiet);
	lab_settle(l);
	expect_whole(l);
}

static void what_left_while_no_agent_was_there_is_removed_and_nothing_else(void **state)
{
	struct lab *l = a_node(state);

	lab_open(l);
	lab_stop(l);
	sh("bridge fdb add 02:00:00:00:00:55 dev roost.vxlan dst 192.0.2.55 self permanent && "
	   "ip neigh add 10.55.0.0 lladdr 02:00:00:00:00:55 dev roost.vxlan nud permanent "
	   "protocol 114 && "
	   "ip route add 10.55.0.0/24 via 10.55.0.0 dev roost.vxlan onlink proto 114");
	lab_open(l);
	expect_whole(l);
	assert_int_equal(stats(l).repairs, 0);
	assert_string_equal(lab_warnings, "");
}

/* --- comings and goings --------------------------------------------------------------------- */

struct heard {
	unsigned added, removed;
};

static int count_event(const struct nlmsghdr *hdr, void *arg)
{
	struct heard *h = arg;

	const struct ndmsg *body = NLMSG_DATA(hdr);

	/*
	 * Probing of the kernel's own neighbours comes by here as well; and of tables of devices it
	 * does not say who changed them.
	 */
	if (hdr->nlmsg_pid == 0 && body->ndm_family != AF_BRIDGE)
		return 0;
	/* A neighbour that is deleted is told as failed before, and then once more by nobody. */
	if (hdr->nlmsg_type == RTM_DELROUTE || hdr->nlmsg_type == RTM_DELNEIGH ||
	    (hdr->nlmsg_type == RTM_NEWNEIGH && body->ndm_state == NUD_FAILED))
		h->removed++;
	else if (hdr->nlmsg_type == RTM_NEWROUTE || hdr->nlmsg_type == RTM_NEWNEIGH)
		h->added++;
	return 0;
}

static struct netlink *listen_to_all(void)
{
	static const unsigned groups[] = { RTNLGRP_LINK, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,
					   RTNLGRP_NEIGH, 0 };
	struct netlink *k = NULL;

	assert_int_equal(netlink_events_open(NETLINK_ROUTE, groups, 0, &k), 0);
	return k;
}

static struct heard heard(struct netlink *k)
{
	struct heard h = { 0 };

	assert_int_equal(netlink_events_read(k, count_event, &h), 0);
	return h;
}

static void a_node_that_comes_and_goes_costs_its_own_messages_alone(void **state)
{
	struct lab *l = a_node(state);
	AUTO(netlink_close) struct netlink *k = NULL;
	struct heard h;
	uint32_t c;

	lab_open(l);
	k = listen_to_all();
	c = remote(l, "198.51.100.10", 3, "10.4.0.1", NULL);
	block(l, c, "10.4.0.0/26", false);
	block(l, c, "10.4.0.64/26", false);
	block(l, c, "10.4.0.128/26", false);
	kernel_mark(l->kernel);
	lab_settle(l);
	h = heard(k);
	assert_int_equal(h.added, 5);
	assert_int_equal(h.removed, 0);

	/* Another MAC after it was installed anew: the old entry goes, the rest changes in place.
	 */
	l->remotes[c].mac.bytes[5] = 4;
	kernel_mark(l->kernel);
	lab_settle(l);
	h = heard(k);
	assert_int_equal(h.added, 2);
	assert_int_equal(h.removed, 1);

	l->n_remotes--;
	l->n_remote_blocks -= 3;
	kernel_mark(l->kernel);
	lab_settle(l);
	h = heard(k);
	assert_int_equal(h.added, 0);
	assert_int_equal(h.removed, 5);
	expect_whole(l);

	/* Nothing to do is nothing done. */
	kernel_mark(l->kernel);
	lab_settle(l);
	h = heard(k);
	assert_int_equal(h.added + h.removed, 0);
}

/* --- past the tunnel ------------------------------------------------------------------------ */

static struct lab *a_near_node(void **state)
{
	struct lab *l = lab_of(state);
	uint32_t a;

	uplink();
	l->ipv6 = true;
	tunnel(l, "192.0.2.7", "10.1.0.1", "fd00:1::1");
	a = remote(l, "192.0.2.8", 1, "10.2.0.1", "fd00:2::1");
	l->remotes[a].node[1] = lab_address("2001:db8::8");
	block(l, a, "10.2.0.0/26", true);
	block(l, a, "fd00:2::/122", true);
	return l;
}

#define DIRECT                                                                                     \
	"10.2.0.0/26 via 192.0.2.8 dev eth9\n"                                                     \
	"fd00:2::/122 via 2001:db8::8 dev eth9 metric 1 pref medium"
#define TUNNELLED                                                                                  \
	"10.2.0.0/26 via 10.2.0.1 dev roost.vxlan onlink\n"                                        \
	"fd00:2::1 dev roost.vxlan metric 1 pref medium\n"                                         \
	"fd00:2::/122 via fd00:2::1 dev roost.vxlan metric 1 onlink pref medium"

static void a_node_on_our_subnet_is_reached_past_the_tunnel(void **state)
{
	struct lab *l = a_near_node(state);
	AUTO(netlink_close) struct netlink *k = NULL;
	struct heard h;

	lab_open(l);
	assert_string_equal(routes(), DIRECT);
	k = listen_to_all();
	l->remote_blocks[0].may_be_direct = l->remote_blocks[1].may_be_direct = false;
	kernel_mark(l->kernel);
	lab_settle(l);
	assert_string_equal(routes(), TUNNELLED);
	h = heard(k);
	assert_int_equal(h.added, 3);
	assert_int_equal(h.removed, 0); /* there is a way at every moment */
	l->remote_blocks[0].may_be_direct = l->remote_blocks[1].may_be_direct = true;
	kernel_mark(l->kernel);
	lab_settle(l);
	assert_string_equal(routes(), DIRECT);
	h = heard(k);
	assert_int_equal(h.added, 2);
	assert_int_equal(h.removed, 1);
	assert_string_equal(lab_warnings, "");
}

static bool is_direct(struct lab *l)
{
	return strcmp(routes(), DIRECT) == 0;
}

/* The kernel tells of a new IPv6 address a little later than it is there. */
static void who_is_on_our_subnet_is_seen_by_our_addresses(void **state)
{
	struct lab *l = a_near_node(state);

	lab_open(l);
	sh("ip addr add 192.0.2.7/32 dev lo && ip addr del 192.0.2.7/24 dev eth9 && "
	   "ip addr del 2001:db8::7/64 dev eth9");
	lab_settle(l);
	assert_string_equal(routes(), TUNNELLED);
	sh("ip addr add 192.0.2.6/24 dev eth9 && ip addr add 2001:db8::6/64 dev eth9 nodad");
	until(l, is_direct);
	/* The kernel drops both, the IPv4 one without a word, and the IPv6 address with its own. */
	sh("ip link set eth9 down");
	lab_settle(l);
	assert_string_equal(lab_output("ip route show proto 114"), "");
	sh("ip link set eth9 up && ip addr replace 2001:db8::6/64 dev eth9 nodad");
	until(l, is_direct);
	assert_int_equal(stats(l).failures, 0);
}

/* IPv6 would refuse the gateway, because BIRD's route leads to it over another link. */
static void a_daemons_route_to_the_same_block_does_not_hinder(void **state)
{
	struct lab *l = a_node(state);

	sh("ip -6 route add fd00:2::/122 via 2001:db8::8 dev eth9 proto bird metric 32");
	lab_open(l);
	expect_whole(l);
	assert_string_equal(lab_warnings, "");
}

static void over_ipv6_there_is_a_device_of_its_own(void **state)
{
	struct lab *l = lab_of(state);
	uint32_t a;

	uplink();
	tunnel(l, "2001:db8::7", "10.1.0.1", NULL);
	a = remote(l, "2001:db8:1::8", 1, "10.2.0.1", NULL);
	block(l, a, "10.2.0.0/26", false);
	lab_open(l);
	expect_device("roost.vxlan6", DEVICE_IS("4096", "local6\":\"2001:db8::7", "4789"));
	assert_string_equal(lab_output("bridge fdb show dev roost.vxlan6"),
			    "02:00:00:00:00:01 dst 2001:db8:1::8 self permanent");
	assert_string_equal(routes(), "10.2.0.0/26 via 10.2.0.1 dev roost.vxlan6 onlink");
	assert_string_equal(lab_warnings, "");
}

/* --- what must not be ----------------------------------------------------------------------- */

static void blocks_that_would_harm_are_refused_and_told(void **state)
{
	struct lab *l = a_node(state);
	uint32_t self = remote(l, "192.0.2.7", 8, NULL, NULL);
	uint32_t six = remote(l, "2001:db8:1::8", 7, NULL, NULL);
	uint32_t none = remote(l, "198.51.100.200", 0, NULL, NULL);

	/* Parts of other modules: the kernel's sweeps must leave them. */
	health_set(l->health, "overlay/n2", LOG_LEVEL_WARNING, "no tunnel");
	health_set(l->health, "tunnel-address/ipv4", LOG_LEVEL_WARNING, "no address");
	lab_block(l, "10.1.0.0/26");
	block(l, 0, "10.1.0.0/26", false);
	block(l, 0, "192.0.2.0/26", false);
	block(l, 0, "198.51.100.0/26", false);
	block(l, self, "10.7.0.0/26", false);
	block(l, six, "10.8.0.0/26", false);
	l->remotes[none].mac = (struct mac){ 0 };
	block(l, none, "10.9.0.0/26", false);
	lab_open(l);
	assert_string_equal(lab_output("bridge fdb show dev roost.vxlan | grep -c '^00:'"), "0");
	assert_string_equal(lab_output("ip route show proto 114"),
			    "blackhole 10.1.0.0/26\n"
			    "10.2.0.0/26 via 10.2.0.1 dev roost.vxlan onlink\n"
			    "10.2.0.64/26 via 10.2.0.1 dev roost.vxlan onlink\n"
			    "10.3.0.0/24 via 10.3.0.0 dev roost.vxlan onlink");
	assert_string_equal(health_of(l, "overlay-route/10.1.0.0/26"),
			    "no route to block 10.1.0.0/26 of another node: this node owns a "
			    "block with the same prefix");
	assert_string_equal(health_of(l, "overlay-route/192.0.2.0/26"),
			    "no route to block 192.0.2.0/26 of another node: it would cover the "
			    "subnet 192.0.2.0/24 of eth9");
	assert_string_equal(health_of(l, "overlay-route/198.51.100.0/26"),
			    "no route to block 198.51.100.0/26 of another node: it would cover "
			    "198.51.100.8, the address of a tunnel end");
	assert_string_equal(health_of(l, "overlay-route/10.7.0.0/26"),
			    "no route to block 10.7.0.0/26 of another node: its node claims this "
			    "node's own address 192.0.2.7");
	assert_string_equal(health_of(l, "overlay-route/10.8.0.0/26"),
			    "no route to block 10.8.0.0/26 of another node: its node is "
			    "reachable over IPv6 only, and this node has no tunnel over it");
	assert_string_equal(
		health_of(l, "overlay-route/10.9.0.0/26"),
		"no route to block 10.9.0.0/26 of another node: its node's tunnel has no "
		"MAC address");
	assert_string_equal(health_of(l, "overlay/n2"), "no tunnel");
	assert_string_equal(health_of(l, "tunnel-address/ipv4"), "no address");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, lab_set_up, lab_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_first_pass_makes_device_and_all_on_it),
		CASE(other_parameters_are_taken_over),
		CASE(before_all_is_known_nothing_of_it_is_removed),
		CASE(with_no_overlay_any_more_all_of_it_goes),
		CASE(a_strangers_device_of_that_name_is_left_and_told),
		CASE(a_vni_that_another_device_has_is_told),
		CASE(what_left_while_no_agent_was_there_is_removed_and_nothing_else),
		CASE(a_node_that_comes_and_goes_costs_its_own_messages_alone),
		CASE(a_node_on_our_subnet_is_reached_past_the_tunnel),
		CASE(who_is_on_our_subnet_is_seen_by_our_addresses),
		CASE(a_daemons_route_to_the_same_block_does_not_hinder),
		CASE(over_ipv6_there_is_a_device_of_its_own),
		CASE(blocks_that_would_harm_are_refused_and_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
