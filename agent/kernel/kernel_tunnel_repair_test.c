/* SPDX-License-Identifier: Apache-2.0 */
/* The overlay on a kernel of its own, with somebody else at work on it. */
#include "agent/kernel/kernel_tunnel_lab.h"
#include "lib/netlink/offload.h"

/* Nothing but the kernel's events leads to these repairs; no full compare comes meanwhile. */
static void what_somebody_does_to_it_is_undone_at_once(void **state)
{
	static const struct {
		const char *command;
		enum kernel_thing thing;
		const char *log;
	} cases[] = {
		{ "ip link del roost.vxlan", KERNEL_TUNNEL,
		  "device roost.vxlan was removed by another program; restored\n" },
		{ "ip link del roost.vxlan && ip link add roost.vxlan type vxlan id 5 dstport 4789",
		  KERNEL_TUNNEL, "device roost.vxlan was removed by another program; restored\n" },
		{ "ip link del roost.vxlan && ip link add roost.vxlan type vxlan id 4096 "
		  "dstport 4789 group 239.1.1.1 dev eth9",
		  KERNEL_TUNNEL, "device roost.vxlan was removed by another program; restored\n" },
		{ "ip link set roost.vxlan down", KERNEL_LINK, NULL },
		{ "ip link set roost.vxlan down && ip link set roost.vxlan up", KERNEL_ROUTE,
		  NULL },
		{ "bridge fdb flush dev roost.vxlan self", KERNEL_FDB, NULL },
		{ "bridge fdb del 02:00:00:00:00:01 dev roost.vxlan self", KERNEL_FDB,
		  "FDB entry 02:00:00:00:00:01 dst 198.51.100.8 dev roost.vxlan was removed by "
		  "another program; restored\n" },
		{ "bridge fdb replace 02:00:00:00:00:01 dev roost.vxlan dst 192.0.2.99 self "
		  "permanent",
		  KERNEL_FDB, NULL },
		{ "bridge fdb replace 02:00:00:00:00:01 dev roost.vxlan dst 198.51.100.8 "
		  "port 99 self permanent",
		  KERNEL_FDB, NULL },
		{ "ip route flush proto 114", KERNEL_ROUTE, NULL },
		{ "ip -6 route flush proto 114", KERNEL_ROUTE, NULL },
		{ "ip neigh flush dev roost.vxlan nud permanent", KERNEL_NEIGHBOUR, NULL },
		{ "ip neigh replace 10.2.0.1 lladdr 02:00:00:00:00:99 dev roost.vxlan nud "
		  "permanent",
		  KERNEL_NEIGHBOUR, NULL },
		{ "ip link set roost.vxlan mtu 1400", KERNEL_TUNNEL,
		  "device roost.vxlan: mtu was changed by another program; restored\n" },
		{ "ip link set roost.vxlan address 02:00:00:00:00:77", KERNEL_TUNNEL, NULL },
		{ "ip link set roost.vxlan type vxlan id 4096 local 192.0.2.99", KERNEL_TUNNEL,
		  "device roost.vxlan: local was changed by another program; restored\n" },
		{ "ip link set roost.vxlan type vxlan id 4096 learning ttl 9", KERNEL_TUNNEL,
		  "device roost.vxlan: learning, ttl was changed by another program; restored\n" },
		{ "ip addr del 10.1.0.1/32 dev roost.vxlan", KERNEL_TUNNEL, NULL },
		{ "ip addr del fd00:1::1/128 dev roost.vxlan", KERNEL_TUNNEL,
		  "address fd00:1::1 of roost.vxlan was removed by another program; restored\n" },
		{ "echo 0 > /proc/sys/net/ipv4/conf/roost.vxlan/forwarding", KERNEL_LINK, NULL },
		{ "echo 0 > /proc/sys/net/ipv6/conf/roost.vxlan/forwarding", KERNEL_LINK, NULL },
	};
	struct lab *l = a_node(state);

	lab_open(l);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kernel_stats before = stats(l);
		uint64_t began;

		lab_warnings[0] = '\0';
		repairs_before = before.repairs;
		/* A fight over one thing is not what is tested here. */
		l->kernel->view.tunnels[0].h.fight.repairs = 0;
		sh("%s", cases[i].command);
		began = clock_monotonic_us();
		until(l, is_repaired);
		lab_settle(l);
		print_message("%6llu us  %s\n", (unsigned long long)(clock_monotonic_us() - began),
			      cases[i].command);
		expect_whole(l);
		if (cases[i].log)
			assert_string_equal(lab_warnings, cases[i].log);
		assert_true(stats(l).repaired[cases[i].thing] > before.repaired[cases[i].thing]);
		assert_int_equal(stats(l).compares, before.compares);
		assert_int_equal(stats(l).failures, 0);
		lab_stop(l);
		lab_open(l);
		assert_int_equal(stats(l).repairs, 0);
	}
}

static void checksum_offload_is_as_it_was_said(void **state)
{
	struct lab *l = a_node(state);
	bool on = true;

	l->tunnels[0].checksum_offload = false;
	lab_open(l);
	assert_int_equal(offload_read("roost.vxlan", &on), 0);
	assert_false(on);
	repairs_before = stats(l).repairs;
	assert_int_equal(offload_write("roost.vxlan", true), 0);
	until(l, is_repaired);
	assert_int_equal(offload_read("roost.vxlan", &on), 0);
	assert_false(on);
	assert_string_equal(lab_warnings, "device roost.vxlan: checksum offload was changed by "
					  "another program; restored\n");
	l->tunnels[0].checksum_offload = true;
	kernel_mark(l->kernel);
	lab_settle(l);
	assert_int_equal(offload_read("roost.vxlan", &on), 0);
	assert_true(on);
	assert_int_equal(stats(l).repairs, repairs_before + 1);
}

/* A pod's attach looks at the pod alone. */
static void pods_come_and_the_overlay_stays_known(void **state)
{
	struct lab *l = a_node(state);
	struct kernel_pod *pod;
	struct err err = { 0 };

	lab_open(l);
	pod = lab_pod(l, "10.1.0.5", NULL);
	assert_int_equal(kernel_attach(l->kernel, pod, &err), 0);
	repairs_before = stats(l).repairs;
	sh("ip link del roost.vxlan");
	until(l, is_repaired);
	assert_int_equal(stats(l).repaired[KERNEL_TUNNEL], 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, lab_set_up, lab_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_somebody_does_to_it_is_undone_at_once),
		CASE(checksum_offload_is_as_it_was_said),
		CASE(pods_come_and_the_overlay_stays_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
