/* SPDX-License-Identifier: Apache-2.0 */
/* What the records are, by whole states: "key=value" lines of everything that there is. */
#include "lib/lease/lease_mirror.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/model/model.h"

#define SELF "192.0.2.1"

static struct memory_etcd etcd;
static struct lease_mirror mirror;

static int begin(void **unused)
{
	memory_etcd_init(&etcd);
	lease_mirror_init(&mirror, &etcd, "/r/", "default", "n1");
	return 0;
}

static int end(void **unused)
{
	lease_mirror_done(&mirror);
	memory_etcd_done(&etcd);
	return 0;
}

static struct lease lease(const char *subnet, const char *holder, uint8_t mac)
{
	struct lease l = { .mac = { { mac ? 2 : 0, 0, 0, 0, 0, mac } } };

	assert_int_equal(prefix_parse(subnet, &l.subnet), 0);
	if (holder)
		assert_int_equal(address_parse(holder, &l.holder), 0);
	return l;
}

static bool put(const char *subnet, const char *holder, uint8_t mac)
{
	struct lease l = lease(subnet, holder, mac);

	return lease_mirror_put(&mirror, &l);
}

static bool drop(const char *subnet)
{
	struct lease_change change = { lease(subnet, NULL, 0), true };

	return lease_mirror_changes(&mirror, &(struct lease_changes){ .v = &change, .n = 1 });
}

static bool reset(const struct lease *leases, size_t n)
{
	struct lease_change v[8] = { 0 };

	for (size_t i = 0; i < n; i++)
		v[i].lease = leases[i];
	return lease_mirror_changes(&mirror,
				    &(struct lease_changes){ .reset = true, .v = v, .n = n });
}

static bool self(const char *text)
{
	struct address a;

	assert_int_equal(address_parse(text, &a), 0);
	return lease_mirror_self(&mirror, &a);
}

static void expect(const char *want)
{
	char got[4096] = "";

	for (size_t i = 0; i < etcd.keys.n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s=%s\n",
			 etcd.keys.v[i]->kv.key + 3, etcd.keys.v[i]->kv.value);
	assert_string_equal(got, want);
}

#define OTHER_2 "block/default/10.5.2.0-24={\"node\":\"lease-192.0.2.2\",\"pool\":\"lease\"}\n"
#define NODE_2(mac)                                                                                \
	"node/lease-192.0.2.2={\"ipv4\":\"192.0.2.2/32\",\"machine\":\"lease\",\"boot\":\"lease\"" \
	",\"vtep\":{\"mac\":\"02:00:00:00:00:" mac "\"}}\n"
#define OWN_1   "block/default/10.5.1.0-24={\"node\":\"n1\",\"pool\":\"lease\"}\n"
#define INDEX_1 "host/n1/ipv4/block/default/10.5.1.0-24={\"pool\":\"lease\"}\n"

static void anothers_lease_is_a_block_and_a_node(void **unused)
{
	assert_true(put("10.5.2.0/24", "192.0.2.2", 2));
	expect(OTHER_2 NODE_2("02"));
	assert_false(put("10.5.2.0/24", "192.0.2.2", 2));
	/* A MAC that changes is no new lease. */
	assert_true(put("10.5.2.0/24", "192.0.2.2", 3));
	expect(OTHER_2 NODE_2("03"));
	assert_true(drop("10.5.2.0/24"));
	expect("");
	assert_false(drop("10.5.2.0/24"));
}

static void our_own_is_this_nodes_block(void **unused)
{
	assert_false(self(SELF));
	put("10.5.1.0/24", SELF, 1);
	expect(OWN_1 INDEX_1);
	assert_non_null(lease_mirror_own(&mirror, NULL));
	drop("10.5.1.0/24");
	expect("");
	assert_null(lease_mirror_own(&mirror, NULL));
}

static void an_address_learnt_later_makes_it_ours(void **unused)
{
	put("10.5.2.0/24", "192.0.2.2", 2);
	put("10.5.1.0/24", SELF, 1);
	assert_true(self(SELF));
	expect(OWN_1 OTHER_2 INDEX_1 NODE_2("02"));
}

/* The registration's record and a claim's token are not the mirror's to change. */
static void what_the_agent_wrote_itself_stays(void **unused)
{
	static const char claim[] = "{\"node\":\"n1\",\"pool\":\"lease\",\"token\":\"t\"}";

	self(SELF);
	memory_put(&etcd, &(struct store_op){ .kind = STORE_PUT,
					      .key = "/r/block/default/10.5.1.0-24",
					      .value = claim,
					      .value_len = strlen(claim) });
	etcd.revision++;
	put("10.5.1.0/24", SELF, 1);
	expect("block/default/"
	       "10.5.1.0-24={\"node\":\"n1\",\"pool\":\"lease\",\"token\":\"t\"}\n" INDEX_1);
}

static void a_lost_lease_is_anothers_block(void **unused)
{
	self(SELF);
	put("10.5.1.0/24", SELF, 1);
	put("10.5.1.0/24", "192.0.2.2", 2);
	expect("block/default/"
	       "10.5.1.0-24={\"node\":\"lease-192.0.2.2\",\"pool\":\"lease\"}\n" NODE_2("02"));
}

static void a_holder_with_two_leases_is_one_node(void **unused)
{
	put("10.5.2.0/24", "192.0.2.2", 2);
	put("10.5.3.0/24", "192.0.2.2", 2);
	drop("10.5.2.0/24");
	expect("block/default/"
	       "10.5.3.0-24={\"node\":\"lease-192.0.2.2\",\"pool\":\"lease\"}\n" NODE_2("02"));
}

static void a_snapshot_removes_what_it_does_not_have(void **unused)
{
	int64_t before;

	put("10.5.2.0/24", "192.0.2.2", 2);
	put("10.5.3.0/24", "192.0.2.3", 3);
	put("10.5.4.0/24", "192.0.2.4", 4);
	before = etcd.revision;
	assert_true(reset((struct lease[]){ lease("10.5.2.0/24", "192.0.2.2", 2) }, 1));
	expect(OTHER_2 NODE_2("02"));
	/* One revision, whatever it changed; none if that is nothing. */
	assert_int_equal(etcd.revision, before + 1);
	assert_false(reset((struct lease[]){ lease("10.5.2.0/24", "192.0.2.2", 2) }, 1));
	assert_int_equal(etcd.revision, before + 1);
	assert_true(reset(NULL, 0));
	expect("");
}

/* A block that somebody has is taken, though nobody can tell by whom. */
static void a_holder_that_cannot_be_read(void **unused)
{
	put("10.5.2.0/24", NULL, 0);
	expect("block/default/10.5.2.0-24={\"node\":\"lease-unknown\",\"pool\":\"lease\"}\n");
	put("10.5.2.0/24", "192.0.2.2", 2);
	expect(OTHER_2 NODE_2("02"));
	put("10.5.2.0/24", NULL, 0);
	expect(OTHER_2 NODE_2("02"));
}

static void the_network_is_config_pool_and_extent(void **unused)
{
	struct lease_network n = { .subnet_len = 24, .vni = 1, .port = 8472 };
	AUTO_DONE(cluster_config_done) struct cluster_config config = { 0 };
	AUTO_DONE(pool_done) struct pool pool = { 0 };
	const struct memory_kv *kv;

	assert_int_equal(prefix_parse("10.5.0.0/16", &n.cidr), 0);
	assert_true(lease_mirror_network(&mirror, &n));
	assert_false(lease_mirror_network(&mirror, &n));
	kv = memory_find(&etcd, "/r/config");
	assert_int_equal(
		cluster_config_decode("config", kv->kv.value, kv->kv.value_len, &config, NULL), 0);
	assert_int_equal(config.protocol, PROTOCOL_NONE);
	assert_int_equal(config.vxlan.vni, 1);
	assert_int_equal(config.vxlan.port, 8472);
	assert_int_equal(config.reclaim_after, 3600);
	kv = memory_find(&etcd, "/r/pool/lease");
	assert_int_equal(pool_decode("pool/lease", kv->kv.value, kv->kv.value_len, &pool, NULL), 0);
	assert_int_equal(pool.encapsulation, ENCAPSULATION_VXLAN);
	assert_int_equal(pool.block_size, 24);
	assert_int_equal(pool.max_blocks_per_node, 1);
	assert_string_equal(memory_find(&etcd, "/r/extent/default/lease")->kv.value,
			    "{\"cidr\":\"10.5.0.0/16\",\"blockSize\":24}");
}

/* Whoever holds a short lease must not go on for long without the server. */
static void a_short_lease_shortens_the_time_without_a_server(void **unused)
{
	static const struct {
		int64_t lasts;
		uint32_t reclaim_after;
	} cases[] = { { 86400, 3600 }, { 4000, 2000 }, { 60, 900 }, { 7200, 3600 } };
	struct lease_network n = { .subnet_len = 24, .vni = 1, .port = 8472 };

	assert_false(lease_mirror_lasts(&mirror, 86400));
	assert_int_equal(prefix_parse("10.5.0.0/16", &n.cidr), 0);
	lease_mirror_network(&mirror, &n);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		AUTO_DONE(cluster_config_done) struct cluster_config config = { 0 };
		const struct store_kv *kv;

		assert_int_equal(lease_mirror_lasts(&mirror, cases[i].lasts), i > 0);
		kv = &memory_find(&etcd, "/r/config")->kv;
		assert_int_equal(
			cluster_config_decode("config", kv->value, kv->value_len, &config, NULL),
			0);
		assert_int_equal(config.reclaim_after, cases[i].reclaim_after);
	}
}

/* Many, in an order that is not theirs: every one is found again. */
static void a_large_table(void **unused)
{
	char subnet[PREFIX_TEXT], holder[ADDRESS_TEXT];
	size_t n = 4001;

	for (size_t i = 0; i < n; i++) {
		size_t k = i * 1999 % n;

		snprintf(subnet, sizeof(subnet), "10.%zu.%zu.0/24", k / 250, k % 250);
		snprintf(holder, sizeof(holder), "192.168.%zu.%zu", k % 1000 / 250, k % 250);
		put(subnet, holder, 2);
	}
	assert_int_equal(mirror.by_subnet.n, n);
	assert_int_equal(etcd.keys.n, n + 1000);
	assert_true(reset(NULL, 0));
	assert_int_equal(etcd.keys.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(anothers_lease_is_a_block_and_a_node, begin, end),
		cmocka_unit_test_setup_teardown(our_own_is_this_nodes_block, begin, end),
		cmocka_unit_test_setup_teardown(an_address_learnt_later_makes_it_ours, begin, end),
		cmocka_unit_test_setup_teardown(what_the_agent_wrote_itself_stays, begin, end),
		cmocka_unit_test_setup_teardown(a_lost_lease_is_anothers_block, begin, end),
		cmocka_unit_test_setup_teardown(a_holder_with_two_leases_is_one_node, begin, end),
		cmocka_unit_test_setup_teardown(a_snapshot_removes_what_it_does_not_have, begin,
						end),
		cmocka_unit_test_setup_teardown(a_holder_that_cannot_be_read, begin, end),
		cmocka_unit_test_setup_teardown(the_network_is_config_pool_and_extent, begin, end),
		cmocka_unit_test_setup_teardown(a_short_lease_shortens_the_time_without_a_server,
						begin, end),
		cmocka_unit_test_setup_teardown(a_large_table, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
