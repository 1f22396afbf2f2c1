/* SPDX-License-Identifier: Apache-2.0 */
/* Routes over gateways, one or several, on a kernel of its own. */
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <signal.h>
#include <sys/wait.h>

#include "agent/kernel/kernel_lab.h"

/* Two subnets on two links, both families. */
static struct lab *a_node(void **state)
{
	struct lab *l = lab_of(state);

	sh("for i in 1 2; do ip link add eth$i up type veth peer name far$i && "
	   "ip link set far$i up && ip addr add 192.0.$i.7/24 dev eth$i && "
	   "ip addr add fd00:$i::7/64 dev eth$i nodad || exit 1; done");
	return l;
}

static uint32_t link_of(const char *gateway)
{
	const char *dev = strstr(gateway, ":2::") || strstr(gateway, "192.0.2.") ? "eth2" : "eth1";

	return if_nametoindex(dev);
}

static void set_hops(struct kroute *r, const char *a, const char *b)
{
	struct khop v[2] = { { .gateway = lab_address(a), .oif = link_of(a) } };

	if (b)
		v[1] = (struct khop){ .gateway = lab_address(b), .oif = link_of(b) };
	assert_int_equal(kroute_set_hops(r, v, b ? 2 : 1), 0);
}

static struct kroute *want(struct lab *l, const char *dst, const char *a, const char *b)
{
	struct kroute *r = &l->routes[l->n_routes++];

	*r = (struct kroute){ .table = RT_TABLE_MAIN,
			      .dst = lab_prefix(dst),
			      .type = RTN_UNICAST,
			      .protocol = static_route_protocol };
	r->metric = r->dst.address.family == AF_INET6 ? 1024 : 0;
	set_hops(r, a, b);
	return r;
}

static const char *held(void)
{
	return lab_output("ip -4 route show table all proto 115; "
			  "ip -6 route show table all proto 115");
}

/* The four kinds, one by one. */
static void want_all(struct lab *l)
{
	want(l, "10.8.0.0/16", "192.0.1.1", NULL);
	want(l, "10.9.0.0/16", "192.0.2.1", "192.0.1.1");
	want(l, "fd08::/32", "fd00:1::1", NULL);
	want(l, "fd09::/32", "fd00:2::1", "fd00:1::1");
}

#define ALL                                                                                        \
	"10.8.0.0/16 via 192.0.1.1 dev eth1\n"                                                     \
	"10.9.0.0/16\n"                                                                            \
	"nexthop via 192.0.1.1 dev eth1 weight 1\n"                                                \
	"nexthop via 192.0.2.1 dev eth2 weight 1\n"                                                \
	"fd08::/32 via fd00:1::1 dev eth1 metric 1024 pref medium\n"                               \
	"fd09::/32 metric 1024 pref medium\n"                                                      \
	"nexthop via fd00:1::1 dev eth1 weight 1\n"                                                \
	"nexthop via fd00:2::1 dev eth2 weight 1"

struct monitor {
	FILE *events;
	pid_t pids[2]; /* of both families */
};

/* What iproute2 sees happen to our routes from here on; "Deleted" stands before what goes. */
static void monitor_start(struct monitor *m)
{
	char line[256];

	m->events = popen("timeout 60 stdbuf -oL ip -4 monitor route & p4=$!; "
			  "timeout 60 stdbuf -oL ip -6 monitor route & p6=$!; "
			  "sleep 0.2; echo $p4 $p6; wait",
			  "re"); // NOLINT
	assert_non_null(m->events);
	assert_non_null(fgets(line, sizeof(line), m->events));
	assert_int_equal(sscanf(line, "%d %d", &m->pids[0], &m->pids[1]), 2);
}

static void monitor_stop(struct monitor *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(m->pids); i++)
		assert_int_equal(kill(m->pids[i], SIGTERM), 0);
	pclose(m->events);
}

static void routes_over_gateways_are_set_and_then_left(void **state)
{
	struct lab *l = a_node(state);
	struct kernel_stats s;

	want_all(l);
	lab_open(l);
	assert_string_equal(held(), ALL);
	assert_string_equal(lab_warnings, "");
	/* Another agent finds them right: it changes nothing, as the order of adding shows. */
	lab_stop(l);
	lab_open(l);
	assert_string_equal(held(), ALL);
	s = kernel_stats(l->kernel);
	assert_int_equal(s.routes, 4);
	assert_int_equal(s.repairs + s.failures + s.conflicts, 0);
}

static void a_gateway_off_the_subnets_is_reached_onlink(void **state)
{
	struct lab *l = a_node(state);

	want(l, "10.8.0.0/16", "192.0.1.1", NULL)->hop.onlink = true;
	l->routes[0].hop.gateway = lab_address("198.51.100.1");
	want(l, "fd08::/32", "fd00:1::1", NULL)->hop.onlink = true;
	l->routes[1].hop.gateway = lab_address("fd00:99::1");
	lab_open(l);
	assert_string_equal(held(), "10.8.0.0/16 via 198.51.100.1 dev eth1 onlink\n"
				    "fd08::/32 via fd00:99::1 dev eth1 metric 1024 onlink pref "
				    "medium");
	kernel_mark(l->kernel);
	lab_settle(l);
	lab_stop(l);
	lab_open(l);
	assert_int_equal(kernel_stats(l->kernel).failures, 0);
	assert_int_equal(kernel_stats(l->kernel).routes, 2);
}

static void a_change_of_gateways_leaves_no_gap(void **state)
{
	struct lab *l = a_node(state);
	char line[256];
	struct monitor seen;
	int n = 0;

	want_all(l);
	lab_open(l);
	monitor_start(&seen);
	set_hops(&l->routes[0], "192.0.2.1", NULL);
	set_hops(&l->routes[1], "192.0.2.9", "192.0.1.9");
	set_hops(&l->routes[2], "fd00:2::1", "fd00:1::1");
	set_hops(&l->routes[3], "fd00:1::9", NULL);
	kernel_mark(l->kernel);
	lab_settle(l);
	assert_string_equal(held(), "10.8.0.0/16 via 192.0.2.1 dev eth2\n"
				    "10.9.0.0/16\n"
				    "nexthop via 192.0.1.9 dev eth1 weight 1\n"
				    "nexthop via 192.0.2.9 dev eth2 weight 1\n"
				    "fd08::/32 metric 1024 pref medium\n"
				    "nexthop via fd00:1::1 dev eth1 weight 1\n"
				    "nexthop via fd00:2::1 dev eth2 weight 1\n"
				    "fd09::/32 via fd00:1::9 dev eth1 metric 1024 pref medium");
	sh("ip route add 203.0.113.1 dev eth1 && ip -6 route add fd00:ffff::1 dev eth1");
	/* Until the end of both is seen. */
	while (n < 2 && fgets(line, sizeof(line), seen.events)) {
		if (strncmp(line, "Deleted", 7) == 0)
			fail_msg("%s", line);
		n += strstr(line, "203.0.113.1") || strstr(line, "fd00:ffff::1");
	}
	assert_int_equal(n, 2);
	lab_settle(l);
	assert_int_equal(kernel_stats(l->kernel).repairs, 0);
	assert_int_equal(kernel_stats(l->kernel).routes, 4);
	monitor_stop(&seen);
}

static void what_somebody_takes_from_or_adds_to_it_is_put_right(void **state)
{
	static const char *const deeds[] = {
		"ip -6 route del fd09::/32 via fd00:2::1 dev eth2",
		"ip -6 route append fd08::/32 via fd00:2::1 dev eth2 metric 1024 proto 115",
		"ip -6 route append fd09::/32 via fd00:2::5 dev eth2 metric 1024",
		"ip route replace 10.9.0.0/16 via 192.0.1.1 proto 115",
		"ip route replace 10.8.0.0/16 proto 115 nexthop via 192.0.1.3 nexthop via "
		"192.0.2.3",
		"ip route del 10.9.0.0/16; ip -6 route del fd09::/32",
	};
	struct lab *l = a_node(state);

	want_all(l);
	lab_open(l);
	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
		uint64_t before = kernel_stats(l->kernel).repairs;

		sh("%s", deeds[i]);
		lab_settle(l);
		if (strcmp(held(), ALL) != 0)
			fail_msg("after %s:\n%s", deeds[i], held());
		assert_true(kernel_stats(l->kernel).repairs > before);
		assert_int_equal(kernel_stats(l->kernel).routes, 4);
	}
}

static void a_strangers_route_beside_ours_is_not_replaced(void **state)
{
	struct lab *l = a_node(state);

	want(l, "10.8.0.0/16", "192.0.1.1", NULL);
	lab_open(l);
	sh("ip route prepend 10.8.0.0/16 via 192.0.2.5");
	lab_settle(l);
	set_hops(&l->routes[0], "192.0.1.9", NULL);
	kernel_mark(l->kernel);
	lab_settle(l);
	assert_string_equal(lab_output("ip route show 10.8.0.0/16"),
			    "10.8.0.0/16 via 192.0.2.5 dev eth2");
	assert_int_equal(kernel_stats(l->kernel).conflicts, 1);
	sh("ip route del 10.8.0.0/16 via 192.0.2.5");
	lab_settle(l);
	assert_string_equal(held(), "10.8.0.0/16 via 192.0.1.9 dev eth1");
}

static bool is_whole(struct lab *l)
{
	return strcmp(held(), ALL) == 0;
}

/* IPv4's are dropped without a word. */
static void links_that_were_down_get_their_routes_again(void **state)
{
	struct lab *l = a_node(state);

	want_all(l);
	lab_open(l);
	sh("ip link set eth1 down && ip link set eth1 up && ip addr add fd00:1::7/64 dev eth1 "
	   "nodad");
	until(l, is_whole);
	sh("ip addr del 192.0.1.7/24 dev eth1 && ip addr add 192.0.1.7/24 dev eth1");
	until(l, is_whole);
}

/* An agent without memory knows them by their number, whatever they lead to. */
static void what_is_not_wanted_any_more_goes(void **state)
{
	struct lab *l = a_node(state);

	want_all(l);
	lab_open(l);
	lab_stop(l);
	sh("ip route add 10.7.0.0/16 proto 115 nexthop via 192.0.1.8 nexthop via 192.0.2.8 && "
	   "ip -6 route add fd07::/32 proto 115 nexthop via fd00:1::8 nexthop via fd00:2::8 && "
	   "ip route add 10.6.0.0/16 via 192.0.1.1 && "
	   "ip route add 10.5.0.0/16 via 192.0.1.1 proto 115 table 77");
	l->n_routes = 1;
	lab_open(l);
	assert_string_equal(held(), "10.8.0.0/16 via 192.0.1.1 dev eth1");
	assert_string_equal(lab_output("ip route show 10.6.0.0/16"),
			    "10.6.0.0/16 via 192.0.1.1 dev eth1");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, lab_set_up, lab_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(routes_over_gateways_are_set_and_then_left),
		CASE(a_gateway_off_the_subnets_is_reached_onlink),
		CASE(a_change_of_gateways_leaves_no_gap),
		CASE(what_somebody_takes_from_or_adds_to_it_is_put_right),
		CASE(a_strangers_route_beside_ours_is_not_replaced),
		CASE(links_that_were_down_get_their_routes_again),
		CASE(what_is_not_wanted_any_more_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
