/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/ipam/ipam_use.h"
#include "lib/json/json.h"

struct entry {
	const char *key, *value;
};
#define KV(k, v)                                                                                   \
	{                                                                                          \
		(k), (v)                                                                           \
	}

/* The rows of one table, a line for each, as JSON without blanks. */
static void expect(const struct entry *v, size_t n, const char *table, const char *want)
{
	struct ctl_kv kvs_v[32];
	const struct ctl_kvs kvs = { .v = kvs_v, .n = n, .revision = 10 };
	AUTO(json_put) struct json_object *use = NULL;
	char text[2048] = "";
	struct json_object *rows;

	assert_true(n <= ARRAY_SIZE(kvs_v));
	for (size_t i = 0; i < n; i++)
		kvs_v[i] = (struct ctl_kv){ .key = (char *)(uintptr_t)v[i].key,
					    .value = (char *)(uintptr_t)v[i].value,
					    .value_len = strlen(v[i].value) };
	assert_int_equal(ipam_use(&kvs, &use), 0);
	rows = out_at(use, table);
	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		strcat(text, json_object_to_json_string_ext(
				     json_object_array_get_idx(rows, i),
				     JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
		strcat(text, "\n");
	}
	assert_string_equal(text, want);
}

static const struct entry some[] = {
	KV("block/default/10.1.0.0-30", "{\"node\":\"n1\",\"pool\":\"web\"}"),
	KV("block/default/10.1.0.4-30", "{\"node\":\"n2\",\"pool\":\"web\"}"),
	KV("block/default/10.9.0.0-26", "{\"node\":\"n9\",\"pool\":\"old\"}"),
	KV("block/default/10.9.0.64-26", "damaged"),
	KV("extent/default/web", "{\"cidr\":\"10.1.0.0/29\",\"blockSize\":30}"),
	KV("host/n1/address/default/10.1.0.1", "{}"),
	KV("host/n1/address/default/10.1.0.2", "{}"),
	KV("host/n1/address/default/10.1.0.3", "{}"),
	KV("host/n1/address/default/10.1.0.5", "{}"), /* in a block of n2: not counted */
	KV("host/n2/address/default/10.1.0.5", "{}"),
	KV("node/n1", "{}"),
	KV("node/n2", "{}"),
	KV("pool/bad", "{}"),
	KV("pool/web", "{\"cidr\":\"10.1.0.0/29\",\"blockSize\":30,\"exclude\":[\"10.1.0.0\"]}"),
	KV("status/node/n1", "{}"),
};

static void use_is_counted_by_pool_node_and_block(void **unused)
{
	expect(some, sizeof(some) / sizeof(*some), "pools",
	       "{\"name\":\"bad\",\"blocks\":0,\"used\":0,\"inBlocks\":0,\"state\":\"invalid\","
	       "\"problem\":\"pool/bad: field \\\"cidr\\\": is missing\"}\n"
	       "{\"name\":\"web\",\"network\":\"default\",\"cidr\":\"10.1.0.0/"
	       "29\",\"blockSize\":30,\"blocksMax\":2,\"addresses\":7,\"disabled\":false,"
	       "\"blocks\":2,\"used\":4,\"inBlocks\":7,\"state\":\"ok\"}\n"
	       "{\"name\":\"old\",\"network\":\"default\",\"blocks\":1,\"used\":0,\"inBlocks\":64,"
	       "\"state\":\"deleted\"}\n");
	expect(some, sizeof(some) / sizeof(*some), "nodes",
	       "{\"name\":\"n1\",\"blocks\":1,\"used\":3,\"inBlocks\":3,\"state\":\"alive\"}\n"
	       "{\"name\":\"n2\",\"blocks\":1,\"used\":1,\"inBlocks\":4,\"state\":\"silent\"}\n"
	       "{\"name\":\"n9\",\"blocks\":1,\"used\":0,\"inBlocks\":64,\"state\":\"unknown\"}\n");
	expect(some, sizeof(some) / sizeof(*some), "blocks",
	       "{\"block\":\"10.1.0.0/"
	       "30\",\"network\":\"default\",\"pool\":\"web\",\"node\":\"n1\",\"used\":3,\"free\":"
	       "0}\n"
	       "{\"block\":\"10.1.0.4/"
	       "30\",\"network\":\"default\",\"pool\":\"web\",\"node\":\"n2\",\"used\":1,\"free\":"
	       "3}\n"
	       "{\"block\":\"10.9.0.0/"
	       "26\",\"network\":\"default\",\"pool\":\"old\",\"node\":\"n9\",\"used\":0,\"free\":"
	       "64}\n");
}

static void a_pool_is_full_or_differs_or_is_disabled(void **unused)
{
	const struct entry full[] = {
		KV("block/default/10.1.0.0-32", "{\"node\":\"n1\",\"pool\":\"web\"}"),
		KV("extent/default/web", "{\"cidr\":\"10.1.0.0/32\",\"blockSize\":32}"),
		KV("host/n1/address/default/10.1.0.0", "{}"),
		KV("pool/off", "{\"cidr\":\"10.2.0.0/24\",\"disabled\":true,\"preallocate\":1}"),
		KV("pool/web", "{\"cidr\":\"10.1.0.0/32\"}"),
	};
	const struct entry differs[] = {
		KV("extent/default/web", "{\"cidr\":\"10.1.0.0/24\",\"blockSize\":26}"),
		KV("pool/web", "{\"cidr\":\"10.1.0.0/23\"}"),
	};

	expect(full, 5, "pools",
	       "{\"name\":\"off\",\"network\":\"default\",\"cidr\":\"10.2.0.0/"
	       "24\",\"blockSize\":26,\"blocksMax\":4,\"addresses\":256,\"disabled\":true,"
	       "\"preallocate\":1,\"blocks\":0,\"used\":0,\"inBlocks\":0,\"state\":\"disabled\"}\n"
	       "{\"name\":\"web\",\"network\":\"default\",\"cidr\":\"10.1.0.0/"
	       "32\",\"blockSize\":32,\"blocksMax\":1,\"addresses\":1,\"disabled\":false,"
	       "\"blocks\":1,\"used\":1,\"inBlocks\":1,\"state\":\"full\"}\n");
	expect(differs, 2, "pools",
	       "{\"name\":\"web\",\"network\":\"default\",\"cidr\":\"10.1.0.0/"
	       "24\",\"blockSize\":26,\"blocksMax\":4,\"addresses\":256,\"disabled\":false,"
	       "\"blocks\":0,\"used\":0,\"inBlocks\":0,\"state\":\"differs\",\"problem\":\"pool "
	       "web says 10.1.0.0/23 in blocks of /26, but blocks are already cut from 10.1.0.0/24 "
	       "as /26: the edit has no effect until the last of them is released\"}\n");
}

static void bar_is(int64_t used, int64_t of, unsigned width, const char *want)
{
	AUTO(free) char *bar = ipam_bar(used, of, width);

	assert_string_equal(bar, want);
}

static void bars_are_rounded_down_but_not_to_nothing(void **unused)
{
	bar_is(0, 256, 10, ".......... 0%");
	bar_is(1, 65536, 10, "#......... 0%");
	bar_is(128, 256, 10, "#####..... 50%");
	bar_is(255, 256, 10, "#########. 99%");
	bar_is(256, 256, 10, "########## 100%");
	bar_is(300, 256, 10, "########## 117%");
	bar_is(INT64_MAX, INT64_MAX, 10, "########## 100%");
	bar_is(5, 0, 10, "#......... 0%");
	bar_is(64, 256, 0, "25%");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(use_is_counted_by_pool_node_and_block),
		cmocka_unit_test(a_pool_is_full_or_differs_or_is_disabled),
		cmocka_unit_test(bars_are_rounded_down_but_not_to_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
