/* SPDX-License-Identifier: Apache-2.0 */
/* What a change does to a cluster that runs, as text. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/records/effect.h"

struct given {
	const char *key, *value; /* value NULL: deleted */
};

static const struct given cluster_of_three[] = {
	{ "block/default/10.1.0.0-26", "{\"node\":\"n1\",\"pool\":\"web\",\"token\":\"t\","
				       "\"claimed\":\"2026-01-01T00:00:00Z\"}" },
	{ "block/default/10.1.0.64-26", "{\"node\":\"n2\",\"pool\":\"web\",\"token\":\"t\","
					"\"claimed\":\"2026-01-01T00:00:00Z\"}" },
	{ "extent/default/web", "{\"cidr\":\"10.1.0.0/16\",\"blockSize\":26}" },
	{ "filter/none", "{\"rules\":[{\"action\":\"accept\"}]}" },
	{ "node/n1", "{\"ipv4\":\"192.0.2.11/24\"}" },
	{ "node/n2", "{\"ipv4\":\"192.0.2.12/24\"}" },
	{ "node/n3", "{\"ipv4\":\"192.0.2.13/24\"}" },
	{ "peer/tor", "{\"address\":\"192.0.2.1\",\"asn\":64600,\"nodeSelector\":\"zone == 'a'\","
		      "\"importFilter\":\"none\",\"passwordFile\":\"/etc/roost/tor\"}" },
	{ "pool/web", "{\"cidr\":\"10.1.0.0/16\"}" },
	{ "spec/n1", "{\"labels\":{\"zone\":\"a\"}}" },
	{ "static-route/vpn", "{\"subnet\":\"172.20.0.0/16\",\"nodeSelector\":\"zone == 'a'\"}" },
	{ "status/node/n1", "{\"pools\":{\"web\":{\"used\":7}}}" },
};

static struct ctl_kvs read_as(struct ctl_kv *room, const char *beginning)
{
	struct ctl_kvs kvs = { .v = room };

	for (size_t i = 0; i < ARRAY_SIZE(cluster_of_three); i++) {
		const struct given *g = &cluster_of_three[i];

		if (strncmp(g->key, beginning, strlen(beginning)) == 0)
			room[kvs.n++] = (struct ctl_kv){ .key = (char *)(uintptr_t)g->key,
							 .value = (char *)(uintptr_t)g->value,
							 .value_len = strlen(g->value),
							 .mod_revision = 5 };
	}
	return kvs;
}

static void expect(const char *kind, const char *key, const char *value, bool asks,
		   const char *text)
{
	struct ctl_kv pools[8], extents[8], peers[8], filters[8], config[2], nodes[8], specs[8],
		blocks[8], routes[8], status[8];
	const struct world world = {
		.pools = read_as(pools, "pool/"),
		.extents = read_as(extents, "extent/"),
		.peers = read_as(peers, "peer/"),
		.filters = read_as(filters, "filter/"),
	};
	const struct cluster cluster = {
		.world = &world,
		.config = read_as(config, "config"),
		.nodes = read_as(nodes, "node/"),
		.specs = read_as(specs, "spec/"),
		.blocks = read_as(blocks, "block/"),
		.routes = read_as(routes, "static-route/"),
		.status = read_as(status, "status/node/"),
	};
	AUTO_DONE(change_list_done) struct change_list changes = { 0 };
	AUTO_DONE(effects_done) struct effects effects = { 0 };
	AUTO(free) char *got = NULL;
	int64_t revision = 0;

	for (size_t i = 0; i < ARRAY_SIZE(cluster_of_three); i++)
		if (strcmp(cluster_of_three[i].key, key) == 0)
			revision = 5;
	assert_int_equal(change_list_add(&changes, kind_find(kind), key,
					 value ? strdup(value) : NULL, revision),
			 0);
	assert_int_equal(effects_of(changes.v, changes.n, &cluster, &effects), 0);
	got = effects_text(&effects);
	assert_string_equal(got, text);
	assert_int_equal(effects.asks, asks);
}

static void another_asn_restarts_every_session(void **unused)
{
	expect("config", "config", "{\"asn\":64999}", true,
	       "restarts 1 session on 1 node (n1): its own AS changes\n"
	       "restarts 6 sessions on 3 nodes (n1, n2, n3): the neighbour's AS changes\n");
}

static void what_no_session_sees_asks_nothing(void **unused)
{
	expect("config", "config", "{\"logLevel\":\"debug\",\"reclaimAfter\":7200}", false, "");
	expect("peer", "peer/tor",
	       "{\"address\":\"192.0.2.1\",\"asn\":64600,\"nodeSelector\":\"zone == 'a'\","
	       "\"importFilter\":\"none\",\"passwordFile\":\"/etc/roost/tor\","
	       "\"description\":\"rack 1\"}",
	       false, "");
	expect("pool", "pool/web", "{\"cidr\":\"10.1.0.0/16\",\"cooldownSeconds\":5}", false, "");
}

static void without_a_protocol_all_is_withdrawn(void **unused)
{
	expect("config", "config", "{\"protocol\":\"none\"}", true,
	       "ends 7 sessions on 3 nodes (n1, n2, n3)\n"
	       "withdraws 2 blocks with 7 addresses in use from 2 nodes (n1, n2)\n");
}

static void a_peer_that_goes_ends_its_sessions(void **unused)
{
	expect("peer", "peer/tor", NULL, true, "ends 1 session on 1 node (n1)\n");
}

static void another_password_restarts_the_session(void **unused)
{
	expect("peer", "peer/tor",
	       "{\"address\":\"192.0.2.1\",\"asn\":64600,\"nodes\":[\"n1\"],"
	       "\"importFilter\":\"none\",\"passwordFile\":\"/etc/roost/new\"}",
	       true, "restarts 1 session on 1 node (n1): its password changes\n");
}

static void a_filter_concerns_the_sessions_of_its_peers(void **unused)
{
	expect("filter", "filter/none", "{\"rules\":[{\"action\":\"reject\"}]}", true,
	       "filters the routes of 1 session again on 1 node (n1)\n");
}

static void a_label_moves_sessions_and_routes(void **unused)
{
	expect("spec", "spec/n1", "{\"labels\":{\"zone\":\"b\"}}", true,
	       "ends 1 session on 1 node (n1)\n"
	       "removes static route vpn from 1 node (n1)\n");
}

static void a_node_that_goes_ends_the_sessions_of_others(void **unused)
{
	expect("removed", "removed/n1", "{\"by\":\"me\"}", true,
	       "ends 2 sessions on 2 nodes (n2, n3)\n");
}

static void a_pool_that_is_not_announced_withdraws_its_blocks(void **unused)
{
	expect("pool", "pool/web", "{\"cidr\":\"10.1.0.0/16\",\"announce\":false}", true,
	       "withdraws 2 blocks with 7 addresses in use from 2 nodes (n1, n2)\n");
}

static void a_pool_that_is_closed_sends_new_pods_elsewhere(void **unused)
{
	expect("pool", "pool/web", "{\"cidr\":\"10.1.0.0/16\",\"disabled\":true}", true,
	       "new pods use no pool instead of pool web on 3 nodes (n1, n2, n3)\n");
}

static void a_new_pool_that_takes_over_is_told(void **unused)
{
	expect("pool", "pool/a", "{\"cidr\":\"10.2.0.0/16\"}", false,
	       "new pods use pool a instead of pool web on 3 nodes (n1, n2, n3); set priority to "
	       "choose the order of pools\n");
	expect("pool", "pool/a", "{\"cidr\":\"10.2.0.0/16\",\"priority\":99}", false, "");
	expect("pool", "pool/z", "{\"cidr\":\"10.2.0.0/16\",\"priority\":101}", false,
	       "new pods use pool z instead of pool web on 3 nodes (n1, n2, n3); set priority to "
	       "choose the order of pools\n");
}

static void a_route_that_moves_leaves_its_nodes(void **unused)
{
	expect("route", "static-route/vpn", "{\"subnet\":\"172.20.0.0/16\",\"table\":100}", true,
	       "removes static route vpn from 1 node (n1)\n");
	expect("route", "static-route/vpn", "{\"subnet\":\"172.20.0.0/16\"}", false, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_asn_restarts_every_session),
		cmocka_unit_test(what_no_session_sees_asks_nothing),
		cmocka_unit_test(without_a_protocol_all_is_withdrawn),
		cmocka_unit_test(a_peer_that_goes_ends_its_sessions),
		cmocka_unit_test(another_password_restarts_the_session),
		cmocka_unit_test(a_filter_concerns_the_sessions_of_its_peers),
		cmocka_unit_test(a_label_moves_sessions_and_routes),
		cmocka_unit_test(a_node_that_goes_ends_the_sessions_of_others),
		cmocka_unit_test(a_pool_that_is_not_announced_withdraws_its_blocks),
		cmocka_unit_test(a_pool_that_is_closed_sends_new_pods_elsewhere),
		cmocka_unit_test(a_new_pool_that_takes_over_is_told),
		cmocka_unit_test(a_route_that_moves_leaves_its_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
