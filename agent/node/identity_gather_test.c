/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in a network namespace of its own making, set up by ip(8). */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/node/identity.h"

static bool have_namespace;

static void run(const char *command)
{
	if (system(command) != 0)
		fail_msg("%s", command);
}

static int set_up(void **unused)
{
	have_namespace = unshare(CLONE_NEWNET) == 0;
	if (!have_namespace)
		return 0;
	run("ip link set lo up && ip link add eth0 type veth peer name far0");
	run("ip link add eth1 type veth peer name far1");
	run("for l in far0 far1 eth0 eth1; do ip link set $l up || exit 1; done");
	run("ip addr add 192.0.2.7/24 dev eth0 && ip addr add 192.0.2.8/24 dev eth0");
	run("ip addr add 10.0.0.1/22 dev eth1 && ip -6 addr add fd00::1/64 dev eth1 nodad");
	run("ip route add default via 192.0.2.1 metric 50");
	run("ip -6 route add default via fd00::9");
	return 0;
}

static void choose(const char *endpoints, const char *want)
{
	AUTO_DONE(identity_candidates_done) struct identity_candidates c = { 0 };
	struct identity id = { .name = "n1" };
	struct err err = { "" };

	if (!have_namespace)
		skip();
	if (identity_gather(endpoints, &c, &err) < 0 || identity_choose(&c, NULL, 0, &id, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(id.reason, want);
}

#define V6 "; fd00::1: of the default route's interface eth1"

static void the_kernels_source_towards_etcd_is_found(void **unused)
{
	choose("http://10.0.0.9:2379", "10.0.0.1: source address towards etcd 10.0.0.9" V6);
	choose("https://10.0.0.9", "10.0.0.1: source address towards etcd 10.0.0.9" V6);
	choose("http://198.51.100.1:2379",
	       "192.0.2.7: source address towards etcd 198.51.100.1" V6);
}

static void an_endpoint_of_ipv6_is_understood(void **unused)
{
	choose("https://[fd00::9]:2379",
	       "192.0.2.7: of the default route's interface eth0; fd00::1: "
	       "source address towards etcd fd00::9");
}

static void unix_sockets_loopback_and_nonsense_are_no_candidates(void **unused)
{
	choose("unix:///run/etcd.sock,http://127.0.0.1:2379,http://[,x,http://",
	       "192.0.2.7: of the default route's interface eth0" V6);
	choose("", "192.0.2.7: of the default route's interface eth0" V6);
}

static void the_second_endpoint_serves_when_the_first_does_not(void **unused)
{
	choose("unix:///run/etcd.sock,http://10.0.0.9:2379",
	       "10.0.0.1: source address towards etcd 10.0.0.9" V6);
}

static void lengths_and_ranks_come_from_the_kernel(void **unused)
{
	AUTO_DONE(identity_candidates_done) struct identity_candidates c = { 0 };
	char text[1024] = "", p[PREFIX_TEXT];

	if (!have_namespace)
		skip();
	assert_int_equal(identity_gather("", &c, NULL), 0);
	for (size_t i = 0; i < c.locals.n; i++)
		if (!address_is_link_local(&c.locals.v[i].address.address) &&
		    !address_is_loopback(&c.locals.v[i].address.address))
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %s%s\n",
				 c.locals.v[i].link_name, prefix_print(&c.locals.v[i].address, p),
				 c.locals.v[i].second_rate ? " second" : "");
	assert_string_equal(text, "eth0 192.0.2.7/24\neth0 192.0.2.8/24 second\neth1 10.0.0.1/22\n"
				  "eth1 fd00::1/64\n");
	assert_int_equal(c.defaults.n, 2);
	assert_int_equal(c.defaults.v[0].metric, 50);
}

static void ids_are_the_machines_own_unless_given(void **unused)
{
	struct identity own = { 0 }, given = { 0 };
	struct err err = { "" };

	assert_int_equal(identity_ids("n1", "m-1", "b-1", &given, &err), 0);
	assert_string_equal(given.name, "n1");
	assert_string_equal(given.machine, "m-1");
	assert_string_equal(given.boot, "b-1");
	if (identity_ids("n1", "", "", &own, &err) < 0) {
		/* A container without a machine id: then it says so. */
		assert_non_null(strstr(err.text, "/etc/machine-id"));
		return;
	}
	assert_int_equal(strlen(own.boot), 36);
	assert_true(strlen(own.machine) >= 32);
	assert_int_equal(identity_ids("n1", "m 1", "", &own, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernels_source_towards_etcd_is_found),
		cmocka_unit_test(an_endpoint_of_ipv6_is_understood),
		cmocka_unit_test(unix_sockets_loopback_and_nonsense_are_no_candidates),
		cmocka_unit_test(the_second_endpoint_serves_when_the_first_does_not),
		cmocka_unit_test(lengths_and_ranks_come_from_the_kernel),
		cmocka_unit_test(ids_are_the_machines_own_unless_given),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
