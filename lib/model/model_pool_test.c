/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/model/model.h"

static struct pool pool_of(const char *key, const char *json)
{
	struct err err = { "" };
	struct pool p;

	if (pool_decode(key, json, strlen(json), &p, &err) != 0)
		fail_msg("%s", err.text);
	return p;
}

static struct extent extent_of(const char *key, const char *json)
{
	struct err err = { "" };
	struct extent e;

	if (extent_decode(key, json, strlen(json), &e, &err) != 0)
		fail_msg("%s", err.text);
	return e;
}

static void round_trips(const char *json, const char *want)
{
	AUTO_DONE(pool_done) struct pool a = pool_of("pool/web", json), b = { 0 };
	AUTO(free) char *text = NULL;

	assert_int_equal(pool_encode(&a, &text), 0);
	assert_string_equal(text, want);
	b = pool_of("pool/web", text);
	assert_true(pool_equal(&a, &b));
}

static void refused(const char *json, const char *sentence)
{
	struct err err = { "" };
	struct pool p;

	assert_int_equal(pool_decode("pool/web", json, strlen(json), &p, &err), -EINVAL);
	assert_string_equal(err.text, sentence);
}
/* A pool 10.1.0.0/24 with more fields. */
#define REFUSED(fields, sentence)                                                                  \
	refused("{\"cidr\":\"10.1.0.0/24\"," fields "}", "pool/web: " sentence)

static void every_field_is_read_and_written(void **unused)
{
	const char json[] =
		"{\"cidr\":\"10.1.0.0/16\",\"network\":\"storage\",\"prefix\":\"pool\","
		"\"encapsulation\":\"vxlan\",\"blockSize\":28,\"routed\":true,"
		"\"nodeSelector\":\"zone == 'a'\",\"namespaces\":[\"shop\",\"team-*\"],"
		"\"rangeStart\":\"10.1.0.10\",\"rangeEnd\":\"10.1.9.0\","
		"\"exclude\":[\"10.1.0.12\",\"10.1.1.0/30\"],\"gateway\":\"10.1.0.1\","
		"\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":\"10.1.0.1\"},{\"dst\":\"10.9.0.0/"
		"16\"}],"
		"\"dns\":{\"nameservers\":[\"10.1.0.2\",\"fd00::2\"],\"domain\":\"example.org\","
		"\"search\":[\"a.example.org\"],\"options\":[\"ndots:5\"]},"
		"\"reserveEdges\":false,\"announce\":true,\"natOutgoing\":true,\"preallocate\":1,"
		"\"maxBlocksPerNode\":4,\"cooldownSeconds\":0,\"disabled\":true,"
		"\"origin\":\"ipam-config\"}";

	round_trips(json, json);
}

static void only_the_cidr_is_required(void **unused)
{
	round_trips("{\"cidr\":\"10.1.0.0/16\"}", "{\"cidr\":\"10.1.0.0/16\"}");
	round_trips("{\"cidr\":\"fd00:1::/108\"}", "{\"cidr\":\"fd00:1::/108\"}");
	refused("{}", "pool/web: field \"cidr\": is missing");
	refused("{\"cidr\":null}", "pool/web: field \"cidr\": is missing");
	refused("{\"cidr\":\"\"}", "pool/web: field \"cidr\": \"\" is not a prefix such as "
				   "\"10.1.0.0/16\" or \"fd00:1::/64\"");
}

static void what_equals_the_default_is_not_written(void **unused)
{
	round_trips("{\"blockSize\":26,\"routed\":true,\"network\":\"default\","
		    "\"rangeStart\":\"10.1.0.0\",\"rangeEnd\":\"10.1.255.255\",\"announce\":true,"
		    "\"dns\":{},\"exclude\":[],\"cidr\":\"10.1.0.0/16\"}",
		    "{\"cidr\":\"10.1.0.0/16\"}");
}

static void plain_defaults_are_as_documented(void **unused)
{
	AUTO_DONE(pool_done) struct pool p = pool_of("pool/web", "{\"cidr\":\"10.1.0.0/16\"}");
	char text[ADDRESS_TEXT];

	assert_string_equal(p.name, "web");
	assert_int_equal(p.block_size, 26);
	assert_string_equal(p.network, "default");
	assert_true(p.routed);
	assert_string_equal(p.node_selector.text, "");
	assert_true(selector_matches(p.node_selector.parsed, &(struct labels){ 0 }));
	assert_int_equal(p.namespaces.n, 0);
	assert_string_equal(address_print(&p.range_start, text), "10.1.0.0");
	assert_string_equal(address_print(&p.range_end, text), "10.1.255.255");
	assert_int_equal(p.exclude.n, 0);
	assert_int_equal(p.prefix, POOL_PREFIX_HOST);
	assert_int_equal(p.gateway.family, 0);
	assert_int_equal(p.routes.n, 0);
	assert_string_equal(p.dns.domain, "");
	assert_false(p.reserve_edges);
	assert_int_equal(p.encapsulation, ENCAPSULATION_NONE);
	assert_true(p.announce);
	assert_false(p.nat_outgoing);
	assert_int_equal(p.preallocate, 0);
	assert_int_equal(p.max_blocks_per_node, 0);
	assert_int_equal(p.cooldown_seconds, 60);
	assert_false(p.disabled);
	assert_string_equal(p.origin, "");
}

static void block_size_follows_the_cidr_when_that_is_longer(void **unused)
{
	static const struct {
		const char *json;
		uint32_t size;
	} cases[] = {
		{ "{\"cidr\":\"10.1.0.0/26\"}", 26 }, { "{\"cidr\":\"10.1.0.0/28\"}", 28 },
		{ "{\"cidr\":\"10.1.0.1/32\"}", 32 }, { "{\"cidr\":\"fd00::/122\"}", 122 },
		{ "{\"cidr\":\"fd00::/102\"}", 122 }, { "{\"cidr\":\"fd00::/127\"}", 127 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO_DONE(pool_done) struct pool p = pool_of("pool/web", cases[i].json);

		assert_int_equal(p.block_size, cases[i].size);
	}
}

static void some_defaults_depend_on_other_fields(void **unused)
{
	AUTO_DONE(pool_done)
	struct pool other = pool_of("pool/a", "{\"cidr\":\"10.1.0.0/24\",\"network\":\"net2\"}");
	AUTO_DONE(pool_done)
	struct pool wide = pool_of("pool/b", "{\"cidr\":\"10.1.0.0/24\",\"prefix\":\"pool\"}");
	AUTO_DONE(pool_done)
	struct pool vxlan = pool_of("pool/c",
				    "{\"cidr\":\"10.1.0.0/24\",\"encapsulation\":\"vxlan\"}");
	AUTO_DONE(pool_done)
	struct pool cross = pool_of(
		"pool/d", "{\"cidr\":\"10.1.0.0/24\",\"encapsulation\":\"vxlan-cross-subnet\"}");

	assert_false(other.routed);
	assert_true(wide.reserve_edges);
	assert_false(vxlan.announce);
	assert_true(cross.announce);
}

static void block_size_fits_the_cidr(void **unused)
{
	REFUSED("\"blockSize\":33", "field \"blockSize\": 33 is not between 24 and 32");
	REFUSED("\"blockSize\":23", "field \"blockSize\": 23 is not between 24 and 32");
	REFUSED("\"blockSize\":\"26\"", "field \"blockSize\": \"26\" is a string, not an integer");
	refused("{\"cidr\":\"fd00:1::/64\",\"blockSize\":122}",
		"pool/web: field \"blockSize\": 122 cuts fd00:1::/64 into 2^58 blocks, more than "
		"2^20: use at most 84");
	refused("{\"cidr\":\"10.0.0.0/8\",\"blockSize\":29}",
		"pool/web: field \"blockSize\": 29 cuts 10.0.0.0/8 into 2^21 blocks, more than "
		"2^20: use at most 28");
	round_trips("{\"cidr\":\"fd00:1::/64\",\"blockSize\":84}", "{\"cidr\":\"fd00:1::/64\"}");
	round_trips("{\"cidr\":\"fd00:1::/102\",\"blockSize\":122}", "{\"cidr\":\"fd00:1::/102\"}");
	round_trips("{\"cidr\":\"16.0.0.0/4\",\"blockSize\":24}", "{\"cidr\":\"16.0.0.0/4\"}");
	round_trips("{\"cidr\":\"10.0.0.0/8\",\"blockSize\":28}",
		    "{\"cidr\":\"10.0.0.0/8\",\"blockSize\":28}");
	round_trips("{\"cidr\":\"10.1.0.0/24\",\"blockSize\":24}",
		    "{\"cidr\":\"10.1.0.0/24\",\"blockSize\":24}");
	round_trips("{\"cidr\":\"10.1.0.0/24\",\"blockSize\":32}",
		    "{\"cidr\":\"10.1.0.0/24\",\"blockSize\":32}");
}

static void ranges_lie_in_the_cidr(void **unused)
{
	REFUSED("\"rangeStart\":\"10.2.0.1\"",
		"field \"rangeStart\": 10.2.0.1/32 is not in 10.1.0.0/24");
	REFUSED("\"rangeEnd\":\"fd00::1\"",
		"field \"rangeEnd\": fd00::1/128 is not in 10.1.0.0/24");
	REFUSED("\"exclude\":[\"10.1.0.1\",\"10.0.0.0/8\"]",
		"field \"exclude[1]\": 10.0.0.0/8 is not in 10.1.0.0/24");
	REFUSED("\"rangeStart\":\"10.1.0.9\",\"rangeEnd\":\"10.1.0.8\"",
		"field \"rangeEnd\": 10.1.0.8 comes before rangeStart 10.1.0.9");
	round_trips(
		"{\"cidr\":\"10.1.0.0/24\",\"rangeStart\":\"10.1.0.9\",\"rangeEnd\":\"10.1.0.9\"}",
		"{\"cidr\":\"10.1.0.0/24\",\"rangeStart\":\"10.1.0.9\","
		"\"rangeEnd\":\"10.1.0.9\"}");
}

static void other_rules_of_a_pool(void **unused)
{
	refused("{\"cidr\":\"10.1.0.5/24\"}",
		"pool/web: field \"cidr\": \"10.1.0.5/24\" has host bits set: write 10.1.0.0/24");
	REFUSED("\"network\":\"\"", "field \"network\": \"\" is not a network name: 1 to 63 of "
				    "a-z, 0-9, '.', '-', with "
				    "a letter or digit at both ends");
	REFUSED("\"namespaces\":[\"a\",\"b*c\"]",
		"field \"namespaces[1]\": \"b*c\" is not a namespace: up to 63 of a-z, 0-9, '-', "
		"with a letter or digit at both ends, or its beginning and '*'");
	REFUSED("\"strict\":true", "field \"strict\": needs \"namespaces\"");
	REFUSED("\"namespaces\":\"a\"", "field \"namespaces\": \"a\" is a string, not an array");
	REFUSED("\"gateway\":\"fd00::1\"",
		"field \"gateway\": fd00::1 is not of the family of 10.1.0.0/24");
	REFUSED("\"routes\":[{\"dst\":\"::/0\"}]",
		"field \"routes[0].dst\": :: is not of the family of 10.1.0.0/24");
	REFUSED("\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":\"fd00::1\"}]",
		"field \"routes[0].gw\": fd00::1 is not of the family of 10.1.0.0/24");
	REFUSED("\"routes\":[{\"gw\":\"10.1.0.1\"}]", "field \"routes[0].dst\": is missing");
	REFUSED("\"prefix\":\"net\"", "field \"prefix\": \"net\" is not one of host, pool");
	REFUSED("\"encapsulation\":\"ipip\"",
		"field \"encapsulation\": \"ipip\" is not one of none, vxlan, vxlan-cross-subnet");
	REFUSED("\"preallocate\":3,\"maxBlocksPerNode\":2",
		"field \"preallocate\": 3 is more than maxBlocksPerNode 2");
	round_trips("{\"cidr\":\"10.1.0.0/24\",\"preallocate\":3}",
		    "{\"cidr\":\"10.1.0.0/24\",\"preallocate\":3}");
	REFUSED("\"preallocate\":-1", "field \"preallocate\": -1 is not between 0 and 1048576");
}

static void the_selector_is_parsed_once_and_its_error_has_the_column(void **unused)
{
	const struct label a = { "zone", "a" }, b = { "zone", "b" };
	AUTO_DONE(pool_done)
	struct pool p = pool_of("pool/web",
				"{\"cidr\":\"10.1.0.0/24\",\"nodeSelector\":\"zone == 'a'\"}");
	const char wrong[] = "{\"cidr\":\"10.1.0.0/24\",\"nodeSelector\":\"zone = 'a'\"}";
	struct err err;
	struct pool q;

	assert_true(selector_matches(p.node_selector.parsed, &(struct labels){ &a, 1 }));
	assert_false(selector_matches(p.node_selector.parsed, &(struct labels){ &b, 1 }));
	assert_int_equal(pool_decode("pool/web", wrong, sizeof(wrong) - 1, &q, &err), -EINVAL);
	assert_ptr_equal(strstr(err.text, "pool/web: field \"nodeSelector\": column "), err.text);
}

static void extents_need_cidr_and_block_size(void **unused)
{
	static const char json[] =
		"{\"cidr\":\"10.1.0.0/16\",\"blockSize\":26,\"made\":\"2026-11-16T02:45:55Z\"}";
	AUTO_DONE(extent_done) struct extent e = extent_of("extent/default/web", json);
	AUTO_DONE(extent_done) struct extent f = { 0 };
	AUTO(free) char *text = NULL;
	struct err err;

	assert_string_equal(e.network, "default");
	assert_string_equal(e.pool, "web");
	assert_int_equal(extent_encode(&e, &text), 0);
	assert_string_equal(text, json);
	f = extent_of("extent/default/web", "{\"cidr\":\"10.1.0.0/16\",\"blockSize\":26}");
	assert_false(extent_equal(&e, &f));
	assert_string_equal(f.made, "");

	assert_int_equal(
		extent_decode("extent/default/web", "{\"cidr\":\"10.1.0.0/16\"}", 22, &f, &err),
		-EINVAL);
	assert_string_equal(err.text, "extent/default/web: field \"blockSize\": is missing");
	assert_int_equal(extent_decode("extent/default/web",
				       "{\"cidr\":\"10.1.0.0/16\",\"blockSize\":8}", 36, &f, &err),
			 -EINVAL);
	assert_string_equal(err.text,
			    "extent/default/web: field \"blockSize\": 8 is not between 16 and 32");
}

static void pools_of_one_network_must_not_overlap(void **unused)
{
	AUTO_DONE(pool_done) struct pool a = pool_of("pool/a", "{\"cidr\":\"10.1.0.0/16\"}");
	AUTO_DONE(pool_done) struct pool b = pool_of("pool/b", "{\"cidr\":\"10.1.4.0/24\"}");
	AUTO_DONE(pool_done) struct pool c = pool_of("pool/c", "{\"cidr\":\"10.2.0.0/16\"}");
	AUTO_DONE(pool_done)
	struct pool d = pool_of("pool/d", "{\"cidr\":\"10.1.0.0/16\",\"network\":\"net2\"}");
	const struct pool *fine[] = { &a, &c, &d }, *clash[] = { &c, &d, &b, &a };
	struct err err;

	assert_int_equal(pools_conflict(fine, 3, NULL, 0, &err), 0);
	assert_int_equal(pools_conflict(clash, 4, NULL, 0, &err), -EEXIST);
	assert_string_equal(err.text, "pool b (10.1.4.0/24) overlaps pool a (10.1.0.0/16) on "
				      "network default");
	assert_int_equal(pool_conflicts_pool(&a, &b, NULL), -EEXIST);
}

static void a_pool_must_not_overlap_the_extent_of_another(void **unused)
{
	AUTO_DONE(pool_done) struct pool a = pool_of("pool/a", "{\"cidr\":\"10.1.0.0/16\"}");
	AUTO_DONE(extent_done)
	struct extent own = extent_of("extent/default/a",
				      "{\"cidr\":\"10.1.0.0/20\",\"blockSize\":26}");
	AUTO_DONE(extent_done)
	struct extent gone = extent_of("extent/default/gone",
				       "{\"cidr\":\"10.1.4.0/24\",\"blockSize\":26}");
	AUTO_DONE(extent_done)
	struct extent far = extent_of("extent/net2/gone",
				      "{\"cidr\":\"10.1.4.0/24\",\"blockSize\":26}");
	const struct pool *pools[] = { &a };
	const struct extent *fine[] = { &own, &far }, *clash[] = { &own, &gone };
	struct err err;

	assert_int_equal(pools_conflict(pools, 1, fine, 2, &err), 0);
	assert_int_equal(pools_conflict(pools, 1, clash, 2, &err), -EEXIST);
	assert_string_equal(err.text, "pool a (10.1.0.0/16) overlaps extent of pool gone "
				      "(10.1.4.0/24) on network default");
	assert_int_equal(extent_conflicts_extent(&own, &gone, &err), -EEXIST);
	assert_int_equal(extent_conflicts_extent(&own, &far, &err), 0);
}

static void an_edit_after_the_first_claim_is_reported(void **unused)
{
	AUTO_DONE(pool_done)
	struct pool a = pool_of("pool/a", "{\"cidr\":\"10.1.0.0/16\",\"blockSize\":28}");
	AUTO_DONE(extent_done)
	struct extent same = extent_of("extent/default/a",
				       "{\"cidr\":\"10.1.0.0/16\",\"blockSize\":28}");
	AUTO_DONE(extent_done)
	struct extent other = extent_of("extent/default/a",
					"{\"cidr\":\"10.1.0.0/16\",\"blockSize\":26}");
	struct err err;

	assert_int_equal(pool_differs_from_extent(&a, &same, &err), 0);
	assert_int_equal(pool_differs_from_extent(&a, &other, &err), -ESTALE);
	assert_string_equal(
		err.text, "pool a says 10.1.0.0/16 in blocks of /28, but blocks are already cut "
			  "from 10.1.0.0/16 as /26: the edit has no effect until the last of them "
			  "is released");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_is_read_and_written),
		cmocka_unit_test(only_the_cidr_is_required),
		cmocka_unit_test(what_equals_the_default_is_not_written),
		cmocka_unit_test(plain_defaults_are_as_documented),
		cmocka_unit_test(block_size_follows_the_cidr_when_that_is_longer),
		cmocka_unit_test(some_defaults_depend_on_other_fields),
		cmocka_unit_test(block_size_fits_the_cidr),
		cmocka_unit_test(ranges_lie_in_the_cidr),
		cmocka_unit_test(other_rules_of_a_pool),
		cmocka_unit_test(the_selector_is_parsed_once_and_its_error_has_the_column),
		cmocka_unit_test(extents_need_cidr_and_block_size),
		cmocka_unit_test(pools_of_one_network_must_not_overlap),
		cmocka_unit_test(a_pool_must_not_overlap_the_extent_of_another),
		cmocka_unit_test(an_edit_after_the_first_claim_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
