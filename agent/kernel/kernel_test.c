/* SPDX-License-Identifier: Apache-2.0 */
/* The node's state on a kernel of its own, with somebody else at work on it. */
#include <linux/rtnetlink.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "agent/kernel/kernel_lab.h"

#define POD "roost0000000000"

static struct kernel_stats stats(struct lab *l)
{
	return kernel_stats(l->kernel);
}

/* A pod with both families, two blocks, all in place. */
static struct lab *a_node(void **state)
{
	struct lab *l = lab_of(state);

	sh("ip link add eth9 up type veth peer name eth8 && ip link set eth8 up && "
	   "ip addr add 192.0.2.7/24 dev eth9");
	lab_pod(l, "10.1.0.5", "fd00:1::5");
	lab_block(l, "10.1.0.0/26");
	lab_block(l, "fd00:1::/122");
	l->ipv6 = true;
	lab_open(l);
	return l;
}

static void expect_whole(struct lab *l)
{
	struct err err = { 0 };

	assert_string_equal(lab_output("ip route show proto 114; ip -6 route show proto 114"),
			    "blackhole 10.1.0.0/26\n"
			    "10.1.0.5 dev " POD " scope link\n"
			    "fd00:1::5 dev " POD " metric 1 pref medium\n"
			    "blackhole fd00:1::/122 dev lo metric 1 pref medium");
	if (kernel_check(l->kernel, &l->pods[0], &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(lab_output("cat /proc/sys/net/ipv4/ip_forward "
				       "/proc/sys/net/ipv6/conf/all/forwarding"),
			    "1\n1");
}

static void the_first_pass_makes_all_that_should_be(void **state)
{
	struct lab *l = a_node(state);

	assert_string_equal(lab_warnings, "");
	expect_whole(l);
	assert_int_equal(stats(l).routes, 4);
	assert_int_equal(stats(l).neighbours, 2);
	assert_int_equal(stats(l).links, 1);
	assert_int_equal(stats(l).repairs, 0);
	assert_int_equal(stats(l).failures, 0);
}

static void without_ipv6_pools_the_hosts_ipv6_is_left_alone(void **state)
{
	struct lab *l = lab_of(state);

	lab_open(l);
	assert_string_equal(lab_output("cat /proc/sys/net/ipv4/ip_forward "
				       "/proc/sys/net/ipv6/conf/all/forwarding"),
			    "1\n0");
}

static void nothing_happens_before_it_is_opened(void **state)
{
	struct lab *l = lab_of(state);

	sh("ip route add blackhole 10.9.0.0/26 proto 114");
	lab_block(l, "10.1.0.0/26");
	lab_start(l);
	kernel_mark(l->kernel);
	while (sd_event_run(l->event, 100000) > 0)
		;
	assert_string_equal(lab_output("ip route show"), "blackhole 10.9.0.0/26 proto 114");
	assert_false(kernel_ready(l->kernel, NULL));
	kernel_open(l->kernel);
	until(l, lab_quiet);
	assert_string_equal(lab_output("ip route show"), "blackhole 10.1.0.0/26 proto 114");
}

/* Etcd is away: what a pod needs is put back, what may be somebody's stays. */
static void before_all_is_known_things_are_added_and_none_removed(void **state)
{
	struct lab *l = lab_of(state);

	sh("ip route add blackhole 10.9.0.0/26 proto 114");
	lab_block(l, "10.1.0.0/26");
	lab_start(l);
	kernel_start(l->kernel);
	until(l, lab_quiet);
	assert_string_equal(lab_output("ip route show"), "blackhole 10.1.0.0/26 proto 114\n"
							 "blackhole 10.9.0.0/26 proto 114");
	kernel_open(l->kernel);
	until(l, lab_quiet);
	assert_string_equal(lab_output("ip route show"), "blackhole 10.1.0.0/26 proto 114");
}

/* Somebody emptied the folder of files while no agent was there: the pod may be alive. */
static void a_living_pod_that_nobody_knows_keeps_its_routes(void **state)
{
	struct lab *l = lab_of(state);

	sh("ip link add roost0123456789 type veth peer name pod0");
	sh("ip link set pod0 up; ip link set roost0123456789 up");
	sh("ip route add 10.1.0.5/32 dev roost0123456789 proto 114");
	lab_open(l);
	assert_string_equal(lab_output("ip route show proto 114"),
			    "10.1.0.5 dev roost0123456789 scope link");
	sh("ip link set roost0123456789 group 1919905651"); /* DOOMED_GROUP */
	kernel_mark(l->kernel);
	until(l, lab_quiet);
	assert_string_equal(lab_output("ip route show proto 114"), "");
}

/* --- tampering ------------------------------------------------------------------------------ */

static uint64_t repairs_before;
static bool is_repaired(struct lab *l)
{
	return stats(l).repairs > repairs_before;
}

/* Netlink tells of each of these, and the next pass undoes it; no full compare comes meanwhile. */
static void what_the_kernel_tells_of_is_repaired_at_once(void **state)
{
	static const struct {
		const char *command, *log;
	} cases[] = {
		{ "ip route del 10.1.0.5",
		  "route 10.1.0.5/32 dev " POD " was removed by another program; restored\n" },
		{ "ip route del fd00:1::5",
		  "route fd00:1::5/128 dev " POD " was removed by another program; restored\n" },
		{ "ip route del blackhole 10.1.0.0/26",
		  "route blackhole 10.1.0.0/26 was removed by another program; restored\n" },
		{ "ip -6 route del blackhole fd00:1::/122",
		  "route blackhole fd00:1::/122 was removed by another program; restored\n" },
		{ "ip route change 10.1.0.5 dev eth9 proto 114",
		  "route 10.1.0.5/32 dev " POD " was removed by another program; restored\n" },
		{ "ip neigh del 10.1.0.5 dev " POD,
		  "neighbour 10.1.0.5 dev " POD " was removed by another program; restored\n" },
		{ "ip neigh del fd00:1::5 dev " POD,
		  "neighbour fd00:1::5 dev " POD " was removed by another program; restored\n" },
		{ "ip neigh change 10.1.0.5 dev " POD " lladdr 2:0:0:0:0:9 nud permanent",
		  "neighbour 10.1.0.5 dev " POD " was removed by another program; restored\n" },
		{ "ip neigh change 10.1.0.5 dev " POD " nud reachable",
		  "neighbour 10.1.0.5 dev " POD " was removed by another program; restored\n" },
		{ "ip addr del fe80::ecee:eeff:feee:eeee/64 dev " POD,
		  "link " POD ": link-local address was changed by another program; restored\n" },
		{ "echo 0 > /proc/sys/net/ipv4/conf/" POD "/proxy_arp",
		  "link " POD ": proxy_arp=1 was changed by another program; restored\n" },
		{ "echo 2 > /proc/sys/net/ipv4/conf/" POD "/rp_filter",
		  "link " POD ": rp_filter=1 was changed by another program; restored\n" },
		{ "echo 0 > /proc/sys/net/ipv4/conf/" POD "/forwarding",
		  "link " POD ": forwarding=1 was changed by another program; restored\n" },
		{ "echo 0 > /proc/sys/net/ipv6/conf/" POD "/forwarding",
		  "link " POD ": ipv6.forwarding=1 was changed by another program; restored\n" },
		{ "echo 0 > /proc/sys/net/ipv6/conf/" POD "/proxy_ndp",
		  "link " POD ": ipv6.proxy_ndp=1 was changed by another program; restored\n" },
	};
	struct lab *l = a_node(state);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kernel_stats before = stats(l);

		lab_warnings[0] = '\0';
		repairs_before = before.repairs;
		/* A fight over one thing is not what is tested here. */
		kernel_view_link_named(&l->kernel->view, POD)->h.fight.repairs = 0;
		sh("%s", cases[i].command);
		until(l, is_repaired);
		lab_settle(l);
		expect_whole(l);
		assert_string_equal(lab_warnings, cases[i].log);
		assert_int_equal(stats(l).repairs, before.repairs + 1);
		assert_int_equal(stats(l).compares, before.compares);
		assert_int_equal(stats(l).failures, 0);
	}
}

static bool is_whole(struct lab *l)
{
	return kernel_check(l->kernel, &l->pods[0], NULL) == 0;
}

/* The kernel drops routes and neighbours with it, some of them without a word. */
static void a_link_that_was_set_down_is_up_again_with_all_that_was_on_it(void **state)
{
	struct lab *l = a_node(state);

	sh("ip link set " POD " down");
	until(l, is_whole);
	lab_settle(l);
	expect_whole(l);
	sh("ip link set " POD " down && ip link set " POD " up");
	until(l, is_whole);
	lab_settle(l);
	expect_whole(l);
	assert_int_equal(stats(l).failures, 0);
}

static void an_address_that_came_and_went_takes_no_route_with_it(void **state)
{
	struct lab *l = a_node(state);

	sh("ip addr add 198.51.100.1/32 dev " POD " && ip addr del 198.51.100.1/32 dev " POD);
	assert_string_equal(lab_output("ip route show 10.1.0.5"), "");
	until(l, is_whole);
	lab_settle(l);
	expect_whole(l);
}

static void forwarding_of_the_host_is_set_again(void **state)
{
	struct lab *l = a_node(state);

	sh("echo 0 > /proc/sys/net/ipv4/ip_forward; echo 0 > "
	   "/proc/sys/net/ipv6/conf/all/forwarding");
	repairs_before = stats(l).repairs + 1;
	until(l, is_repaired);
	lab_settle(l);
	expect_whole(l);
}

static void everything_at_once_is_repaired(void **state)
{
	struct lab *l = a_node(state);

	sh("ip route flush proto 114; ip -6 route flush proto 114; ip neigh flush nud permanent; "
	   "echo 0 > /proc/sys/net/ipv4/ip_forward; ip -6 addr flush dev " POD "; "
	   "for f in proxy_arp rp_filter; do echo 0 > /proc/sys/net/ipv4/conf/" POD "/$f; done");
	until(l, is_whole);
	lab_settle(l);
	expect_whole(l);
	/* Four routes, two neighbours, forwarding, and the link once or a few times. */
	assert_in_range(stats(l).repairs, 8, 16);
}

static uint64_t compares_wanted;
static bool is_compared(struct lab *l)
{
	return stats(l).compares >= compares_wanted;
}

static void what_the_kernel_keeps_silent_about_is_found_by_the_full_compare(void **state)
{
	struct lab *l = lab_of(state);

	l->minute = 200;
	a_node(state);
	sh("echo 1 > /proc/sys/net/ipv6/conf/" POD "/accept_ra; "
	   "echo 80 > /proc/sys/net/ipv4/neigh/" POD "/proxy_delay");
	compares_wanted = stats(l).compares + 2;
	until(l, is_compared);
	expect_whole(l);
	/* A late event of the link tells its IPv6 settings too, and then there are two. */
	assert_non_null(strstr(lab_warnings, "link " POD ": ipv6.accept_ra=0 "));
	assert_non_null(strstr(lab_warnings, "proxy_delay=0 was changed by another program"));
	assert_in_range(stats(l).repairs, 1, 2);
}

static void a_route_that_is_removed_again_and_again_is_back_five_times_a_second(void **state)
{
	struct lab *l = a_node(state);
	uint64_t passes = stats(l).passes, began = clock_monotonic_us(), took;

	for (unsigned removed = 0; removed < 9;) {
		removed += lab_shell("ip route del 10.1.0.5 2>&-") == 0;
		sd_event_run(l->event, 5000);
		assert_true(clock_monotonic_us() - began < LAB_PATIENCE * 1000ull);
	}
	took = clock_monotonic_us() - began;
	/* Back at once five times, then 0.2, 0.4 and 0.6 s after the first. */
	assert_true(took >= 600000);
	assert_in_range(stats(l).passes - passes, 5, 40);
	until(l, is_whole);
}

/* --- strangers ------------------------------------------------------------------------------ */

static bool has_conflict(struct lab *l)
{
	return stats(l).conflicts == 1;
}

static bool has_no_conflict(struct lab *l)
{
	return stats(l).conflicts == 0 && stats(l).routes == 4;
}

static void a_strangers_route_in_our_place_is_left_and_named(void **state)
{
	struct lab *l = a_node(state);
	char theirs[4096];

	sh("ip route replace 10.1.0.0/26 via 192.0.2.1 dev eth9 proto static mtu 1400 && "
	   "ip route add 10.1.0.5/32 dev eth9 metric 7 proto bird && "
	   "ip route add 203.0.113.0/24 via 192.0.2.1");
	snprintf(theirs, sizeof(theirs), "%s",
		 lab_output("ip -d route show | grep -v 'proto 114'"));
	until(l, has_conflict);
	assert_string_equal(
		health_reason(l->health, "route/10.1.0.0/26"),
		"route blackhole 10.1.0.0/26 cannot be added: foreign route 10.1.0.0/26 "
		"via 192.0.2.1 dev eth9 of protocol static has the same destination; "
		"remove it if nothing needs it, or keep the pools out of its range");
	assert_true(kernel_ready(l->kernel, NULL));
	kernel_mark(l->kernel);
	lab_settle(l);
	assert_string_equal(lab_output("ip -d route show | grep -v 'proto 114'"), theirs);
	/* Its owner takes it away: ours is back without waiting for the full compare. */
	sh("ip route del 10.1.0.0/26");
	until(l, has_no_conflict);
	assert_null(health_reason(l->health, "route/10.1.0.0/26"));
	assert_string_equal(lab_output("ip route show 10.1.0.0/26"),
			    "blackhole 10.1.0.0/26 proto 114");
}

static void what_is_ours_and_not_wanted_goes_and_strangers_stay(void **state)
{
	struct lab *l = lab_of(state);
	struct kernel_pod *pod = lab_pod(l, "10.1.0.5", NULL);

	sh("ip route add 10.1.0.9 dev %s proto 114 && ip route add 10.1.0.8 dev %s proto 116 && "
	   "ip -6 route add blackhole fd00:7::/122 proto 114 table 119 && "
	   "ip neigh add 10.1.0.9 dev %s lladdr 2:0:0:0:0:9 nud permanent protocol 114 && "
	   "ip neigh add 10.1.0.8 dev %s lladdr 2:0:0:0:0:9 nud permanent",
	   pod->link, pod->link, pod->link, pod->link);
	lab_open(l);
	assert_string_equal(lab_output("ip route; ip -6 route show table 119; "
				       "ip -4 neigh show nud permanent | sort"),
			    "10.1.0.5 dev " POD " proto 114 scope link\n"
			    "10.1.0.8 dev " POD " proto 116 scope link\n"
			    "10.1.0.5 dev " POD " lladdr 02:00:00:00:00:01 PERMANENT proto 114\n"
			    "10.1.0.8 dev " POD " lladdr 02:00:00:00:00:09 PERMANENT");
}

static void a_clear_takes_all_that_is_ours_and_leaves_strangers(void **state)
{
	struct lab *l = lab_of(state);
	struct err err = { "" };

	lab_pod(l, "10.1.0.5", "fd00::5");
	lab_block(l, "10.1.0.0/26");
	lab_open(l);
	sh("ip -6 route add blackhole fd00:7::/122 proto 114 table 119 && "
	   "ip route add blackhole 10.7.0.0/24 proto 115 table 120 && "
	   "ip link add roost.vxlan type vxlan id 9 dstport 4789 && "
	   "ip link add roostly type veth peer name stranger && ip route add blackhole 10.8.0.0/24 "
	   "proto 116");
	assert_int_equal(kernel_clear(l->kernel, &err), 0);
	assert_string_equal(err.text, "");
	assert_string_equal(
		lab_output("ip route show table all proto 114; "
			   "ip -6 route show table all proto 114; "
			   "ip route show table all proto 115; ip neigh show nud permanent; "
			   "ip route show proto 116; ip -br link | cut -d@ -f1 | grep roost"),
		"blackhole 10.8.0.0/24\nroostly");
	/* Again: there is nothing. */
	assert_int_equal(kernel_clear(l->kernel, &err), 0);
}

/* The kernel's own (a link-local address that is no longer tentative) come when they come. */
static int count_strangers(const struct nlmsghdr *hdr, void *arg)
{
	unsigned *n = arg;

	if (hdr->nlmsg_type == RTM_NEWROUTE)
		*n += ((const struct rtmsg *)NLMSG_DATA(hdr))->rtm_protocol == RTPROT_BIRD;
	if (hdr->nlmsg_type == RTM_NEWNEIGH)
		*n += ((const struct ndmsg *)NLMSG_DATA(hdr))->ndm_family == AF_INET;
	return 0;
}

static void a_routing_daemons_routes_wake_nobody(void **state)
{
	struct lab *l = a_node(state);
	unsigned strangers = 0;

	sh("for i in $(seq 50); do echo route add 198.18.$i.0/24 dev eth9 proto bird; done | "
	   "ip -batch - && ip neigh add 192.0.2.9 dev eth9 lladdr 2:0:0:0:0:9 nud reachable");
	assert_int_equal(netlink_events_read(l->kernel->events, count_strangers, &strangers), 0);
	assert_int_equal(strangers, 0);
	/* But one that takes the place of another might have taken ours. */
	sh("ip route replace 198.18.1.0/24 dev eth9 mtu 1300 proto bird");
	assert_int_equal(netlink_events_read(l->kernel->events, count_strangers, &strangers), 0);
	assert_int_equal(strangers, 1);
}

/* --- blackholes ----------------------------------------------------------------------------- */

static void no_blackhole_covers_subnet_gateway_or_what_is_protected(void **state)
{
	struct lab *l = lab_of(state);
	struct prefix protect = lab_prefix("10.3.0.9/32");

	sh("ip link add eth9 up type veth peer name eth8 && ip link set eth8 up && "
	   "ip addr add 10.1.0.7/24 dev eth9 && ip addr add 10.4.0.7/32 dev eth9 && "
	   "ip route add default via 10.2.0.1 dev eth9 onlink");
	lab_block(l, "10.1.0.0/26");
	lab_block(l, "10.2.0.0/26");
	lab_block(l, "10.3.0.0/26");
	lab_block(l, "10.4.0.0/26");
	l->protect = (struct prefixes){ &protect, 1 };
	lab_open(l);
	assert_string_equal(lab_output("ip route show proto 114"), "blackhole 10.4.0.0/26");
	assert_string_equal(health_reason(l->health, "blackhole/10.1.0.0/26"),
			    "no blackhole for block 10.1.0.0/26: it would cover the subnet "
			    "10.1.0.0/24 of eth9");
	assert_string_equal(health_reason(l->health, "blackhole/10.2.0.0/26"),
			    "no blackhole for block 10.2.0.0/26: it would cover the gateway "
			    "10.2.0.1");
	assert_string_equal(health_reason(l->health, "blackhole/10.3.0.0/26"),
			    "no blackhole for block 10.3.0.0/26: it would cover 10.3.0.9/32, "
			    "which is protected");
	assert_true(kernel_ready(l->kernel, NULL));
	/* The subnet goes, the blackhole comes; and the reverse. */
	sh("ip addr del 10.1.0.7/24 dev eth9 && ip addr add 10.4.0.8/24 dev eth9");
	lab_settle(l);
	assert_null(health_reason(l->health, "blackhole/10.1.0.0/26"));
	assert_string_equal(lab_output("ip route show proto 114"), "blackhole 10.1.0.0/26");
}

static void the_export_table_has_the_blocks_and_single_addresses(void **state)
{
	struct lab *l = lab_of(state);

	lab_pod(l, "10.1.0.5", "10.9.0.1");
	lab_block(l, "10.1.0.0/26");
	lab_block(l, "10.9.0.1/32");
	l->blocks[1].no_blackhole = true;
	l->export_table = 119;
	lab_open(l);
	assert_string_equal(lab_output("ip route show table 119"),
			    "blackhole 10.1.0.0/26 proto 114\n"
			    "10.9.0.1 dev " POD " proto 114 scope link");
	assert_int_equal(kernel_detach(l->kernel, &l->pods[0], NULL), 0);
	assert_string_equal(lab_output("ip route show table 119"),
			    "blackhole 10.1.0.0/26 proto 114");
	l->n_pods = 0;
	l->export_table = 0;
	kernel_mark(l->kernel);
	lab_settle(l);
	assert_string_equal(lab_output("ip route show table 119; ip route"),
			    "blackhole 10.1.0.0/26 proto 114");
}

/* --- losing events -------------------------------------------------------------------------- */

static void after_lost_events_all_is_read_anew(void **state)
{
	struct lab *l = a_node(state);
	int small = 2048;
	uint64_t compares = stats(l).compares;

	assert_int_equal(setsockopt(netlink_fd(l->kernel->events), SOL_SOCKET, SO_RCVBUF, &small,
				    sizeof(small)),
			 0);
	sh("for i in $(seq 200); do echo route add 198.18.$i.0/24 dev eth9; done | ip -batch - && "
	   "ip route flush proto 114 && ip link del " POD);
	compares_wanted = compares + 1;
	until(l, is_compared);
	lab_settle(l);
	assert_string_equal(lab_output("ip route show proto 114"), "blackhole 10.1.0.0/26");
	assert_string_equal(l->gone, POD " ");
}

/* Links come and go all the while, so that dumps are torn: no look takes ours for gone. */
static void no_look_into_a_crowd_loses_a_link(void **state)
{
	struct lab *l = a_node(state);
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		execl("/bin/sh", "sh", "-c",
		      "while :; do for i in 1 2 3 4; do ip link add x$i type veth peer name y$i; "
		      "done; "
		      "for i in 1 2 3 4; do ip link del x$i; done; done",
		      NULL);
		_exit(127);
	}
	for (uint64_t end = clock_monotonic_us() + 400000; clock_monotonic_us() < end;) {
		int r = kernel_reread(l->kernel, NULL);

		assert_true(r == 0 || r == -EINTR);
		assert_non_null(kernel_view_link_named(&l->kernel->view, POD));
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	lab_settle(l);
	expect_whole(l);
	assert_string_equal(l->gone, "");
	assert_int_equal(stats(l).repairs, 0);
}

/* --- many ----------------------------------------------------------------------------------- */

#define MANY 10000

static int desire_many(struct kernel_wants *ret)
{
	static struct address addresses[MANY];

	*ret = (struct kernel_wants){ .pods = calloc(MANY, sizeof(*ret->pods)), .n_pods = MANY };
	for (size_t i = 0; i < MANY; i++) {
		addresses[i] = (struct address){ AF_INET,
						 { 10, 8, (uint8_t)(i >> 8), (uint8_t)i } };
		ret->pods[i] = (struct kernel_pod){
			.link = POD, .mac = lab_mac, .addresses = &addresses[i], .n_addresses = 1
		};
	}
	return 0;
}

static bool has_many(struct lab *l)
{
	return stats(l).routes == MANY && stats(l).repairs >= MANY;
}

static void ten_thousand_routes_are_back_soon_after_a_flush(void **state)
{
	struct lab *l = lab_of(state);
	uint64_t began;

	lab_pod(l, "10.1.0.5", NULL);
	l->desire = desire_many;
	lab_open(l);
	assert_int_equal(stats(l).routes, MANY);
	sh("ip route flush proto 114");
	began = clock_monotonic_us();
	until(l, has_many);
	print_message("%d routes back after %u ms, the pass took %u ms\n", MANY,
		      (unsigned)((clock_monotonic_us() - began) / 1000),
		      (unsigned)(stats(l).last_pass_us / 1000));
	lab_settle(l);
	assert_int_equal(stats(l).repairs, MANY);
	assert_string_equal(lab_output("ip route show proto 114 | wc -l"), "10000");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, lab_set_up, lab_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_first_pass_makes_all_that_should_be),
		CASE(without_ipv6_pools_the_hosts_ipv6_is_left_alone),
		CASE(nothing_happens_before_it_is_opened),
		CASE(before_all_is_known_things_are_added_and_none_removed),
		CASE(a_living_pod_that_nobody_knows_keeps_its_routes),
		CASE(what_the_kernel_tells_of_is_repaired_at_once),
		CASE(a_link_that_was_set_down_is_up_again_with_all_that_was_on_it),
		CASE(an_address_that_came_and_went_takes_no_route_with_it),
		CASE(forwarding_of_the_host_is_set_again),
		CASE(everything_at_once_is_repaired),
		CASE(what_the_kernel_keeps_silent_about_is_found_by_the_full_compare),
		CASE(a_route_that_is_removed_again_and_again_is_back_five_times_a_second),
		CASE(a_strangers_route_in_our_place_is_left_and_named),
		CASE(what_is_ours_and_not_wanted_goes_and_strangers_stay),
		CASE(a_clear_takes_all_that_is_ours_and_leaves_strangers),
		CASE(a_routing_daemons_routes_wake_nobody),
		CASE(no_blackhole_covers_subnet_gateway_or_what_is_protected),
		CASE(the_export_table_has_the_blocks_and_single_addresses),
		CASE(after_lost_events_all_is_read_anew),
		CASE(no_look_into_a_crowd_loses_a_link),
		CASE(ten_thousand_routes_are_back_soon_after_a_flush),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
