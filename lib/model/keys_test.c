/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/model/keys.h"

/* One key of every kind, in the order of the enum. */
static const char *const samples[KEY_KINDS] = {
	[KEY_CONFIG] = "config",
	[KEY_POOL] = "pool/web",
	[KEY_EXTENT] = "extent/default/web",
	[KEY_BLOCK] = "block/default/10.1.0.64-26",
	[KEY_HOST_BLOCK] = "host/n1.example/ipv6/block/default/fd00:1::40-122",
	[KEY_ADDRESS] = "host/n1/address/default/10.1.0.5",
	[KEY_GIVE_BACK] = "host/n1/give-back/net2",
	[KEY_NODE] = "node/n1",
	[KEY_SPEC] = "spec/n1",
	[KEY_REMOVED] = "removed/n1",
	[KEY_PEER] = "peer/tor-1",
	[KEY_FILTER] = "filter/only-aggregates",
	[KEY_STATIC_ROUTE] = "static-route/storage",
	[KEY_STATUS_NODE] = "status/node/n1",
	[KEY_STATUS_POOL] = "status/pool/web",
	[KEY_STATUS_STATIC_ROUTE] = "status/static-route/storage/n1",
	[KEY_RECOVERY] = "recovery",
	[KEY_LEADER] = "leader/controller",
	[KEY_HISTORY] = "history/20261118t214200.123456z-1a2b3c4d",
};

static void every_kind_round_trips(void **unused)
{
	char text[KEY_TEXT];
	struct key key;

	for (int kind = 0; kind < KEY_KINDS; kind++) {
		assert_non_null(samples[kind]);
		assert_int_equal(key_parse(samples[kind], &key), 0);
		assert_int_equal(key.kind, kind);
		assert_int_equal(key_print(&key, text), 0);
		assert_string_equal(text, samples[kind]);
	}
}

static void builders_make_what_the_parser_reads(void **unused)
{
	char text[KEY_TEXT];
	struct prefix v4, v6;
	struct address a;

	assert_int_equal(prefix_parse("10.1.0.64/26", &v4), 0);
	assert_int_equal(prefix_parse("fd00:1::40/122", &v6), 0);
	assert_int_equal(address_parse("10.1.0.5", &a), 0);
#define MAKES(kind, call)                                                                          \
	do {                                                                                       \
		assert_int_equal(call, 0);                                                         \
		assert_string_equal(text, samples[kind]);                                          \
	} while (0)
	MAKES(KEY_CONFIG, key_config(text));
	MAKES(KEY_POOL, key_pool(text, "web"));
	MAKES(KEY_EXTENT, key_extent(text, "default", "web"));
	MAKES(KEY_BLOCK, key_block(text, "default", &v4));
	MAKES(KEY_HOST_BLOCK, key_host_block(text, "n1.example", "default", &v6));
	MAKES(KEY_ADDRESS, key_address(text, "n1", "default", &a));
	MAKES(KEY_GIVE_BACK, key_give_back(text, "n1", "net2"));
	MAKES(KEY_NODE, key_node(text, "n1"));
	MAKES(KEY_SPEC, key_spec(text, "n1"));
	MAKES(KEY_REMOVED, key_removed(text, "n1"));
	MAKES(KEY_PEER, key_peer(text, "tor-1"));
	MAKES(KEY_FILTER, key_filter(text, "only-aggregates"));
	MAKES(KEY_STATIC_ROUTE, key_static_route(text, "storage"));
	MAKES(KEY_STATUS_NODE, key_status_node(text, "n1"));
	MAKES(KEY_STATUS_POOL, key_status_pool(text, "web"));
	MAKES(KEY_STATUS_STATIC_ROUTE, key_status_static_route(text, "storage", "n1"));
	MAKES(KEY_RECOVERY, key_recovery(text));
	MAKES(KEY_LEADER, key_leader(text));
	MAKES(KEY_HISTORY, key_history(text, "20261118t214200.123456z-1a2b3c4d"));
	assert_int_equal(key_host_block(text, "n1", "default", &v4), 0);
	assert_string_equal(text, "host/n1/ipv4/block/default/10.1.0.64-26");
}

static void parts_are_where_they_belong(void **unused)
{
	char text[PREFIX_TEXT];
	struct key key;

	assert_int_equal(key_parse(samples[KEY_HOST_BLOCK], &key), 0);
	assert_string_equal(key.node, "n1.example");
	assert_string_equal(key.network, "default");
	assert_string_equal(prefix_print(&key.block, text), "fd00:1::40/122");
	assert_string_equal(key.pool, "");
	assert_int_equal(key_parse(samples[KEY_STATUS_STATIC_ROUTE], &key), 0);
	assert_string_equal(key.name, "storage");
	assert_string_equal(key.node, "n1");
	assert_int_equal(key_parse(samples[KEY_EXTENT], &key), 0);
	assert_string_equal(key.network, "default");
	assert_string_equal(key.pool, "web");
	assert_int_equal(key_parse(samples[KEY_ADDRESS], &key), 0);
	assert_string_equal(address_print(&key.address, text), "10.1.0.5");
}

static void anything_else_is_not_a_key(void **unused)
{
	static const char *const wrong[] = {
		"",
		"/",
		"config/",
		"/config",
		"pool",
		"pool/",
		"pool//web",
		"pool/web/",
		"pool/Web",
		"pool/web/x",
		"pools/web",
		"block/default/10.1.0.64/26",
		"block/default/10.1.0.65-26",
		"block/default/10.1.0.64-026",
		"block/default/010.1.0.64-26",
		"block/default/FD00::-122",
		"block/default/fd00:0::-122",
		"block/10.1.0.64-26",
		"host/n1/ipv4/block/default/fd00:1::40-122",
		"host/n1/ipv6/block/default/10.1.0.64-26",
		"host/n1/ipv5/block/default/10.1.0.64-26",
		"host/n1/address/default/10.1.0.5-32",
		"host/n1/address/default/",
		"host/n1",
		"host/n1/give-back",
		"status/n1",
		"leader/agent",
		"<pool>/web",
		"pool/<pool>",
	};
	struct key key = { .kind = KEY_LEADER };

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (key_parse(wrong[i], &key) != -EINVAL)
			fail_msg("\"%s\" was accepted", wrong[i]);
	assert_int_equal(key.kind, KEY_LEADER);
}

static void builders_refuse_parts_that_are_no_names(void **unused)
{
	struct prefix host_bits, too_long = { .length = 33 };
	struct key nonsense = { .kind = KEY_KINDS };
	char text[KEY_TEXT] = "untouched";
	struct address none = { 0 };

	assert_int_equal(prefix_parse_host("10.1.0.65/26", &host_bits), 0);
	too_long.address = host_bits.address;
	assert_int_equal(key_pool(text, ""), -EINVAL);
	assert_int_equal(key_pool(text, NULL), -EINVAL);
	assert_int_equal(key_pool(text, "a/b"), -EINVAL);
	assert_int_equal(key_node(text, "N1"), -EINVAL);
	assert_int_equal(key_extent(text, "..", "web"), -EINVAL);
	assert_int_equal(key_block(text, "default", &host_bits), -EINVAL);
	assert_int_equal(key_block(text, "default", &too_long), -EINVAL);
	assert_int_equal(key_address(text, "n1", "default", &none), -EINVAL);
	assert_int_equal(keys_of_host_blocks(text, "n1", AF_UNSPEC), -EINVAL);
	assert_int_equal(key_print(&nonsense, text), -EINVAL);
	assert_string_equal(text, "untouched");
}

static void the_longest_key_fits(void **unused)
{
	char node[NODE_NAME_TEXT], network[NAME_TEXT], text[KEY_TEXT];
	struct prefix p;
	struct key key;

	memset(node, 'n', sizeof(node) - 1);
	node[sizeof(node) - 1] = '\0';
	memset(network, 'w', sizeof(network) - 1);
	network[sizeof(network) - 1] = '\0';
	assert_int_equal(prefix_parse("fd00:1111:1111:1111:1111:1111:1111:1110/124", &p), 0);
	assert_int_equal(key_host_block(text, node, network, &p), 0);
	assert_int_equal(key_parse(text, &key), 0);
	assert_string_equal(key.node, node);
	assert_string_equal(key.network, network);
}

static void whole_keys_begin_with_the_prefix(void **unused)
{
	char text[KEY_FULL_TEXT], prefix[KEY_FULL_TEXT];
	struct key key;

	assert_int_equal(key_full(KEY_PREFIX, "pool/web", text), 0);
	assert_string_equal(text, "/roost/v1/pool/web");
	assert_int_equal(key_parse_full(KEY_PREFIX, text, &key), 0);
	assert_string_equal(key.pool, "web");
	assert_int_equal(key_parse_full("/other/", text, &key), -EINVAL);
	assert_int_equal(key_parse_full(KEY_PREFIX, "pool/web", &key), -EINVAL);
	memset(prefix, 'p', sizeof(prefix) - 1);
	prefix[sizeof(prefix) - 1] = '\0';
	assert_int_equal(key_full(prefix, "pool/web", text), -ENAMETOOLONG);
}

static void beginnings_for_watches_end_in_a_slash(void **unused)
{
	char text[KEY_TEXT];

	assert_int_equal(keys_of_host(text, "n1"), 0);
	assert_string_equal(text, "host/n1/");
	assert_int_equal(keys_of_host_blocks(text, "n1", AF_INET6), 0);
	assert_string_equal(text, "host/n1/ipv6/block/");
	assert_int_equal(keys_of_host_addresses(text, "n1"), 0);
	assert_string_equal(text, "host/n1/address/");
	assert_int_equal(keys_of_extents(text, "default"), 0);
	assert_string_equal(text, "extent/default/");
	assert_int_equal(keys_of_blocks(text, "default"), 0);
	assert_string_equal(text, "block/default/");
	assert_int_equal(keys_of_static_route_status(text, "storage"), 0);
	assert_string_equal(text, "status/static-route/storage/");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_round_trips),
		cmocka_unit_test(builders_make_what_the_parser_reads),
		cmocka_unit_test(parts_are_where_they_belong),
		cmocka_unit_test(anything_else_is_not_a_key),
		cmocka_unit_test(builders_refuse_parts_that_are_no_names),
		cmocka_unit_test(the_longest_key_fits),
		cmocka_unit_test(whole_keys_begin_with_the_prefix),
		cmocka_unit_test(beginnings_for_watches_end_in_a_slash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
