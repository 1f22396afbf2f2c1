/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/node/identity.h"

/* --- a machine in words --------------------------------------------------------------------- */

#define ETH0 2
#define ETH1 3

struct machine {
	struct identity_source sources[4];
	struct identity_local locals[8];
	struct identity_default defaults[4];
	struct prefix pools[4];
	size_t n_pools;
	struct identity_candidates c;
};

static struct address address(const char *text)
{
	struct address a;

	assert_int_equal(address_parse(text, &a), 0);
	return a;
}

static void source(struct machine *m, const char *own, const char *endpoint)
{
	struct identity_source *s = &m->sources[m->c.sources.n++];

	s->address = address(own);
	snprintf(s->endpoint, sizeof(s->endpoint), "%s", endpoint);
}

static struct identity_local *local(struct machine *m, unsigned link, const char *prefix)
{
	struct identity_local *l = &m->locals[m->c.locals.n++];

	assert_int_equal(prefix_parse_host(prefix, &l->address), 0);
	l->link = link;
	snprintf(l->link_name, sizeof(l->link_name), "eth%u", link - ETH0);
	return l;
}

static struct identity_default *default_route(struct machine *m, sa_family_t family, unsigned link,
					      uint32_t metric)
{
	struct identity_default *d = &m->defaults[m->c.defaults.n++];

	*d = (struct identity_default){ .family = family, .link = link, .metric = metric };
	return d;
}

static void pool(struct machine *m, const char *prefix)
{
	assert_int_equal(prefix_parse(prefix, &m->pools[m->n_pools++]), 0);
}

static int choose(struct machine *m, struct identity *id, struct err *err)
{
	m->c.sources.v = m->sources;
	m->c.locals.v = m->locals;
	m->c.defaults.v = m->defaults;
	return identity_choose(&m->c, m->pools, m->n_pools, id, err);
}

/* "address[,address] router id (reason)" */
static void expect(struct machine *m, const char *want)
{
	struct identity id = { .name = "n1" };
	char text[512] = "", p[PREFIX_TEXT], a[ADDRESS_TEXT];
	struct err err = { "" };

	if (choose(m, &id, &err) < 0)
		fail_msg("%s", err.text);
	if (id.ipv4.address.family)
		strcat(text, prefix_print(&id.ipv4, p));
	if (id.ipv6.address.family)
		strcat(strcat(text, *text ? "," : ""), prefix_print(&id.ipv6, p));
	snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s (%s)",
		 address_print(&id.router_id, a), id.reason);
	assert_string_equal(text, want);
}

static void refused(struct machine *m, const char *want)
{
	struct identity id = { .name = "n1" };
	struct err err = { "" };

	assert_int_equal(choose(m, &id, &err), -EADDRNOTAVAIL);
	assert_string_equal(err.text, want);
}

/* --- the choice ----------------------------------------------------------------------------- */

static void the_source_towards_etcd_is_the_nodes_address(void **unused)
{
	struct machine m = { 0 };

	source(&m, "10.0.0.1", "10.0.0.9");
	local(&m, ETH0, "192.0.2.1/24");
	local(&m, ETH1, "10.0.0.1/22");
	default_route(&m, AF_INET, ETH0, 0);
	expect(&m, "10.0.0.1/22 10.0.0.1 (10.0.0.1: source address towards etcd 10.0.0.9)");
}

static void etcd_on_this_machine_leads_to_the_default_routes_interface(void **unused)
{
	struct machine m = { 0 };

	source(&m, "127.0.0.1", "127.0.0.1");
	local(&m, ETH0, "192.0.2.1/24");
	local(&m, ETH1, "10.0.0.1/22");
	default_route(&m, AF_INET, ETH1, 0);
	expect(&m, "10.0.0.1/22 10.0.0.1 (10.0.0.1: of the default route's interface eth1)");
}

static void the_default_route_of_the_lowest_metric_counts(void **unused)
{
	struct machine m = { 0 };

	local(&m, ETH0, "192.0.2.1/24");
	local(&m, ETH1, "10.0.0.1/22");
	default_route(&m, AF_INET, ETH0, 200);
	default_route(&m, AF_INET, ETH1, 100);
	expect(&m, "10.0.0.1/22 10.0.0.1 (10.0.0.1: of the default route's interface eth1)");
}

static void the_routes_own_source_goes_first_and_secondary_addresses_last(void **unused)
{
	struct machine m = { 0 };
	struct identity_default *d;

	local(&m, ETH0, "10.0.0.3/24")->second_rate = true;
	local(&m, ETH0, "10.0.0.1/24");
	local(&m, ETH0, "10.0.0.2/24");
	d = default_route(&m, AF_INET, ETH0, 0);
	expect(&m, "10.0.0.1/24 10.0.0.1 (10.0.0.1: of the default route's interface eth0)");
	d->source = address("10.0.0.2");
	expect(&m, "10.0.0.2/24 10.0.0.2 (10.0.0.2: of the default route's interface eth0)");

	struct machine only = { 0 };

	local(&only, ETH0, "10.0.0.3/24")->second_rate = true;
	default_route(&only, AF_INET, ETH0, 0);
	expect(&only, "10.0.0.3/24 10.0.0.3 (10.0.0.3: of the default route's interface eth0)");
}

static void an_address_inside_a_pool_is_never_the_nodes(void **unused)
{
	struct machine m = { 0 };

	source(&m, "10.1.0.1", "10.0.0.9");
	local(&m, ETH0, "10.1.0.2/24");
	local(&m, ETH0, "10.0.0.1/24");
	default_route(&m, AF_INET, ETH0, 0);
	pool(&m, "10.1.0.0/16");
	expect(&m, "10.0.0.1/24 10.0.0.1 (10.0.0.1: of the default route's interface eth0)");
}

static void the_second_member_of_etcd_may_lead_to_a_better_source(void **unused)
{
	struct machine m = { 0 };

	source(&m, "127.0.0.1", "127.0.0.1");
	source(&m, "169.254.3.3", "169.254.1.1");
	source(&m, "10.0.0.1", "10.0.0.9");
	local(&m, ETH1, "10.0.0.1/22");
	expect(&m, "10.0.0.1/22 10.0.0.1 (10.0.0.1: source address towards etcd 10.0.0.9)");
}

static void each_family_is_chosen_by_itself(void **unused)
{
	struct machine m = { 0 };

	source(&m, "10.0.0.1", "10.0.0.9");
	local(&m, ETH0, "10.0.0.1/24");
	local(&m, ETH1, "fe80::1/64");
	local(&m, ETH1, "fd00::1/64");
	default_route(&m, AF_INET6, ETH1, 1024);
	expect(&m,
	       "10.0.0.1/24,fd00::1/64 10.0.0.1 (10.0.0.1: source address towards etcd 10.0.0.9; "
	       "fd00::1: of the default route's interface eth1)");
}

static void without_ipv4_the_router_id_is_made_from_the_name(void **unused)
{
	struct machine m = { 0 };
	struct identity a = { .name = "n1" }, b = { .name = "n2" };

	source(&m, "fd00::1", "fd00::9");
	assert_int_equal(choose(&m, &a, NULL), 0);
	assert_int_equal(choose(&m, &b, NULL), 0);
	assert_int_equal(a.router_id.family, AF_INET);
	assert_false(address_is_unspecified(&a.router_id));
	assert_int_not_equal(address_compare(&a.router_id, &b.router_id), 0);
	/* On no interface: a host's length. */
	assert_int_equal(a.ipv6.length, 128);
}

static void ipv6_without_a_default_route_is_found_beside_ipv4(void **unused)
{
	struct machine m = { 0 }, six = { 0 };

	source(&m, "10.0.0.1", "10.0.0.9");
	local(&m, ETH0, "fd00:1::1/64");
	local(&m, ETH1, "10.0.0.1/22");
	local(&m, ETH1, "fe80::1/64");
	local(&m, ETH1, "fd00:2::9/64");
	m.locals[m.c.locals.n - 1].second_rate = true;
	/* Nothing but a link-local and a temporary address there: none. */
	expect(&m, "10.0.0.1/22 10.0.0.1 (10.0.0.1: source address towards etcd 10.0.0.9)");
	local(&m, ETH1, "fd00:2::5/64");
	m.locals[m.c.locals.n - 1].tentative = true;
	expect(&m, "10.0.0.1/22,fd00:2::5/64 10.0.0.1 (10.0.0.1: source address towards etcd "
		   "10.0.0.9; fd00:2::5: beside the other family's on eth1)");
	local(&m, ETH1, "fd00:2::1/64");
	expect(&m, "10.0.0.1/22,fd00:2::1/64 10.0.0.1 (10.0.0.1: source address towards etcd "
		   "10.0.0.9; fd00:2::1: beside the other family's on eth1)");
	/* And the other way round. */
	source(&six, "fd00:2::1", "fd00:2::9");
	local(&six, ETH1, "fd00:2::1/64");
	local(&six, ETH1, "10.0.0.1/22");
	expect(&six, "10.0.0.1/22,fd00:2::1/64 10.0.0.1 (fd00:2::1: source address towards etcd "
		     "fd00:2::9; 10.0.0.1: beside the other family's on eth1)");
}

static void what_is_configured_is_taken_as_it_is_and_alone(void **unused)
{
	struct machine m = { 0 };

	source(&m, "10.0.0.1", "10.0.0.9");
	local(&m, ETH0, "10.0.0.1/24");
	local(&m, ETH0, "10.0.0.5/24");
	local(&m, ETH1, "fd00::1/64");
	default_route(&m, AF_INET6, ETH1, 0);
	assert_int_equal(identity_configured("10.0.0.5", &m.c, NULL), 0);
	expect(&m, "10.0.0.5/24 10.0.0.5 (10.0.0.5: configured)");
	assert_int_equal(identity_configured("fd00::1,10.0.0.7/30", &m.c, NULL), 0);
	expect(&m,
	       "10.0.0.7/30,fd00::1/64 10.0.0.7 (fd00::1: configured; 10.0.0.7: configured, but "
	       "on no interface of this machine)");
}

static void when_nothing_fits_the_sentence_says_why(void **unused)
{
	struct machine m = { 0 }, bare = { 0 };

	refused(&bare, "no address of this machine can be the node's (neither a source address "
		       "towards etcd nor a default route); start with --address");
	source(&m, "127.0.0.1", "localhost");
	local(&m, ETH0, "10.1.0.2/24");
	default_route(&m, AF_INET, ETH0, 0);
	pool(&m, "10.1.0.0/16");
	refused(&m,
		"no address of this machine can be the node's (127.0.0.1 (towards etcd localhost) "
		"is a loopback address; 10.1.0.2 (on eth0) lies in the pool 10.1.0.0/16); start "
		"with --address");
}

static void very_many_candidates_do_not_overflow_the_sentence(void **unused)
{
	struct machine m = { 0 };
	struct identity id = { .name = "n1" };
	struct err err;

	for (int i = 0; i < 4; i++)
		source(&m, "fe80:1111:2222:3333:4444:5555:6666:7777",
		       "a-very-long-host-name-of-a-member-of-etcd.example.org");
	assert_int_equal(choose(&m, &id, &err), -EADDRNOTAVAIL);
}

/* --- later ---------------------------------------------------------------------------------- */

static void a_later_difference_is_told_in_a_sentence(void **unused)
{
	struct machine m = { 0 }, later = { 0 };
	struct identity pinned = { .name = "n1" }, now = { .name = "n1" };
	struct err err = { "" };

	source(&m, "10.0.0.1", "10.0.0.9");
	source(&later, "10.0.0.2", "10.0.0.9");
	assert_int_equal(choose(&m, &pinned, NULL), 0);
	assert_int_equal(choose(&m, &now, NULL), 0);
	assert_false(identity_differs(&pinned, &now, &err));
	assert_int_equal(choose(&later, &now, NULL), 0);
	assert_true(identity_differs(&pinned, &now, &err));
	assert_string_equal(err.text,
			    "the IPv4 address would be 10.0.0.2 now; 10.0.0.1 was chosen on "
			    "this boot and stays until the next one");
	strcpy(now.name, "n2");
	assert_true(identity_differs(&pinned, &now, &err));
	assert_string_equal(err.text,
			    "the node name would be n2 now; n1 was chosen on this boot and "
			    "stays until the next one");
}

/* --- the name ------------------------------------------------------------------------------- */

static void the_name_is_the_flag_or_the_host_name_as_it_is(void **unused)
{
	char name[NODE_NAME_TEXT];

	assert_int_equal(identity_name("", "host-1.example.org", name, NULL), 0);
	assert_string_equal(name, "host-1.example.org");
	assert_int_equal(identity_name("n1", "host-1", name, NULL), 0);
	assert_string_equal(name, "n1");
}

static void a_host_name_in_upper_case_is_refused_with_the_way_out(void **unused)
{
	char name[NODE_NAME_TEXT];
	struct err err = { "" };

	assert_int_equal(identity_name("", "Host-1", name, &err), -EINVAL);
	assert_string_equal(err.text,
			    "the host name \"Host-1\" has upper-case letters, which a node "
			    "name cannot have: start with --node host-1");
	assert_int_equal(identity_name("", "host_1", name, &err), -EINVAL);
	assert_string_equal(
		err.text,
		"the host name, and --node is not given: \"host_1\" is not a node name: 1 "
		"to 253 of a-z, 0-9, '.', '-', with a letter or digit at both ends");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_source_towards_etcd_is_the_nodes_address),
		cmocka_unit_test(etcd_on_this_machine_leads_to_the_default_routes_interface),
		cmocka_unit_test(the_default_route_of_the_lowest_metric_counts),
		cmocka_unit_test(the_routes_own_source_goes_first_and_secondary_addresses_last),
		cmocka_unit_test(an_address_inside_a_pool_is_never_the_nodes),
		cmocka_unit_test(the_second_member_of_etcd_may_lead_to_a_better_source),
		cmocka_unit_test(each_family_is_chosen_by_itself),
		cmocka_unit_test(without_ipv4_the_router_id_is_made_from_the_name),
		cmocka_unit_test(ipv6_without_a_default_route_is_found_beside_ipv4),
		cmocka_unit_test(what_is_configured_is_taken_as_it_is_and_alone),
		cmocka_unit_test(when_nothing_fits_the_sentence_says_why),
		cmocka_unit_test(very_many_candidates_do_not_overflow_the_sentence),
		cmocka_unit_test(a_later_difference_is_told_in_a_sentence),
		cmocka_unit_test(the_name_is_the_flag_or_the_host_name_as_it_is),
		cmocka_unit_test(a_host_name_in_upper_case_is_refused_with_the_way_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
