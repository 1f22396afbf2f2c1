/* SPDX-License-Identifier: Apache-2.0 */
/* One pod at a time, on a kernel of its own. */
#include "agent/kernel/kernel_lab.h"

static void expect_attached(struct lab *l, const struct kernel_pod *pod)
{
	struct err err = { 0 };

	if (kernel_attach(l->kernel, pod, &err) < 0)
		fail_msg("%s", err.text);
	if (kernel_check(l->kernel, pod, &err) < 0)
		fail_msg("%s", err.text);
}

static const char *conf(const char *family, const char *link, const char *name)
{
	return lab_output("cat /proc/sys/net/%s/%s/%s", family, link, name);
}

static void an_attached_pod_has_its_route_neighbour_and_settings(void **state)
{
	struct lab *l = lab_of(state);
	struct kernel_pod *pod = lab_pod(l, "10.1.0.5", NULL);

	lab_start(l);
	expect_attached(l, pod);
	assert_string_equal(lab_output("ip route show proto 114"),
			    "10.1.0.5 dev roost0000000000 scope link");
	assert_string_equal(lab_output("ip -4 neigh show dev %s", pod->link),
			    "10.1.0.5 lladdr 02:00:00:00:00:01 PERMANENT proto 114");
	assert_string_equal(conf("ipv4/conf", pod->link, "proxy_arp"), "1");
	assert_string_equal(conf("ipv4/conf", pod->link, "rp_filter"), "1");
	assert_string_equal(conf("ipv4/conf", pod->link, "forwarding"), "1");
	assert_string_equal(conf("ipv4/conf", pod->link, "route_localnet"), "0");
	assert_string_equal(conf("ipv4/neigh", pod->link, "proxy_delay"), "0");
	assert_string_equal(conf("ipv6/conf", pod->link, "disable_ipv6"), "1");
	assert_string_equal(lab_output("ip -6 addr show dev %s", pod->link), "");
	assert_int_equal(kernel_stats(l->kernel).repairs, 0);
}

static void an_ipv6_pod_has_its_gateway_at_once(void **state)
{
	struct lab *l = lab_of(state);
	struct kernel_pod *pod;

	/* Detection of duplicates would take a minute. */
	sh("echo 60 > /proc/sys/net/ipv6/conf/default/dad_transmits");
	pod = lab_pod(l, "10.1.0.5", "fd00:1::5");
	lab_start(l);
	expect_attached(l, pod);
	assert_string_equal(lab_output("ip -6 route show proto 114"),
			    "fd00:1::5 dev roost0000000000 metric 1 pref medium");
	assert_string_equal(lab_output("ip -6 neigh show dev %s proto 114", pod->link),
			    "fd00:1::5 lladdr 02:00:00:00:00:01 PERMANENT proto 114");
	assert_string_equal(conf("ipv6/conf", pod->link, "proxy_ndp"), "1");
	assert_string_equal(conf("ipv6/conf", pod->link, "forwarding"), "1");
	assert_string_equal(conf("ipv6/conf", pod->link, "accept_dad"), "0");
	assert_string_equal(conf("ipv6/conf", pod->link, "accept_ra"), "0");
	assert_string_equal(conf("ipv6/conf", pod->link, "disable_ipv6"), "0");
	assert_string_equal(lab_output("ip -6 addr show dev %s | grep -c 'inet6 "
				       "fe80::ecee:eeff:feee:eeee/64'",
				       pod->link),
			    "1");
	/* The kernel's own address may need an instant. */
	for (int i = 0; i < 1000 && *lab_output("ip -6 addr show dev %s tentative", pod->link); i++)
		usleep(10000);
	assert_string_equal(lab_output("ip -6 addr show dev %s tentative", pod->link), "");
}

static void attaching_twice_changes_nothing(void **state)
{
	struct lab *l = lab_of(state);
	struct kernel_pod *pod = lab_pod(l, "10.1.0.5", "fd00:1::5");

	lab_open(l);
	expect_attached(l, pod);
	lab_settle(l);
	expect_attached(l, pod);
	lab_settle(l);
	assert_int_equal(kernel_stats(l->kernel).repairs, 0);
	assert_int_equal(kernel_stats(l->kernel).routes, 2);
	assert_int_equal(kernel_stats(l->kernel).neighbours, 2);
}

static uint32_t group_of(const struct lab *l, const struct kernel_pod *pod)
{
	return kernel_view_link_named(kernel_seen(l->kernel), pod->link)->link.group;
}

static void a_detached_pod_is_out_of_routing_and_doomed(void **state)
{
	struct lab *l = lab_of(state);
	struct kernel_pod *pod = lab_pod(l, "10.1.0.5", "fd00:1::5");

	lab_start(l);
	expect_attached(l, pod);
	assert_false(pod_link_is_doomed(group_of(l, pod)));
	assert_int_equal(kernel_detach(l->kernel, pod, NULL), 0);
	assert_string_equal(lab_output("ip route show proto 114; ip -6 route show proto 114; "
				       "ip neigh show dev %s nud permanent",
				       pod->link),
			    "");
	assert_true(pod_link_is_doomed(group_of(l, pod)));
	assert_string_equal(lab_output("ip -o link show group %u | wc -l", DOOMED_GROUP), "1");
	/* Again, and attach to a doomed one. */
	assert_int_equal(kernel_detach(l->kernel, pod, NULL), 0);
	assert_int_equal(kernel_attach(l->kernel, pod, NULL), -EBUSY);
}

static bool one_is_gone(struct lab *l)
{
	return l->gone[0];
}

static void a_link_that_vanishes_is_told_once(void **state)
{
	struct lab *l = lab_of(state);
	struct kernel_pod *pod = lab_pod(l, "10.1.0.5", NULL);

	lab_start(l);
	expect_attached(l, pod);
	assert_non_null(kernel_view_link_named(kernel_seen(l->kernel), pod->link));
	sh("ip link del %s", pod->link);
	until(l, one_is_gone);
	assert_string_equal(l->gone, "roost0000000000 ");
	assert_null(kernel_view_link_named(kernel_seen(l->kernel), pod->link));
	assert_int_equal(kernel_stats(l->kernel).routes, 0);
	assert_int_equal(kernel_detach(l->kernel, pod, NULL), -ENODEV);
	assert_int_equal(kernel_attach(l->kernel, pod, NULL), -ENODEV);
}

static void a_link_made_anew_under_its_name_is_not_gone(void **state)
{
	struct lab *l = lab_of(state);
	struct kernel_pod *pod = lab_pod(l, "10.1.0.5", NULL);

	lab_start(l);
	expect_attached(l, pod);
	sh("ip link del %s && ip link add %s up type veth peer name peer9", pod->link, pod->link);
	expect_attached(l, pod);
	while (sd_event_run(l->event, 10000) > 0)
		;
	assert_string_equal(l->gone, "");
	assert_int_equal(kernel_stats(l->kernel).routes, 1);
}

static void a_strangers_route_fails_the_attach_and_is_named(void **state)
{
	struct lab *l = lab_of(state);
	struct kernel_pod *pod = lab_pod(l, "fd00:1::5", "10.1.0.5");
	struct err err = { 0 };
	char before[2048];

	sh("ip link add eth9 up type veth peer name eth8 && ip route add 10.1.0.5/32 dev eth9 "
	   "proto static");
	snprintf(before, sizeof(before), "%s", lab_output("ip -d -4 route show table all"));
	lab_start(l);
	assert_int_equal(kernel_attach(l->kernel, pod, &err), -EEXIST);
	assert_string_equal(err.text, "10.1.0.5/32: a foreign route has the same destination: "
				      "10.1.0.5/32 dev eth9 proto static");
	/* And nothing of the other address is left. */
	assert_string_equal(lab_output("ip -6 route show proto 114; ip neigh show nud permanent"),
			    "");
	assert_string_equal(lab_output("ip -d -4 route show table all"), before);
	sh("ip route del 10.1.0.5/32");
	expect_attached(l, pod);
}

static int overlook(const struct nlmsghdr *hdr, void *arg)
{
	return 0;
}

static void a_stale_route_of_ours_is_replaced(void **state)
{
	struct lab *l = lab_of(state);
	struct kernel_pod *pod = lab_pod(l, "10.1.0.5", NULL);

	sh("ip link add eth9 up type veth peer name eth8 && ip route add 10.1.0.5/32 dev eth9 "
	   "proto 114");
	lab_start(l);
	expect_attached(l, pod);
	assert_string_equal(lab_output("ip route show proto 114"),
			    "10.1.0.5 dev roost0000000000 scope link");
	/* And one that came behind the view's back. */
	sh("ip route del 10.1.0.5");
	kernel_drain(l->kernel);
	sh("ip route add 10.1.0.5/32 dev eth9 proto 114");
	assert_int_equal(netlink_events_read(l->kernel->events, overlook, NULL), 0);
	expect_attached(l, pod);
}

static void what_is_not_a_pods_link_is_refused(void **state)
{
	struct lab *l = lab_of(state);
	const struct address a = lab_address("10.1.0.5");
	struct kernel_pod pod = {
		.link = "eth9", .mac = lab_mac, .addresses = &a, .n_addresses = 1
	};

	sh("ip link add eth9 type veth peer name eth8 && ip link add roost0123456789 type bridge");
	lab_start(l);
	assert_int_equal(kernel_attach(l->kernel, &pod, NULL), -EINVAL);
	assert_int_equal(kernel_detach(l->kernel, &pod, NULL), -EINVAL);
	/* The name alone does not make it one. */
	pod.link = "roost0123456789";
	assert_int_equal(kernel_attach(l->kernel, &pod, NULL), -EINVAL);
	assert_int_equal(kernel_detach(l->kernel, &pod, NULL), -EINVAL);
	assert_int_equal(kernel_check(l->kernel, &pod, NULL), -ENOENT);
}

/* Each of them undone by somebody, and what the check says of it. */
static void a_check_names_what_is_wrong(void **state)
{
	static const struct {
		const char *command, *says;
	} cases[] = {
		{ "ip route del 10.1.0.5",
		  "missing or wrong: route 10.1.0.5/32 dev roost0000000000" },
		{ "ip route change 10.1.0.5 dev roost0000000000 proto static",
		  "missing or wrong: route 10.1.0.5/32 dev roost0000000000" },
		{ "ip route del fd00:1::5",
		  "missing or wrong: route fd00:1::5/128 dev roost0000000000" },
		{ "ip neigh del 10.1.0.5 dev roost0000000000",
		  "missing or wrong: neighbour 10.1.0.5 dev roost0000000000" },
		{ "ip neigh change fd00:1::5 dev roost0000000000 lladdr 2:0:0:0:0:2 nud permanent",
		  "missing or wrong: neighbour fd00:1::5 dev roost0000000000" },
		{ "ip addr del fe80::ecee:eeff:feee:eeee/64 dev roost0000000000",
		  "missing or wrong: link roost0000000000: link-local address" },
		{ "echo 0 > /proc/sys/net/ipv4/conf/roost0000000000/rp_filter",
		  "missing or wrong: link roost0000000000: rp_filter=1" },
		{ "echo 80 > /proc/sys/net/ipv4/neigh/roost0000000000/proxy_delay",
		  "missing or wrong: link roost0000000000: proxy_delay=0" },
		{ "echo 1 > /proc/sys/net/ipv6/conf/roost0000000000/accept_ra",
		  "missing or wrong: link roost0000000000: ipv6.accept_ra=0" },
		{ "ip link set roost0000000000 group 1919905651",
		  "link roost0000000000 is being destroyed" },
		{ "ip link del roost0000000000", "link roost0000000000 does not exist" },
	};
	struct lab *l = lab_of(state);
	struct kernel_pod *pod = lab_pod(l, "10.1.0.5", "fd00:1::5");

	lab_start(l);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = { 0 };

		/* Out of the way with what no attach would touch. */
		lab_shell("ip route del 10.1.0.5 proto static 2>&-");
		sh("ip link set %s group default", pod->link);
		expect_attached(l, pod);
		sh("%s", cases[i].command);
		assert_int_equal(kernel_check(l->kernel, pod, &err), -ENOENT);
		assert_string_equal(err.text, cases[i].says);
	}
}

static void published_ports_on_loopback_are_left_alone(void **state)
{
	struct lab *l = lab_of(state);
	struct kernel_pod *pod = lab_pod(l, "10.1.0.5", NULL);

	sh("echo 1 > /proc/sys/net/ipv4/conf/%s/route_localnet", pod->link);
	lab_open(l);
	assert_string_equal(conf("ipv4/conf", pod->link, "route_localnet"), "1");
	expect_attached(l, pod);
	assert_string_equal(conf("ipv4/conf", pod->link, "route_localnet"), "0");
	sh("echo 1 > /proc/sys/net/ipv4/conf/%s/route_localnet", pod->link);
	kernel_mark(l->kernel);
	lab_settle(l);
	assert_string_equal(conf("ipv4/conf", pod->link, "route_localnet"), "1");
	pod->route_localnet = true;
	sh("echo 0 > /proc/sys/net/ipv4/conf/%s/route_localnet", pod->link);
	expect_attached(l, pod);
	assert_string_equal(conf("ipv4/conf", pod->link, "route_localnet"), "1");
}

static void the_uplinks_mtu_is_known_by_the_nodes_address(void **state)
{
	struct lab *l = lab_of(state);
	const struct address node = lab_address("192.0.2.7"), other = lab_address("192.0.2.8");

	sh("ip link add eth9 mtu 1450 up type veth peer name eth8 && ip addr add 192.0.2.7/24 dev "
	   "eth9");
	lab_open(l);
	assert_int_equal(kernel_uplink_mtu(l->kernel, &node), 1450);
	assert_int_equal(kernel_uplink_mtu(l->kernel, &other), 0);
	sh("ip link set eth9 mtu 9000");
	lab_settle(l);
	assert_int_equal(kernel_uplink_mtu(l->kernel, &node), 9000);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, lab_set_up, lab_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_attached_pod_has_its_route_neighbour_and_settings),
		CASE(an_ipv6_pod_has_its_gateway_at_once),
		CASE(attaching_twice_changes_nothing),
		CASE(a_detached_pod_is_out_of_routing_and_doomed),
		CASE(a_link_that_vanishes_is_told_once),
		CASE(a_link_made_anew_under_its_name_is_not_gone),
		CASE(a_strangers_route_fails_the_attach_and_is_named),
		CASE(a_stale_route_of_ours_is_replaced),
		CASE(what_is_not_a_pods_link_is_refused),
		CASE(a_check_names_what_is_wrong),
		CASE(published_ports_on_loopback_are_left_alone),
		CASE(the_uplinks_mtu_is_known_by_the_nodes_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
