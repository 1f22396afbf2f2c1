/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/allocator/fixture_test.h"

#include <errno.h>

static struct world w;

static int open_world(void **unused)
{
	world_open(&w);
	return 0;
}

static int close_world(void **unused)
{
	world_close(&w);
	return 0;
}

/* "a b | six", or the sentence. */
static const char *chosen(const char *namespace, const char *const *named)
{
	struct texts names = { (const char **)(uintptr_t)named, 0 };
	struct choices c;
	struct err err;
	size_t n = 0;

	while (named && named[names.n])
		names.n++;
	if (choose_pools(allocator_pools(w.a), &names, namespace, &c, &err) < 0) {
		snprintf(w.text, sizeof(w.text), "%s", err.text);
		return w.text;
	}
	w.text[0] = '\0';
	for (size_t i = 0; i < c.ipv4.n; i++)
		n += (size_t)snprintf(w.text + n, sizeof(w.text) - n, "%s ", c.ipv4.v[i]->name);
	n += (size_t)snprintf(w.text + n, sizeof(w.text) - n, "|");
	for (size_t i = 0; i < c.ipv6.n; i++)
		n += (size_t)snprintf(w.text + n, sizeof(w.text) - n, " %s", c.ipv6.v[i]->name);
	choices_done(&c);
	return w.text;
}

#define NAMED(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void pools_come_in_the_order_of_their_names(void **unused)
{
	assert_string_equal(chosen("prod", NULL), "there is no pool");
	world_pool(&w, "c", "{\"cidr\":\"10.3.0.0/24\"}");
	world_pool(&w, "a", "{\"cidr\":\"10.1.0.0/24\"}");
	world_pool(&w, "six", "{\"cidr\":\"fd00::/64\",\"blockSize\":80}");
	world_pool(&w, "b", "{\"cidr\":\"10.2.0.0/24\"}");
	assert_string_equal(chosen("prod", NULL), "a b c | six");
}

static void a_higher_priority_comes_before_the_name(void **unused)
{
	world_pool(&w, "c", "{\"cidr\":\"10.3.0.0/24\",\"priority\":101}");
	world_pool(&w, "a", "{\"cidr\":\"10.1.0.0/24\",\"priority\":99}");
	world_pool(&w, "b", "{\"cidr\":\"10.2.0.0/24\"}");
	assert_string_equal(chosen("prod", NULL), "c b a |");
	/* Who asks by name decides the order. */
	assert_string_equal(chosen("prod", NAMED("a", "c")), "a c |");
}

static void a_matching_namespace_wins_for_its_family(void **unused)
{
	world_pool(&w, "a", "{\"cidr\":\"10.1.0.0/24\"}");
	world_pool(&w, "b", "{\"cidr\":\"10.2.0.0/24\",\"namespaces\":[\"shop\",\"team-*\"]}");
	world_pool(&w, "six", "{\"cidr\":\"fd00::/64\",\"blockSize\":80}");
	assert_string_equal(chosen("shop", NULL), "b | six");
	assert_string_equal(chosen("team-x", NULL), "b | six");
	assert_string_equal(chosen("team", NULL), "a | six");
	assert_string_equal(chosen("shop-2", NULL), "a | six");
	assert_string_equal(chosen("", NULL), "a | six");
}

static void a_strict_pool_is_a_fence_from_both_sides(void **unused)
{
	world_pool(&w, "a", "{\"cidr\":\"10.1.0.0/24\"}");
	world_pool(
		&w, "b",
		"{\"cidr\":\"10.2.0.0/24\",\"namespaces\":[\"shop\",\"team-*\"],\"strict\":true}");
	world_pool(&w, "c", "{\"cidr\":\"10.3.0.0/24\",\"namespaces\":[\"shop\"]}");
	world_pool(&w, "lan", "{\"cidr\":\"10.9.0.0/24\",\"network\":\"lan\"}");
	world_pool(&w, "six", "{\"cidr\":\"fd00::/64\",\"blockSize\":80}");
	/* Of the other family neither: an open pool there would be the gap in the fence. */
	assert_string_equal(chosen("shop", NULL), "b |");
	assert_string_equal(chosen("team-x", NULL), "b |");
	assert_string_equal(chosen("other", NULL), "a | six");
	assert_string_equal(chosen("", NULL), "a | six");
	/* Nor by name, as a pod's annotation gives it. */
	assert_string_equal(chosen("shop", NAMED("b")), "b |");
	assert_string_equal(chosen("other", NAMED("b")),
			    "pool b is strict, and its namespaces do not include \"other\"");
	assert_string_equal(chosen("", NAMED("b")),
			    "pool b is strict, and its namespaces do not include \"\"");
	assert_string_equal(
		chosen("shop", NAMED("b", "a")),
		"namespace \"shop\" belongs to the strict pool b, so it gets no address "
		"of pool a");
	assert_string_equal(
		chosen("shop", NAMED("c")),
		"namespace \"shop\" belongs to the strict pool b, so it gets no address "
		"of pool c");
	/* The fence is one of its network. */
	assert_string_equal(chosen("shop", NAMED("lan")), "lan |");
	/* A pool that gives nothing keeps its namespaces all the same. */
	world_pool(&w, "b",
		   "{\"cidr\":\"10.2.0.0/24\",\"namespaces\":[\"shop\"],\"strict\":true,"
		   "\"disabled\":true}");
	assert_non_null(strstr(chosen("shop", NULL), "no pool fits"));
	assert_string_equal(chosen("other", NULL), "a | six");
}

static void named_pools_come_as_named_and_alone(void **unused)
{
	world_pool(&w, "a", "{\"cidr\":\"10.1.0.0/24\"}");
	world_pool(&w, "b", "{\"cidr\":\"10.2.0.0/24\",\"namespaces\":[\"shop\"]}");
	world_pool(&w, "lan", "{\"cidr\":\"10.2.0.0/24\",\"network\":\"lan\"}");
	world_pool(&w, "off", "{\"cidr\":\"10.4.0.0/24\",\"disabled\":true}");
	world_pool(&w, "bad", "{\"cidr\":\"10.4.0.0/24\",\"blockSize\":8}");
	world_pool(&w, "far", "{\"cidr\":\"10.5.0.0/24\",\"nodeSelector\":\"zone == 'b'\"}");
	assert_string_equal(chosen("prod", NAMED("b", "a")), "b a |");
	assert_string_equal(chosen("prod", NAMED("lan")), "lan |");
	assert_string_equal(chosen("prod", NAMED("nope")), "there is no pool nope");
	assert_string_equal(chosen("prod", NAMED("off")), "pool off is disabled");
	assert_string_equal(chosen("prod", NAMED("bad")),
			    "pool bad is not used: pool/bad: field \"blockSize\": 8 is not between "
			    "24 and 32");
	assert_string_equal(chosen("prod", NAMED("far")),
			    "pool far is not for this node: nodeSelector is zone == 'b'");
	assert_string_equal(chosen("prod", NULL), "a |");
}

static void secondary_networks_are_only_for_those_who_ask(void **unused)
{
	world_pool(&w, "lan", "{\"cidr\":\"10.2.0.0/24\",\"network\":\"lan\"}");
	world_pool(&w, "made", "{\"cidr\":\"10.3.0.0/24\",\"origin\":\"ipam-config\"}");
	assert_string_equal(chosen("prod", NULL),
			    "no pool fits: none of 2 is enabled, valid, for this node, on network "
			    "default and for namespace \"prod\"");
}

static void the_node_selector_sees_labels_and_the_node_name(void **unused)
{
	const struct label labels[] = { { "zone", "a" }, { "kubernetes.io/hostname", "liar" } };

	w.labels = (struct labels){ labels, 2 };
	world_pool(&w, "a", "{\"cidr\":\"10.1.0.0/24\",\"nodeSelector\":\"zone == 'a'\"}");
	world_pool(&w, "b", "{\"cidr\":\"10.2.0.0/24\",\"nodeSelector\":\"zone == 'b'\"}");
	world_pool(
		&w, "c",
		"{\"cidr\":\"10.3.0.0/24\",\"nodeSelector\":\"kubernetes.io/hostname == 'n1'\"}");
	assert_string_equal(chosen("prod", NULL), "a c |");
}

static const char *wrong(const char *pool)
{
	return pool_views_find(allocator_pools(w.a), pool)->wrong.text;
}

static void of_two_that_overlap_the_older_stands(void **unused)
{
	world_pool(&w, "a", "{\"cidr\":\"10.1.0.0/24\"}");
	world_pool(&w, "b", "{\"cidr\":\"10.1.0.0/16\"}");
	world_pool(&w, "c", "{\"cidr\":\"10.1.9.0/24\"}");
	assert_string_equal(wrong("a"), "");
	assert_string_equal(wrong("b"), "pool b (10.1.0.0/16) overlaps pool a (10.1.0.0/24) on "
					"network default");
	/* One that is out itself keeps nobody out. */
	assert_string_equal(wrong("c"), "");
	w.input[0].created = 30;
	w.input[1].created = 20;
	w.input[2].created = 10;
	world_configure(&w);
	assert_string_equal(chosen("prod", NULL), "a c |");
	w.input[1].created = 5;
	world_configure(&w);
	assert_string_equal(chosen("prod", NULL), "b |");
	/* Blocks that are cut already decide before anything else. */
	world_extent(&w, "extent/default/a", "{\"cidr\":\"10.1.0.0/24\",\"blockSize\":26}");
	assert_string_equal(chosen("prod", NULL), "a c |");
	assert_string_equal(wrong("b"), "pool b (10.1.0.0/16) overlaps extent of pool a "
					"(10.1.0.0/24) on network default");
}

static void sizes_and_limits_come_from_the_extent(void **unused)
{
	const struct pool_view *v;
	char p[PREFIX_TEXT];

	world_pool(&w, "a", "{\"cidr\":\"10.9.0.0/16\",\"blockSize\":28,\"reserveEdges\":true}");
	world_extent(&w, "extent/default/a", "{\"cidr\":\"10.1.0.0/24\",\"blockSize\":26}");
	v = pool_views_find(allocator_pools(w.a), "a");
	assert_string_equal(prefix_print(&v->cidr, p), "10.1.0.0/24");
	assert_int_equal(v->block_size, 26);
	assert_int_equal(spans_size(&v->allowed), 254);
	assert_int_equal(spans_size(&v->usable), 4);
	assert_true(v->note.text[0]);
	/* A range that an operator gave stays what it says: nothing of it is left here. */
	world_pool(&w, "a", "{\"cidr\":\"10.9.0.0/16\",\"rangeStart\":\"10.9.0.1\"}");
	v = pool_views_find(allocator_pools(w.a), "a");
	assert_int_equal(spans_size(&v->allowed), 0);
	/* Made anew in the other family. */
	world_pool(&w, "a", "{\"cidr\":\"fd00::/112\"}");
	v = pool_views_find(allocator_pools(w.a), "a");
	assert_int_equal(spans_size(&v->allowed), 0);
}

static const struct pool_view *with_pod_cidrs(const char *first, const char *second)
{
	static struct prefix v[2];

	assert_int_equal(prefix_parse(first, &v[0]), 0);
	assert_int_equal(prefix_parse(second, &v[1]), 0);
	w.pod_cidrs = (struct prefixes){ v, 2 };
	world_configure(&w);
	return pool_views_find(allocator_pools(w.a), "a");
}

static void blocks_are_claimed_in_the_nodes_own_range_of_the_pool(void **unused)
{
	const struct pool_view *v;

	world_pool(&w, "a", "{\"cidr\":\"10.1.0.0/16\",\"exclude\":[\"10.1.4.0/26\"]}");
	v = with_pod_cidrs("10.1.4.0/24", "fd00::/64");
	assert_int_equal(spans_size(&v->usable), 3);
	assert_int_equal(v->usable.v[0].first, 4 * 4 + 1);
	assert_string_equal(v->note.text, "");
	/* A pool elsewhere is nobody's range. */
	v = with_pod_cidrs("10.9.4.0/24", "fd00::/64");
	assert_int_equal(spans_size(&v->usable), 1023);
	/* Half a block would be the next node's too. */
	v = with_pod_cidrs("10.1.4.0/28", "fd00::/64");
	assert_int_equal(spans_size(&v->usable), 0);
	assert_string_equal(
		v->note.text,
		"pool a: this node's pod CIDR 10.1.4.0/28 is smaller than a block "
		"(/26): no block is claimed for it; the pool needs blockSize=28 or more");
	/* On a network of its own it has nothing to do with pods' CIDRs. */
	world_pool(&w, "a", "{\"cidr\":\"10.1.0.0/16\",\"network\":\"lan\"}");
	v = with_pod_cidrs("10.1.4.0/24", "fd00::/64");
	assert_int_equal(spans_size(&v->usable), 1024);
}

static void a_point_to_point_pool_has_no_edges_to_spare(void **unused)
{
	static const struct {
		const char *json;
		unsigned n;
	} cases[] = {
		{ "{\"cidr\":\"10.1.0.0/32\",\"reserveEdges\":true}", 1 },
		{ "{\"cidr\":\"10.1.0.0/31\",\"reserveEdges\":true}", 2 },
		{ "{\"cidr\":\"10.1.0.0/30\",\"reserveEdges\":true}", 2 },
		{ "{\"cidr\":\"10.1.0.0/29\",\"reserveEdges\":true}", 6 },
		{ "{\"cidr\":\"10.1.0.0/29\"}", 8 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		world_pool(&w, "a", cases[i].json);
		assert_int_equal(spans_size(&pool_views_find(allocator_pools(w.a), "a")->allowed),
				 cases[i].n);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
	const struct CMUnitTest tests[] = {
		TEST(pools_come_in_the_order_of_their_names),
		TEST(a_higher_priority_comes_before_the_name),
		TEST(a_matching_namespace_wins_for_its_family),
		TEST(a_strict_pool_is_a_fence_from_both_sides),
		TEST(named_pools_come_as_named_and_alone),
		TEST(secondary_networks_are_only_for_those_who_ask),
		TEST(the_node_selector_sees_labels_and_the_node_name),
		TEST(of_two_that_overlap_the_older_stands),
		TEST(sizes_and_limits_come_from_the_extent),
		TEST(a_point_to_point_pool_has_no_edges_to_spare),
		TEST(blocks_are_claimed_in_the_nodes_own_range_of_the_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
