/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused, given everything else that is there. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/records/change.h"

struct given {
	const char *kind, *key, *value; /* value NULL: deleted */
};

/* As if read from etcd; nothing here is freed. */
static struct ctl_kvs read_as(struct ctl_kv *room, const struct given *given, const char *kind)
{
	struct ctl_kvs kvs = { .v = room };

	for (const struct given *g = given; g->key; g++)
		if (strcmp(g->kind, kind) == 0)
			room[kvs.n++] = (struct ctl_kv){ .key = (char *)(uintptr_t)g->key,
							 .value = (char *)(uintptr_t)g->value,
							 .value_len = strlen(g->value) };
	return kvs;
}

static int check(const struct given *there, const struct given *change, struct err *err)
{
	struct ctl_kv pools[8], extents[8], peers[8], filters[8];
	const struct world world = {
		.pools = read_as(pools, there, "pool"),
		.extents = read_as(extents, there, "extent"),
		.peers = read_as(peers, there, "peer"),
		.filters = read_as(filters, there, "filter"),
	};
	AUTO_DONE(change_list_done) struct change_list changes = { 0 };

	for (const struct given *g = change; g->key; g++)
		assert_int_equal(change_list_add(&changes, kind_find(g->kind), g->key,
						 g->value ? strdup(g->value) : NULL, 0),
				 0);
	return change_check(changes.v, changes.n, &world, err);
}

#define GIVEN(...)                                                                                 \
	(const struct given[])                                                                     \
	{                                                                                          \
		__VA_ARGS__,                                                                       \
		{                                                                                  \
			NULL, NULL, NULL                                                           \
		}                                                                                  \
	}
#define PASSES(there, change)                                                                      \
	do {                                                                                       \
		struct err err_ = { "" };                                                          \
		if (check(there, change, &err_) != 0)                                              \
			fail_msg("%s", err_.text);                                                 \
	} while (0)
#define REFUSED(there, change, sentence)                                                           \
	do {                                                                                       \
		struct err err_ = { "" };                                                          \
		assert_true(check(there, change, &err_) < 0);                                      \
		assert_string_equal(err_.text, sentence);                                          \
	} while (0)

#define WEB                                                                                        \
	{                                                                                          \
		"pool", "pool/web", "{\"cidr\":\"10.1.0.0/16\"}"                                   \
	}
#define WEB_HALF                                                                                   \
	{                                                                                          \
		"pool", "pool/half", "{\"cidr\":\"10.1.128.0/17\"}"                                \
	}
#define OLD                                                                                        \
	{                                                                                          \
		"extent", "extent/default/old", "{\"cidr\":\"10.9.0.0/16\",\"blockSize\":26}"      \
	}
#define FILTER                                                                                     \
	{                                                                                          \
		"filter", "filter/f", "{\"rules\":[]}"                                             \
	}
#define NO_FILTER                                                                                  \
	{                                                                                          \
		"filter", "filter/f", NULL                                                         \
	}
#define BAD_FILTER                                                                                 \
	{                                                                                          \
		"filter", "filter/f", "{\"rules\":7}"                                              \
	}
#define PEER                                                                                       \
	{                                                                                          \
		"peer", "peer/p", "{\"address\":\"192.0.2.1\",\"asn\":1,\"importFilter\":\"f\"}"   \
	}
#define PLAIN_PEER                                                                                 \
	{                                                                                          \
		"peer", "peer/q", "{\"address\":\"192.0.2.2\",\"asn\":1}"                          \
	}
#define LACKS "peer/p: field \"importFilter\": there is no valid filter/f"

static void a_record_must_be_good_by_itself(void **unused)
{
	REFUSED(GIVEN(WEB), GIVEN({ "pool", "pool/x", "{\"cidr\":7}" }),
		"pool/x: field \"cidr\": 7 is an integer, not a string");
	PASSES(GIVEN(WEB), GIVEN({ "config", "config", "{\"asn\":64513}" }));
}

static void pools_do_not_overlap_others_nor_what_is_cut(void **unused)
{
	REFUSED(GIVEN(WEB), GIVEN(WEB_HALF),
		"pool half (10.1.128.0/17) overlaps pool web (10.1.0.0/16) on network default");
	REFUSED(GIVEN(OLD), GIVEN({ "pool", "pool/new", "{\"cidr\":\"10.9.0.0/24\"}" }),
		"pool new (10.9.0.0/24) overlaps extent of pool old (10.9.0.0/16) on network "
		"default");
	PASSES(GIVEN(WEB, OLD), GIVEN({ "pool", "pool/old", "{\"cidr\":\"10.9.0.0/16\"}" }));
	PASSES(GIVEN(WEB), GIVEN({ "pool", "pool/half",
				   "{\"cidr\":\"10.1.128.0/17\",\"network\":\"storage\"}" }));
}

static void what_changes_together_is_judged_together(void **unused)
{
	/* web makes room, or goes */
	PASSES(GIVEN(WEB), GIVEN({ "pool", "pool/web", "{\"cidr\":\"10.1.0.0/17\"}" }, WEB_HALF));
	PASSES(GIVEN(WEB), GIVEN({ "pool", "pool/web", NULL }, WEB_HALF));
	PASSES(GIVEN(WEB), GIVEN(PEER, FILTER));
	PASSES(GIVEN(PEER, FILTER), GIVEN(NO_FILTER, { "peer", "peer/p", NULL }));
}

static void a_conflict_that_is_there_already_stops_nothing_else(void **unused)
{
	PASSES(GIVEN(WEB, WEB_HALF), GIVEN({ "pool", "pool/db", "{\"cidr\":\"10.2.0.0/16\"}" }));
	PASSES(GIVEN(PEER), GIVEN(PLAIN_PEER));
	PASSES(GIVEN({ "pool", "pool/bad", "{" }), GIVEN(WEB));
}

static void peers_and_filters_keep_together(void **unused)
{
	REFUSED(GIVEN(WEB), GIVEN(PEER), LACKS);
	REFUSED(GIVEN(BAD_FILTER), GIVEN(PEER), LACKS);
	REFUSED(GIVEN(PEER, FILTER), GIVEN(NO_FILTER), LACKS);
	PASSES(GIVEN(PLAIN_PEER, FILTER), GIVEN(NO_FILTER));
	PASSES(GIVEN(FILTER), GIVEN(PEER));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_must_be_good_by_itself),
		cmocka_unit_test(pools_do_not_overlap_others_nor_what_is_cut),
		cmocka_unit_test(what_changes_together_is_judged_together),
		cmocka_unit_test(a_conflict_that_is_there_already_stops_nothing_else),
		cmocka_unit_test(peers_and_filters_keep_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
