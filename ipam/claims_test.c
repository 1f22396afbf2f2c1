/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/claims.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/store/store_fake.h"

#define P     "/roost/v1/"
#define BLOCK P "block/default/"
#define INDEX P "host/a/ipv4/block/default/"

/* A node "a" that claims in a pool of four blocks, 10.1.0.0/24 by /26. */
struct bench {
	struct store *store;
	struct claims *claims;
	struct block_need need;
	int64_t fence, extent, extents_seen;
	int results, releases;
	struct claim_result last;
	bool released;
	int64_t released_revision;
};

static int64_t fence(void *arg)
{
	return ((struct bench *)arg)->fence;
}

static void fence_moved(int64_t revision, void *arg)
{
	((struct bench *)arg)->fence = revision;
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct claims_config config = { NULL, P, "a", fence, fence_moved, b };

	b->store = store_fake_new();
	b->fence = store_fake_put(b->store, P "node/a", "{}");
	b->extents_seen = b->fence;
	config.store = b->store;
	assert_int_equal(claims_new(&config, &b->claims), 0);
	strcpy(b->need.pool, "web");
	strcpy(b->need.network, "default");
	assert_int_equal(prefix_parse("10.1.0.0/24", &b->need.cidr), 0);
	b->need.block_size = 26;
	b->need.whole = true;
	assert_int_equal(spans_add(&b->need.usable, (struct span){ 0, 3 }), 0);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	claims_free(b->claims);
	store_free(b->store);
	spans_done(&b->need.usable);
	free(b);
	return 0;
}

static void on_claim(const struct claim_result *result, void *arg)
{
	struct bench *b = arg;

	address_count number;

	b->results++;
	b->last = *result;
	if (result->outcome != CLAIM_DONE)
		return;
	b->extent = result->extent_revision ?: b->extent;
	/* What is owned is not asked for again: the allocator leaves it out. */
	assert_int_equal(prefix_block_index(&b->need.cidr, 26, &result->block.address, &number), 0);
	assert_int_equal(spans_remove(&b->need.usable, (struct span){ number, number }), 0);
}

static struct claims_call *start(struct bench *b)
{
	struct claim claim = { .need = &b->need,
			       .extent_revision = b->extent,
			       .extents_seen = b->extents_seen };
	struct claims_call *call = NULL;

	assert_int_equal(claims_claim(b->claims, &claim, on_claim, b, &call), 0);
	return call;
}

static void claim(struct bench *b, enum claim_outcome want)
{
	int before = b->results;

	start(b);
	store_fake_run(b->store);
	assert_int_equal(b->results, before + 1);
	assert_int_equal(b->last.outcome, want);
}

static void taken_by(struct bench *b, const char *node, const char *block)
{
	char key[128], value[128];

	snprintf(key, sizeof(key), BLOCK "%s", block);
	snprintf(value, sizeof(value), "{\"node\":\"%s\",\"pool\":\"web\"}", node);
	store_fake_put(b->store, key, value);
}

static void expect_owned(const struct bench *b, const struct prefix *block, bool owned)
{
	char name[PREFIX_TEXT], key[128];

	prefix_print_key(block, name);
	snprintf(key, sizeof(key), BLOCK "%s", name);
	assert_int_equal(store_fake_get(b->store, key) != NULL, owned);
	snprintf(key, sizeof(key), INDEX "%s", name);
	assert_int_equal(store_fake_get(b->store, key) != NULL, owned);
}

static size_t count_blocks(const struct bench *b)
{
	AUTO(free) char *dump = store_fake_dump(b->store, BLOCK, P "block/default0");
	size_t n = 0;

	for (const char *p = dump; (p = strchr(p, '\n')); p++)
		n++;
	return n;
}

/* --- claims --------------------------------------------------------------------------------- */

static void the_first_claim_makes_block_index_and_extent_in_one_revision(void **state)
{
	struct bench *b = *state;
	const struct store_kv *extent;
	int64_t before = store_fake_revision(b->store);

	claim(b, CLAIM_DONE);
	expect_owned(b, &b->last.block, true);
	extent = store_fake_get(b->store, P "extent/default/web");
	assert_non_null(extent);
	assert_int_equal(store_fake_revision(b->store), before + 1);
	assert_int_equal(b->last.revision, before + 1);
	assert_int_equal(b->last.extent_revision, extent->create_revision);
	assert_int_equal(b->last.tries, 1);
}

static void blocks_of_others_are_passed_over_until_the_pool_is_full(void **state)
{
	struct bench *b = *state;

	taken_by(b, "b", "10.1.0.0-26");
	taken_by(b, "c", "10.1.0.64-26");
	taken_by(b, "d", "10.1.0.128-26");
	claim(b, CLAIM_DONE);
	expect_owned(b, &b->last.block, true);
	claim(b, CLAIM_FULL);
}

static void our_own_block_is_adopted_when_a_lost_claim_turns_up(void **state)
{
	struct bench *b = *state;

	taken_by(b, "a", "10.1.0.64-26");
	b->need.specific = true;
	assert_int_equal(prefix_parse("10.1.0.64/26", &b->need.block), 0);
	claim(b, CLAIM_DONE);
	/* As it was when etcd was asked: it may have been given back since. */
	assert_true(b->last.found);
	assert_int_equal(b->last.revision, store_fake_revision(b->store));
}

static void a_pool_without_a_free_block_is_full(void **state)
{
	struct bench *b = *state;

	taken_by(b, "b", "10.1.0.0-26");
	taken_by(b, "b", "10.1.0.64-26");
	taken_by(b, "b", "10.1.0.128-26");
	taken_by(b, "b", "10.1.0.192-26");
	claim(b, CLAIM_FULL);
	assert_null(store_fake_get(b->store, P "extent/default/web"));
	assert_int_equal(claims_stats(b->claims).listed, 1);
}

static void a_damaged_block_record_belongs_to_somebody_else(void **state)
{
	struct bench *b = *state;

	store_fake_put(b->store, BLOCK "10.1.0.64-26", "not JSON");
	b->need.specific = true;
	assert_int_equal(prefix_parse("10.1.0.64/26", &b->need.block), 0);
	claim(b, CLAIM_TAKEN);
	assert_string_equal(b->last.owner, "unknown (its record is damaged)");
}

static void a_specific_block_of_another_names_its_owner(void **state)
{
	struct bench *b = *state;

	taken_by(b, "other", "10.1.0.64-26");
	b->need.specific = true;
	assert_int_equal(prefix_parse("10.1.0.64/26", &b->need.block), 0);
	claim(b, CLAIM_TAKEN);
	assert_string_equal(b->last.owner, "other");
	assert_non_null(strstr(b->last.text, "10.1.0.64/26 belongs to node other"));
}

static void nothing_is_claimed_under_another_registration(void **state)
{
	struct bench *b = *state;

	store_fake_put(b->store, P "node/a", "{\"by\":\"another agent\"}");
	claim(b, CLAIM_STALE);
	assert_string_equal(b->last.text, "our node record has changed");
	assert_int_equal(count_blocks(b), 0);
	store_fake_delete(b->store, P "node/a", NULL);
	claim(b, CLAIM_STALE);
	assert_int_equal(count_blocks(b), 0);
}

static void nothing_is_cut_when_another_extent_has_appeared(void **state)
{
	struct bench *b = *state;

	store_fake_put(b->store, P "extent/default/other", "{\"cidr\":\"10.1.0.0/25\"}");
	claim(b, CLAIM_STALE);
	assert_int_equal(count_blocks(b), 0);
	/* Seen, and found to be no obstacle. */
	b->extents_seen = store_fake_revision(b->store);
	claim(b, CLAIM_DONE);
}

static void nothing_is_cut_by_an_extent_that_was_made_anew(void **state)
{
	struct bench *b = *state;

	claim(b, CLAIM_DONE);
	store_fake_delete(b->store, P "extent/default/web", NULL);
	store_fake_put(b->store, P "extent/default/web",
		       "{\"cidr\":\"10.1.0.0/24\",\"blockSize\":28}");
	claim(b, CLAIM_STALE);
	assert_int_equal(count_blocks(b), 1);
}

/* --- lost replies --------------------------------------------------------------------------- */

/* --- in a recovery -------------------------------------------------------------------------- */

/* Of the block that a restore has brought back as b's. */
static struct claim taking_back(struct bench *b)
{
	taken_by(b, "b", "10.1.0.64-26");
	b->extent = store_fake_put(b->store, P "extent/default/web",
				   "{\"cidr\":\"10.1.0.0/24\",\"blockSize\":26}");
	b->need.specific = true;
	assert_int_equal(prefix_parse("10.1.0.64/26", &b->need.block), 0);
	return (struct claim){
		.need = &b->need,
		.extent_revision = b->extent,
		.extents_seen = b->extent,
		.owner = "b",
		.recovery = "r1",
		.replaces = store_fake_get(b->store, BLOCK "10.1.0.64-26")->mod_revision
	};
}

static void a_block_is_taken_back_from_a_restored_owner(void **state)
{
	struct bench *b = *state;
	struct claim claim = taking_back(b);

	store_fake_put(b->store, P "host/b/ipv4/block/default/10.1.0.64-26", "{}");
	claim.recovery_seen = store_fake_put(b->store, P "recovery", "{\"id\":\"r1\"}");
	assert_int_equal(claims_claim(b->claims, &claim, on_claim, b, NULL), 0);
	store_fake_run(b->store);
	assert_int_equal(b->last.outcome, CLAIM_DONE);
	assert_non_null(strstr(store_fake_get(b->store, BLOCK "10.1.0.64-26")->value,
			       "\"recovery\":\"r1\""));
	assert_null(store_fake_get(b->store, P "host/b/ipv4/block/default/10.1.0.64-26"));
}

static void a_recovery_that_changes_meanwhile_takes_nothing_away(void **state)
{
	struct bench *b = *state;
	struct claim claim = taking_back(b);

	claim.recovery_seen = store_fake_put(b->store, P "recovery", "{\"id\":\"r1\"}");
	store_fake_put(b->store, P "recovery", "{\"id\":\"r1\",\"longest\":7200}");
	assert_int_equal(claims_claim(b->claims, &claim, on_claim, b, NULL), 0);
	store_fake_run(b->store);
	/* Not "taken": the other's record is the one that was to be replaced. */
	assert_int_equal(b->last.outcome, CLAIM_STALE);
}

/* An operator deletes the record that was to be replaced, and the reply is lost, or is not. */
static void a_restored_record_that_vanishes_meanwhile_is_looked_at_again(void **state)
{
	struct bench *b = *state;
	struct claim claim = taking_back(b);

	claim.recovery_seen = store_fake_put(b->store, P "recovery", "{\"id\":\"r1\"}");
	store_fake_delete(b->store, BLOCK "10.1.0.64-26", NULL);
	assert_int_equal(claims_claim(b->claims, &claim, on_claim, b, NULL), 0);
	store_fake_run(b->store);
	assert_int_equal(b->last.outcome, CLAIM_STALE);
	assert_int_equal(count_blocks(b), 0);
}

static void a_claim_of_before_a_recovery_is_refused(void **state)
{
	struct bench *b = *state;

	store_fake_put(b->store, P "recovery", "{\"id\":\"r1\"}");
	claim(b, CLAIM_STALE);
	assert_int_equal(count_blocks(b), 0);
}

static void a_claim_whose_reply_was_lost_is_found_to_be_ours(void **state)
{
	struct bench *b = *state;
	int64_t before = b->fence;

	store_fake_next(b->store, STORE_FAKE_WRITE, NULL, 1, STORE_FAKE_LOSE_REPLY);
	claim(b, CLAIM_DONE);
	assert_false(b->last.found);
	expect_owned(b, &b->last.block, true);
	assert_true(b->fence > before);
	assert_int_equal(b->last.revision,
			 store_fake_get(b->store, P "extent/default/web")->mod_revision);
	assert_int_equal(b->last.extent_revision, b->last.revision);
	/* With the new fence the next claim goes through. */
	claim(b, CLAIM_DONE);
	assert_int_equal(count_blocks(b), 2);
}

static void a_claim_that_was_lost_is_sent_again_and_a_late_copy_changes_nothing(void **state)
{
	struct bench *b = *state;
	int64_t revision;

	store_fake_next(b->store, STORE_FAKE_WRITE, NULL, 1, STORE_FAKE_LATE);
	claim(b, CLAIM_DONE);
	assert_int_equal(count_blocks(b), 1);
	revision = store_fake_revision(b->store);
	assert_int_equal(store_fake_wake(b->store), 1);
	store_fake_run(b->store);
	assert_int_equal(store_fake_revision(b->store), revision);
}

static void a_late_claim_does_not_come_back_after_the_release(void **state)
{
	struct bench *b = *state;
	int64_t revision;

	store_fake_next(b->store, STORE_FAKE_WRITE, NULL, 1, STORE_FAKE_LATE);
	claim(b, CLAIM_DONE);
	store_fake_delete(b->store, BLOCK, P "block/default0");
	store_fake_delete(b->store, INDEX, P "host/a/ipv4/block/default0");
	store_fake_delete(b->store, P "extent/default/web", NULL);
	revision = store_fake_revision(b->store);
	store_fake_wake(b->store);
	store_fake_run(b->store);
	assert_int_equal(store_fake_revision(b->store), revision);
	assert_int_equal(count_blocks(b), 0);
}

static void an_error_of_etcd_ends_the_claim_with_its_words(void **state)
{
	struct bench *b = *state;

	store_fake_fail_next(b->store, STORE_FAKE_WRITE, NULL, 1, -EACCES);
	claim(b, CLAIM_FAILED);
	assert_true(strlen(b->last.text) > 0);
}

/* --- releases ------------------------------------------------------------------------------- */

static void on_release(bool released, int64_t revision, const char *text, void *arg)
{
	struct bench *b = arg;

	b->releases++;
	b->released = released;
	b->released_revision = revision;
}

static void release(struct bench *b, int64_t revision, bool want)
{
	int before = b->releases;

	assert_int_equal(
		claims_release(b->claims, "default", &b->last.block, revision, on_release, b, NULL),
		0);
	store_fake_run(b->store);
	assert_int_equal(b->releases, before + 1);
	assert_int_equal(b->released, want);
}

static void a_release_removes_block_and_index_and_leaves_the_extent(void **state)
{
	struct bench *b = *state;

	claim(b, CLAIM_DONE);
	release(b, b->last.revision, true);
	expect_owned(b, &b->last.block, false);
	assert_non_null(store_fake_get(b->store, P "extent/default/web"));
}

static void a_release_by_an_old_revision_changes_nothing(void **state)
{
	struct bench *b = *state;

	claim(b, CLAIM_DONE);
	release(b, b->last.revision - 1, false);
	expect_owned(b, &b->last.block, true);
	assert_int_equal(b->released_revision, b->last.revision);
	release(b, b->released_revision, true);
}

static void a_release_of_what_another_owns_is_over(void **state)
{
	struct bench *b = *state;
	char name[PREFIX_TEXT];

	claim(b, CLAIM_DONE);
	prefix_print_key(&b->last.block, name);
	taken_by(b, "other", name);
	release(b, b->last.revision, true);
	assert_int_equal(count_blocks(b), 1);
}

static void a_late_release_does_not_take_the_block_away(void **state)
{
	struct bench *b = *state;

	claim(b, CLAIM_DONE);
	store_fake_next(b->store, STORE_FAKE_WRITE, NULL, 1, STORE_FAKE_LATE);
	release(b, b->last.revision, false);
	store_fake_wake(b->store);
	store_fake_run(b->store);
	expect_owned(b, &b->last.block, true);
	release(b, b->released_revision, true);
	expect_owned(b, &b->last.block, false);
}

/* It lies in a stopped member while the agent is killed and its successor uses the block. */
static void a_release_of_an_earlier_agent_comes_too_late(void **state)
{
	struct bench *b = *state;

	claim(b, CLAIM_DONE);
	store_fake_put(b->store, P "node/a", "{\"started\": \"later\"}");
	release(b, b->last.revision, false);
	expect_owned(b, &b->last.block, true);
	assert_int_equal(b->released_revision, b->last.revision);
}

static void without_a_registration_nothing_is_released(void **state)
{
	struct bench *b = *state;

	claim(b, CLAIM_DONE);
	b->fence = 0;
	assert_int_equal(claims_release(b->claims, "default", &b->last.block, b->last.revision,
					on_release, b, NULL),
			 -ENOTCONN);
}

static void a_release_whose_reply_was_lost_is_known_to_be_done(void **state)
{
	struct bench *b = *state;

	claim(b, CLAIM_DONE);
	store_fake_next(b->store, STORE_FAKE_WRITE, NULL, 1, STORE_FAKE_LOSE_REPLY);
	release(b, b->last.revision, true);
}

static void what_is_cancelled_never_calls_back(void **state)
{
	struct bench *b = *state;

	for (unsigned steps = 0; steps < 6; steps++) {
		struct claims_call *call = start(b);

		for (unsigned i = 0; i < steps && b->results == 0; i++)
			store_fake_step(b->store);
		if (b->results)
			break;
		claims_cancel(call);
		store_fake_run(b->store);
		assert_int_equal(b->results, 0);
	}
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_first_claim_makes_block_index_and_extent_in_one_revision),
		CASE(blocks_of_others_are_passed_over_until_the_pool_is_full),
		CASE(our_own_block_is_adopted_when_a_lost_claim_turns_up),
		CASE(a_pool_without_a_free_block_is_full),
		CASE(a_damaged_block_record_belongs_to_somebody_else),
		CASE(a_specific_block_of_another_names_its_owner),
		CASE(nothing_is_claimed_under_another_registration),
		CASE(nothing_is_cut_when_another_extent_has_appeared),
		CASE(nothing_is_cut_by_an_extent_that_was_made_anew),
		CASE(a_block_is_taken_back_from_a_restored_owner),
		CASE(a_recovery_that_changes_meanwhile_takes_nothing_away),
		CASE(a_restored_record_that_vanishes_meanwhile_is_looked_at_again),
		CASE(a_claim_of_before_a_recovery_is_refused),
		CASE(a_claim_whose_reply_was_lost_is_found_to_be_ours),
		CASE(a_claim_that_was_lost_is_sent_again_and_a_late_copy_changes_nothing),
		CASE(a_late_claim_does_not_come_back_after_the_release),
		CASE(an_error_of_etcd_ends_the_claim_with_its_words),
		CASE(a_release_removes_block_and_index_and_leaves_the_extent),
		CASE(a_release_by_an_old_revision_changes_nothing),
		CASE(a_release_of_an_earlier_agent_comes_too_late),
		CASE(without_a_registration_nothing_is_released),
		CASE(a_release_of_what_another_owns_is_over),
		CASE(a_late_release_does_not_take_the_block_away),
		CASE(a_release_whose_reply_was_lost_is_known_to_be_done),
		CASE(what_is_cancelled_never_calls_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
