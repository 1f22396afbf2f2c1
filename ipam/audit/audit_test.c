/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ipam/audit/audit.h"

/* --- a state, changed and audited by whole states ------------------------------------------- */

#define KVS_MAX  512
#define REVISION 100

struct world {
	struct store_kv kvs[KVS_MAX];
	size_t n;
	int64_t revision;
	struct audit_local *local;
};

static struct store_kv *find(struct world *w, const char *key)
{
	for (size_t i = 0; i < w->n; i++)
		if (strcmp(w->kvs[i].key, key) == 0)
			return &w->kvs[i];
	return NULL;
}

static void forget(struct store_kv *kv)
{
	free((char *)(uintptr_t)kv->key);
	free((char *)(uintptr_t)kv->value);
}

static void drop(struct world *w, const char *key)
{
	struct store_kv *kv = find(w, key);

	assert_non_null(kv);
	forget(kv);
	memmove(kv, kv + 1, (size_t)(&w->kvs[--w->n] - kv) * sizeof(*kv));
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct store_kv *)a)->key, ((const struct store_kv *)b)->key);
}

static void put_at(struct world *w, const char *key, const char *value, int64_t revision)
{
	struct store_kv *kv = find(w, key);
	int64_t create = kv ? kv->create_revision : revision;
	char *copy = strdup(value);

	if (kv)
		drop(w, key);
	assert_true(w->n < KVS_MAX);
	w->kvs[w->n++] = (struct store_kv){ .key = strdup(key),
					    .value = copy,
					    .value_len = strlen(copy),
					    .create_revision = create,
					    .mod_revision = revision };
	qsort(w->kvs, w->n, sizeof(*w->kvs), by_key);
}

static void put(struct world *w, const char *key, const char *value)
{
	put_at(w, key, value, 10 + (int64_t)(w->n % 80));
}

#define NODE_VALUE "{\"ipv4\":\"192.0.2.1/24\",\"machine\":\"m\",\"boot\":\"b2\"}"
#define ADDRESS_VALUE(boot)                                                                        \
	"{\"container\":\"c1\",\"interface\":\"eth0\",\"pool\":\"web\",\"boot\":\"" boot "\"}"

/* Two nodes with a block each, n1 with an address in its own. */
static struct world healthy(void)
{
	struct world w = { .revision = REVISION };

	put(&w, "config", "{}");
	put(&w, "pool/web", "{\"cidr\":\"10.1.0.0/24\"}");
	put(&w, "extent/default/web", "{\"cidr\":\"10.1.0.0/24\",\"blockSize\":26}");
	put(&w, "node/n1", NODE_VALUE);
	put(&w, "node/n2", NODE_VALUE);
	put(&w, "status/node/n1", "{}");
	put(&w, "block/default/10.1.0.0-26", "{\"node\":\"n1\",\"pool\":\"web\"}");
	put(&w, "host/n1/ipv4/block/default/10.1.0.0-26", "{\"pool\":\"web\"}");
	put(&w, "host/n1/address/default/10.1.0.5", ADDRESS_VALUE("b2"));
	put(&w, "block/default/10.1.0.64-26", "{\"node\":\"n2\",\"pool\":\"web\"}");
	put(&w, "host/n2/ipv4/block/default/10.1.0.64-26", "{\"pool\":\"web\"}");
	put(&w, "leader/controller", "{\"id\":\"c1\"}");
	put(&w, "somebody/elses", "{");
	return w;
}

static void world_done(struct world *w)
{
	for (size_t i = 0; i < w->n; i++)
		forget(&w->kvs[i]);
	w->n = 0;
}

static struct findings look(struct world *w)
{
	struct audit_input in = {
		w->kvs, w->n, w->revision, "2026-11-17T00:00:00Z", "2026-11-17T01:00:00Z", w->local
	};
	struct findings f = { 0 };

	assert_int_equal(audit(&in, &f), 0);
	return f;
}

/* One line per finding: severity, kind, thing; what a repair does, or why there is none. */
static void print(FILE *out, const struct findings *f)
{
	for (const struct finding *x = f->v; x < f->v + f->n; x++) {
		fprintf(out, "%s %s %s:", finding_severity_name(x->severity),
			finding_kind_name(x->kind), x->thing);
		for (size_t i = 0; i < x->txn.ops.n; i++)
			fprintf(out, " %s%s%s%s",
				x->txn.ops.v[i].kind == STORE_PUT ? "put " : "delete ",
				x->txn.ops.v[i].key, x->txn.ops.v[i].value ? " " : "",
				x->txn.ops.v[i].value ?: "");
		if (x->repair == REPAIR_LINK)
			fprintf(out, " delete link %u", x->link);
		fprintf(out, "%s%s\n", *x->left ? " left: " : "", x->left);
		assert_true(*x->sentence && *x->todo);
		assert_int_equal(x->repair == REPAIR_NONE, *x->left != '\0');
		assert_true(x->txn.compares.n <= AUDIT_COMPARES_MAX &&
			    x->txn.ops.n <= STORE_TXN_MAX);
	}
}

static void expect(struct world *w, const char *want)
{
	struct findings f = look(w);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	print(out, &f);
	fclose(out);
	assert_string_equal(text, want);
	free(text);
	findings_done(&f);
}

/* --- repairs, as etcd would carry them out -------------------------------------------------- */

static bool holds(struct world *w, const struct store_compare *c)
{
	const struct store_kv *kv = find(w, c->key);

	for (size_t i = 0; c->range_end && i < w->n; i++)
		if (strcmp(w->kvs[i].key, c->key) >= 0 && strcmp(w->kvs[i].key, c->range_end) < 0 &&
		    w->kvs[i].create_revision >= c->number)
			return false;
	if (c->range_end)
		return true;
	if (c->target == STORE_CREATE_REVISION)
		return (kv ? kv->create_revision : 0) == c->number;
	return (kv ? kv->mod_revision : 0) == c->number;
}

static bool repair(struct world *w, const struct finding *f)
{
	for (size_t i = 0; i < f->txn.compares.n; i++)
		if (!holds(w, &f->txn.compares.v[i]))
			return false;
	for (size_t i = 0; i < f->txn.ops.n; i++) {
		if (f->txn.ops.v[i].kind == STORE_PUT)
			put_at(w, f->txn.ops.v[i].key, f->txn.ops.v[i].value, ++w->revision);
		else
			drop(w, f->txn.ops.v[i].key);
	}
	return f->txn.ops.n > 0;
}

/* Every repair is carried out, and then this is left. */
static void expect_after_repair(struct world *w, const char *want)
{
	struct findings f = look(w);

	for (size_t i = 0; i < f.n; i++)
		if (f.v[i].repair == REPAIR_TXN)
			assert_true(repair(w, &f.v[i]));
	findings_done(&f);
	expect(w, want);
}

/*
 * What the only finding was concluded from: keys, !absent ones, ranges* in which nothing is new.
 * Any change of these refuses its repair.
 */
static void expect_refused_after_change(struct world *w, const char *want)
{
	struct findings f = look(w);
	char from[512] = "";

	assert_int_equal(f.n, 1);
	for (size_t i = 0; i < f.v[0].txn.compares.n; i++) {
		const struct store_compare *c = &f.v[0].txn.compares.v[i];

		snprintf(from + strlen(from), sizeof(from) - strlen(from), "%s%s%s%s", i ? " " : "",
			 c->target == STORE_CREATE_REVISION && !c->range_end ? "!" : "", c->key,
			 c->range_end ? "*" : "");
	}
	assert_string_equal(from, want);
	for (size_t i = 0; i < f.v[0].txn.compares.n; i++) {
		const struct store_compare *c = &f.v[0].txn.compares.v[i];
		char key[300];
		struct store_kv *kv, old = { 0 };

		snprintf(key, sizeof(key), "%s%s", c->key, c->range_end ? "new" : "");
		kv = find(w, key);
		if (kv)
			old = (struct store_kv){ .value = strdup(kv->value),
						 .mod_revision = kv->mod_revision };
		put_at(w, key, kv ? kv->value : "{}", w->revision + 1);
		assert_false(repair(w, &f.v[0]));
		if (old.value)
			put_at(w, key, old.value, old.mod_revision);
		else
			drop(w, key);
		free((char *)(uintptr_t)old.value);
	}
	findings_done(&f);
}

/* --- nothing -------------------------------------------------------------------------------- */

static void nothing_wrong_is_nothing_found(void **unused)
{
	struct world w = healthy(), empty = { .revision = 1 };

	expect(&w, "");
	expect(&empty, "");
	world_done(&w);
}

static void a_claim_in_mid_air_is_no_finding(void **unused)
{
	struct world w = healthy();

	/* The host's keys were heard at a later revision than the blocks. */
	put_at(&w, "host/n1/ipv4/block/default/10.1.0.128-26", "{\"pool\":\"web\"}", REVISION + 1);
	expect(&w, "");
	/* And the other way round. */
	drop(&w, "host/n1/ipv4/block/default/10.1.0.128-26");
	put_at(&w, "block/default/10.1.0.128-26", "{\"node\":\"n1\",\"pool\":\"web\"}",
	       REVISION + 1);
	expect(&w, "");
	world_done(&w);
}

static void names_of_kinds_go_both_ways(void **unused)
{
	enum finding_kind got;

	for (int i = 0; i < FINDING_KINDS; i++) {
		assert_int_equal(finding_kind_parse(finding_kind_name(i), &got), 0);
		assert_int_equal(got, i);
	}
	assert_int_equal(finding_kind_parse("mouse", &got), -EINVAL);
}

/* --- blocks and indexes --------------------------------------------------------------------- */

static void a_missing_index_is_written(void **unused)
{
	struct world w = healthy();

	drop(&w, "host/n1/ipv4/block/default/10.1.0.0-26");
	expect(&w, "warning block-without-index block/default/10.1.0.0-26: put "
		   "host/n1/ipv4/block/default/10.1.0.0-26 {\"pool\":\"web\"}\n");
	expect_refused_after_change(
		&w, "block/default/10.1.0.0-26 node/n1 !host/n1/ipv4/block/default/10.1.0.0-26");
	expect_after_repair(&w, "");
	world_done(&w);
}

static void an_index_that_nothing_stands_behind_goes(void **unused)
{
	struct world w = healthy();

	put(&w, "host/n1/ipv4/block/default/10.1.0.128-26", "{\"pool\":\"web\"}");
	expect(&w, "warning index-without-block host/n1/ipv4/block/default/10.1.0.128-26: delete "
		   "host/n1/ipv4/block/default/10.1.0.128-26\n");
	expect_refused_after_change(&w, "host/n1/ipv4/block/default/10.1.0.128-26 "
					"!block/default/10.1.0.128-26 host/n1/address/*");
	expect_after_repair(&w, "");
	world_done(&w);
}

static void a_vanished_lease_is_kept_for_its_holder(void **unused)
{
	struct world w = healthy();

	put(&w, "node/lease-192.0.2.9",
	    "{\"ipv4\":\"192.0.2.9/32\",\"machine\":\"lease\",\"boot\":\"lease\"}");
	put(&w, "host/lease-192.0.2.9/ipv4/block/default/10.1.0.128-26", "{\"pool\":\"web\"}");
	expect(&w, "warning index-without-block "
		   "host/lease-192.0.2.9/ipv4/block/default/10.1.0.128-26: put "
		   "block/default/10.1.0.128-26 {\"node\":\"lease-192.0.2.9\",\"pool\":\"web\","
		   "\"token\":\"repaired-100\",\"lease\":{\"publicIP\":\"192.0.2.9\",\"expires\":"
		   "\"2026-11-17T01:00:00Z\",\"revoked\":true}}\n");
	expect_after_repair(&w, "");
	world_done(&w);
}

static void a_vanished_block_in_use_is_made_again(void **unused)
{
	struct world w = healthy();

	drop(&w, "block/default/10.1.0.0-26");
	expect(&w, "error index-without-block host/n1/ipv4/block/default/10.1.0.0-26: put "
		   "block/default/10.1.0.0-26 "
		   "{\"node\":\"n1\",\"pool\":\"web\",\"token\":\"repaired-100\"}\n");
	expect_refused_after_change(&w, "host/n1/ipv4/block/default/10.1.0.0-26 "
					"!block/default/10.1.0.0-26 extent/default/web node/n1");
	expect_after_repair(&w, "");
	/* But not where something else lies now. */
	drop(&w, "block/default/10.1.0.0-26");
	put(&w, "block/default/10.1.0.0-28", "{\"node\":\"n2\",\"pool\":\"web\"}");
	put(&w, "host/n2/ipv4/block/default/10.1.0.0-28", "{\"pool\":\"web\"}");
	expect(&w, "error index-without-block host/n1/ipv4/block/default/10.1.0.0-26: left: "
		   "another block overlaps it\n"
		   "error address-outside-blocks host/n1/address/default/10.1.0.5: left: it may be "
		   "in use: it is of this boot\n"
		   "error block-outside-extents block/default/10.1.0.0-28: left: pods of node n2 "
		   "may use it\n");
	world_done(&w);
}

static void a_foreign_index_goes(void **unused)
{
	struct world w = healthy();

	put(&w, "host/n2/ipv4/block/default/10.1.0.0-26", "{\"pool\":\"web\"}");
	expect(&w, "error two-indexes host/n2/ipv4/block/default/10.1.0.0-26: delete "
		   "host/n2/ipv4/block/default/10.1.0.0-26\n");
	expect_refused_after_change(
		&w, "host/n2/ipv4/block/default/10.1.0.0-26 block/default/10.1.0.0-26");
	drop(&w, "host/n1/ipv4/block/default/10.1.0.0-26");
	expect(&w, "error foreign-index host/n2/ipv4/block/default/10.1.0.0-26: delete "
		   "host/n2/ipv4/block/default/10.1.0.0-26\n"
		   "warning block-without-index block/default/10.1.0.0-26: put "
		   "host/n1/ipv4/block/default/10.1.0.0-26 {\"pool\":\"web\"}\n");
	expect_after_repair(&w, "");
	world_done(&w);
}

static void of_two_indexes_without_block_the_used_one_counts(void **unused)
{
	struct world w = healthy();

	drop(&w, "block/default/10.1.0.0-26");
	put(&w, "host/n2/ipv4/block/default/10.1.0.0-26", "{\"pool\":\"web\"}");
	expect(&w, "error two-indexes host/n1/ipv4/block/default/10.1.0.0-26: put "
		   "block/default/10.1.0.0-26 "
		   "{\"node\":\"n1\",\"pool\":\"web\",\"token\":\"repaired-100\"}\n"
		   "warning two-indexes host/n2/ipv4/block/default/10.1.0.0-26: delete "
		   "host/n2/ipv4/block/default/10.1.0.0-26\n");
	put(&w, "host/n2/address/default/10.1.0.9", ADDRESS_VALUE("b2"));
	expect(&w, "error two-indexes host/n1/ipv4/block/default/10.1.0.0-26: left: 2 nodes have "
		   "addresses in it: whose it is cannot be told\n"
		   "error two-indexes host/n2/ipv4/block/default/10.1.0.0-26: left: 2 nodes have "
		   "addresses in it: whose it is cannot be told\n");
	world_done(&w);
}

/* --- addresses and nodes -------------------------------------------------------------------- */

static void an_address_outside_goes_when_its_boot_is_over(void **unused)
{
	struct world w = healthy();

	put(&w, "host/n1/address/default/10.1.0.200", ADDRESS_VALUE("b1"));
	expect(&w, "warning address-outside-blocks host/n1/address/default/10.1.0.200: delete "
		   "host/n1/address/default/10.1.0.200\n");
	expect_refused_after_change(&w, "host/n1/address/default/10.1.0.200 node/n1");
	expect_after_repair(&w, "");
	put(&w, "host/n1/address/default/10.1.0.70", ADDRESS_VALUE("b2"));
	expect(&w, "error address-outside-blocks host/n1/address/default/10.1.0.70: left: it may "
		   "be in use: it is of this boot\n");
	put(&w, "host/n1/address/default/10.1.0.70",
	    "{\"container\":\"c\",\"interface\":\"e\",\"boot\":\"b1\",\"reserved\":true}");
	expect(&w, "error address-outside-blocks host/n1/address/default/10.1.0.70: left: it is "
		   "reserved\n");
	world_done(&w);
}

static void a_missing_node_record_proves_nothing(void **unused)
{
	struct world w = healthy();

	drop(&w, "node/n1");
	drop(&w, "status/node/n1");
	drop(&w, "host/n1/ipv4/block/default/10.1.0.0-26");
	expect(&w, "warning no-node-record node/n1: left: a missing record does not prove that no "
		   "pod runs there\n");
	put(&w, "removed/n1", "{\"by\":\"me\",\"when\":\"2020-01-01T00:00:00Z\"}");
	expect(&w, "warning no-node-record node/n1: left: it was removed, but not with "
		   "--now: the machine may be on\n");
	put(&w, "removed/n1", "{\"by\":\"me\",\"when\":\"2020-01-01T00:00:00Z\",\"now\":true}");
	expect(&w, "warning no-node-record node/n1: delete block/default/10.1.0.0-26 delete "
		   "host/n1/address/default/10.1.0.5\n");
	expect_refused_after_change(&w,
				    "!node/n1 removed/n1 !status/node/n1 block/default/10.1.0.0-26 "
				    "host/n1/address/default/10.1.0.5");
	expect_after_repair(&w, "");
	world_done(&w);
}

static void a_large_node_goes_by_several_transactions(void **unused)
{
	struct world w = healthy();
	struct findings f;
	char key[64];

	for (int i = 0; i < 300; i++) {
		snprintf(key, sizeof(key), "host/n9/address/default/10.2.%d.%d", i / 250, i % 250);
		put(&w, key, ADDRESS_VALUE("b1"));
	}
	put(&w, "removed/n9", "{\"by\":\"me\",\"when\":\"2020-01-01T00:00:00Z\",\"now\":true}");
	f = look(&w);
	assert_int_equal(f.n, 3);
	assert_int_equal(f.v[0].txn.ops.n + f.v[1].txn.ops.n + f.v[2].txn.ops.n, 300);
	findings_done(&f);
	expect_after_repair(&w, "");
	world_done(&w);
}

static void a_status_without_node_goes_unless_its_lease_lives(void **unused)
{
	struct world w = healthy();

	put(&w, "status/node/n7", "{}");
	expect(&w, "note status-without-node status/node/n7: delete status/node/n7\n");
	expect_refused_after_change(&w, "status/node/n7 !node/n7");
	find(&w, "status/node/n7")->lease = 77;
	expect(&w, "note status-without-node status/node/n7: left: its lease has not expired\n");
	world_done(&w);
}

/* --- pools and extents ---------------------------------------------------------------------- */

static void blocks_outside_and_overlapping_are_told(void **unused)
{
	struct world w = healthy();

	put(&w, "block/default/10.9.0.0-26", "{\"node\":\"n1\",\"pool\":\"web\"}");
	put(&w, "host/n1/ipv4/block/default/10.9.0.0-26", "{\"pool\":\"web\"}");
	put(&w, "block/default/10.1.0.96-27", "{\"node\":\"n1\",\"pool\":\"web\"}");
	put(&w, "host/n1/ipv4/block/default/10.1.0.96-27", "{\"pool\":\"web\"}");
	expect(&w, "error block-outside-extents block/default/10.1.0.96-27: left: pods of node n1 "
		   "may use it\n"
		   "error block-outside-extents block/default/10.9.0.0-26: left: pods of node n1 "
		   "may use it\n"
		   "error overlapping-blocks block/default/10.1.0.96-27: left: both may be in "
		   "use\n");
	world_done(&w);
}

static void overlapping_extents_are_told(void **unused)
{
	struct world w = healthy();

	put(&w, "pool/db", "{\"cidr\":\"10.1.0.128/25\"}");
	put(&w, "extent/default/db", "{\"cidr\":\"10.1.0.128/25\",\"blockSize\":26}");
	expect(&w, "error overlapping-extents extent/default/db: left: blocks may have been cut "
		   "from both\n");
	world_done(&w);
}

static void a_missing_extent_follows_from_pool_and_blocks(void **unused)
{
	struct world w = healthy();

	drop(&w, "extent/default/web");
	expect(&w, "error extent-missing extent/default/web: put extent/default/web "
		   "{\"cidr\":\"10.1.0.0/24\",\"blockSize\":26,\"made\":\"2026-11-17T00:00:00Z\"}"
		   "\n");
	expect_refused_after_change(
		&w, "block/default/10.1.0.0-26 !extent/default/web pool/web extent/default/*");
	expect_after_repair(&w, "");
	drop(&w, "extent/default/web");
	put(&w, "pool/web", "{\"cidr\":\"10.1.0.0/24\",\"blockSize\":28}");
	expect(&w, "error extent-missing extent/default/web: left: the pool has been edited: its "
		   "blocks are cut another way\n");
	world_done(&w);
}

static void a_deleted_pool_keeps_its_blocks_then_loses_its_extent(void **unused)
{
	struct world w = healthy();

	drop(&w, "pool/web");
	expect(&w, "note block-of-deleted-pool block/default/10.1.0.0-26: left: it is in use\n"
		   "note block-of-deleted-pool block/default/10.1.0.64-26: left: only its agent "
		   "knows that it is empty\n");
	drop(&w, "block/default/10.1.0.0-26");
	drop(&w, "block/default/10.1.0.64-26");
	drop(&w, "host/n1/ipv4/block/default/10.1.0.0-26");
	drop(&w, "host/n2/ipv4/block/default/10.1.0.64-26");
	drop(&w, "host/n1/address/default/10.1.0.5");
	expect(&w, "note unused-extent extent/default/web: delete extent/default/web\n");
	expect_refused_after_change(&w, "extent/default/web !pool/web block/default/*");
	expect_after_repair(&w, "");
	world_done(&w);
}

static void damaged_records_are_named_and_an_index_is_written_anew(void **unused)
{
	struct world w = healthy();
	struct findings f;

	put(&w, "pool/bad", "{\"cidr\":7}");
	put(&w, "block/default/10.1.0.64-26", "nonsense");
	put(&w, "host/n1/ipv4/block/default/10.1.0.0-26", "[]");
	expect(&w, "warning undecodable-record block/default/10.1.0.64-26: left: its correct "
		   "content is unknown\n"
		   "warning undecodable-record host/n1/ipv4/block/default/10.1.0.0-26: put "
		   "host/n1/ipv4/block/default/10.1.0.0-26 {\"pool\":\"web\"}\n"
		   "warning undecodable-record pool/bad: left: its correct content is unknown\n");
	f = look(&w);
	assert_true(strncmp(f.v[2].sentence, "pool/bad: field \"cidr\": 7", 25) == 0);
	findings_done(&f);
	world_done(&w);
}

/* --- one node ------------------------------------------------------------------------------- */

struct node_world {
	struct attachment attachment;
	struct held_address held;
	struct sighting sightings[2];
	struct attachment other;
	struct audit_block blocks[2];
	struct audit_link links[2];
	struct audit_route routes[2];
	struct audit_local local;
};

/* n1 as healthy() has it, with link and routes of its one pod. */
static void healthy_node(struct node_world *n)
{
	struct prefix p;

	*n = (struct node_world){
		.attachment = { .network = "pods",
				.container = "c1",
				.interface = "eth0",
				.namespace = "prod",
				.pod = "web-1",
				.uid = "",
				.netns = "/run/netns/a",
				.netns_inode = 7,
				.link = "roost0000000001",
				.ipam = "roost-ipam",
				.state = ATTACHMENT_ATTACHED },
		.held = { .length = 32, .pool = "web", .network = "default" },
		.blocks = { { "default", "web", "owned", .held = true, .file = true } },
		.links = { { "roost0000000001", 7, true }, { "roost0000000002", 8, false } },
		.local = { .node = "n1",
			   .n_sightings = 1,
			   .n_blocks = 1,
			   .kernel = true,
			   .n_links = 1,
			   .n_routes = 2 },
	};
	address_parse("10.1.0.5", &n->held.address);
	n->attachment.addresses = (struct held_addresses){ &n->held, 1 };
	n->sightings[0] = (struct sighting){ &n->attachment, SEEN_SAME, SEEN_SAME, true };
	prefix_parse("10.1.0.0/26", &n->blocks[0].block);
	prefix_parse("10.1.0.5/32", &p);
	n->routes[0] = (struct audit_route){ p, "roost0000000001" };
	n->routes[1] = (struct audit_route){ n->blocks[0].block, "" };
	n->local.sightings = n->sightings;
	n->local.blocks = n->blocks;
	n->local.links = n->links;
	n->local.routes = n->routes;
}

static void a_node_is_audited_too(void **unused)
{
	struct world w = healthy();
	struct node_world n;

	healthy_node(&n);
	w.local = &n.local;
	expect(&w, "");

	n.sightings[0].link = SEEN_GONE;
	expect(&w, "warning leak pods/c1/eth0: left: one look is not enough: the address counts as "
		   "in use\n");
	healthy_node(&n);
	n.local.n_links = 2;
	expect(&w, "warning stray-link roost0000000002: delete link 8\n");
	n.links[1].used = true;
	expect(&w, "warning stray-link roost0000000002: left: a route leads to it\n");
	healthy_node(&n);
	prefix_parse("10.1.0.6/32", &n.routes[0].dst);
	prefix_parse("10.1.0.64/26", &n.routes[1].dst);
	expect(&w,
	       "warning stray-route 10.1.0.6/32 dev roost0000000001: left: the agent alone "
	       "changes these routes\n"
	       "warning stray-route blackhole 10.1.0.64/26: left: the agent alone changes these "
	       "routes\n");
	n.local.kernel = false;
	expect(&w, "");
	world_done(&w);
}

static void keys_and_attachments_are_compared(void **unused)
{
	struct world w = healthy();
	struct node_world n;

	healthy_node(&n);
	w.local = &n.local;
	n.local.kernel = false;
	drop(&w, "host/n1/address/default/10.1.0.5");
	put(&w, "host/n1/address/default/10.1.0.6", ADDRESS_VALUE("b2"));
	put(&w, "host/n1/address/default/10.1.0.7", ADDRESS_VALUE("b1"));
	expect(&w, "warning attachment-without-key host/n1/address/default/10.1.0.5: left: the "
		   "agent alone writes these keys\n"
		   "warning key-without-attachment host/n1/address/default/10.1.0.6: left: the "
		   "agent alone writes these keys\n");
	world_done(&w);
}

static void blocks_and_files_are_compared(void **unused)
{
	struct world w = healthy();
	struct node_world n;

	healthy_node(&n);
	w.local = &n.local;
	n.blocks[0].file = false;
	expect(&w, "warning block-without-file block/default/10.1.0.0-26: left: the agent alone "
		   "writes these files\n");
	healthy_node(&n);
	n.local.n_blocks = 2;
	n.blocks[1] = (struct audit_block){ "default", "web", "", .file = true };
	prefix_parse("10.1.0.64/26", &n.blocks[1].block);
	expect(&w, "warning file-without-block block/default/10.1.0.64-26: left: the agent alone "
		   "knows whether pods use it\n");
	n.blocks[1].held = true;
	n.blocks[1].state = "lost";
	expect(&w, "error lost-block block/default/10.1.0.64-26: left: no running pod loses its "
		   "address\n");
	n.blocks[1].state = "claiming";
	expect(&w, "");
	world_done(&w);
}

static void what_goes_by_itself_is_not_kept(void **unused)
{
	struct world w = healthy();
	struct findings f, again;
	struct node_world n;

	healthy_node(&n);
	w.local = &n.local;
	n.sightings[0].link = SEEN_GONE;
	n.local.n_links = 2;
	put(&w, "status/node/n7", "{}");
	f = look(&w);
	assert_int_equal(f.n, 3);
	n.local.n_links = 1;
	drop(&w, "status/node/n7");
	again = look(&w);
	findings_keep_lasting(&f, &again);
	assert_int_equal(f.n, 2);
	assert_non_null(findings_find(&f, FINDING_LEAK, "pods/c1/eth0"));
	assert_non_null(findings_find(&f, FINDING_STATUS_WITHOUT_NODE, "status/node/n7"));
	findings_done(&f);
	findings_done(&again);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_wrong_is_nothing_found),
		cmocka_unit_test(a_claim_in_mid_air_is_no_finding),
		cmocka_unit_test(names_of_kinds_go_both_ways),
		cmocka_unit_test(a_missing_index_is_written),
		cmocka_unit_test(an_index_that_nothing_stands_behind_goes),
		cmocka_unit_test(a_vanished_lease_is_kept_for_its_holder),
		cmocka_unit_test(a_vanished_block_in_use_is_made_again),
		cmocka_unit_test(a_foreign_index_goes),
		cmocka_unit_test(of_two_indexes_without_block_the_used_one_counts),
		cmocka_unit_test(an_address_outside_goes_when_its_boot_is_over),
		cmocka_unit_test(a_missing_node_record_proves_nothing),
		cmocka_unit_test(a_large_node_goes_by_several_transactions),
		cmocka_unit_test(a_status_without_node_goes_unless_its_lease_lives),
		cmocka_unit_test(blocks_outside_and_overlapping_are_told),
		cmocka_unit_test(overlapping_extents_are_told),
		cmocka_unit_test(a_missing_extent_follows_from_pool_and_blocks),
		cmocka_unit_test(a_deleted_pool_keeps_its_blocks_then_loses_its_extent),
		cmocka_unit_test(damaged_records_are_named_and_an_index_is_written_anew),
		cmocka_unit_test(a_node_is_audited_too),
		cmocka_unit_test(keys_and_attachments_are_compared),
		cmocka_unit_test(blocks_and_files_are_compared),
		cmocka_unit_test(what_goes_by_itself_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
