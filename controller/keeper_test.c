/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/keeper_world.h"

#define REMOVED     "{\"by\":\"me\",\"when\":\"2026-11-16T02:45:55Z\"}"
#define REMOVED_NOW "{\"by\":\"me\",\"when\":\"2026-11-16T02:45:55Z\",\"now\":true}"

/* n1 with so many blocks, n2 with one; both registered, neither has a status. */
static struct world *two_nodes(unsigned blocks)
{
	struct world *w = world_begin();

	web_pool(w);
	put(w, "node/n1", NODE_VALUE);
	put(w, "node/n2", NODE_VALUE);
	put(w, "spec/n1", "{\"asn\":65001}");
	for (unsigned i = 0; i < blocks; i++)
		own_block(w, "n1", i, true);
	own_block(w, "n2", 3000, true);
	return w;
}

static void expect_gone(const struct world *w)
{
	assert_false(has(w, "node/n1"));
	assert_false(has(w, "spec/n1"));
	assert_false(has(w, "removed/n1"));
	expect_range(w, "host/n1/", "");
	assert_true(has(w, "node/n2"));
	assert_true(has(w, "block/default/10.1.187.128-28"));
	assert_true(has(w, "host/n2/address/default/10.1.187.129"));
}

static void expect_whole(const struct world *w)
{
	assert_true(has(w, "node/n1"));
	assert_true(has(w, "block/default/10.1.0.0-28"));
	assert_true(has(w, "host/n1/ipv4/block/default/10.1.0.0-28"));
	assert_true(has(w, "host/n1/address/default/10.1.0.1"));
}

/* --- removal -------------------------------------------------------------------------------- */

static void a_silent_node_keeps_everything(void **unused)
{
	struct world *w = two_nodes(2);

	world_pass(w, 3 * 3600);
	expect_whole(w);
	assert_int_equal(keeper_stats(w->keeper).silent, 2);
	world_end(w);
}

static void a_removed_and_silent_node_is_reclaimed_after_its_time(void **unused)
{
	struct world *w = two_nodes(2);

	world_pass(w, 5);
	put(w, "removed/n1", REMOVED);
	world_pass(w, 3590);
	expect_whole(w);
	assert_int_equal(keeper_stats(w->keeper).removals[REMOVAL_WAITING], 1);
	world_pass(w, 20);
	expect_gone(w);
	world_end(w);
}

#define PROMISES(s)                                                                                \
	"{\"ipv4\":\"192.0.2.1/24\",\"machine\":\"m1\",\"boot\":\"b1\",\"reclaimAfter\":" s "}"

/* The node counts on what its record says; config is for the nodes to follow. */
static void the_record_says_how_long(void **unused)
{
	struct world *w = two_nodes(2);

	put(w, "config", "{\"reclaimAfter\":14400}");
	put(w, "node/n1", PROMISES("900"));
	put(w, "removed/n1", REMOVED);
	world_pass(w, 890);
	expect_whole(w);
	world_pass(w, 20);
	expect_gone(w);
	world_end(w);
}

/* Lowered while the node is cut off: it still counts on the longer time. */
static void a_config_that_is_lowered_or_broken_shortens_nothing(void **unused)
{
	static const char *const configs[] = { "{\"reclaimAfter\":900}",
					       "{\"reclaimAfter\":\"4h\"}" };

	for (size_t i = 0; i < ARRAY_SIZE(configs); i++) {
		struct world *w = two_nodes(2);

		put(w, "config", "{\"reclaimAfter\":14400}");
		put(w, "node/n1", PROMISES("14400"));
		put(w, "removed/n1", REMOVED);
		world_pass(w, 60);
		put(w, "config", configs[i]);
		world_pass(w, 14300);
		expect_whole(w);
		world_pass(w, 60);
		expect_gone(w);
		world_end(w);
	}
}

/* An older agent's record, which says nothing: never less than an hour. */
static void a_record_without_a_promise_waits_as_config_says_or_an_hour(void **unused)
{
	struct world *w = two_nodes(2);

	put(w, "config", "{\"reclaimAfter\":900}");
	put(w, "removed/n1", REMOVED);
	world_pass(w, 3590);
	expect_whole(w);
	world_pass(w, 20);
	expect_gone(w);
	world_end(w);
}

static void a_record_that_cannot_be_read_is_only_freed_by_an_operators_word(void **unused)
{
	struct world *w = two_nodes(2);

	put(w, "node/n1", "{\"machine\":7}");
	put(w, "removed/n1", REMOVED);
	world_pass(w, 4 * 3600);
	expect_whole(w);
	put(w, "removed/n1", REMOVED_NOW);
	world_run(w);
	expect_gone(w);
	world_end(w);
}

/* --- a recovery ----------------------------------------------------------------------------- */

static void nothing_is_freed_while_a_recovery_is_open(void **unused)
{
	struct world *w = two_nodes(2);

	put(w, "recovery", "{\"id\":\"r1\",\"longest\":3600}");
	put(w, "removed/n1", REMOVED_NOW);
	world_pass(w, 2 * 3600);
	expect_whole(w);
	assert_non_null(health_reason(w->health, "recovery"));
	put(w, "recovery", "{\"id\":\"r1\",\"longest\":3600,\"done\":true}");
	world_run(w);
	expect_gone(w);
	assert_null(health_reason(w->health, "recovery"));
	world_end(w);
}

static void with_now_it_is_reclaimed_at_once(void **unused)
{
	struct world *w = two_nodes(300);

	put(w, "removed/n1", REMOVED_NOW);
	world_run(w);
	expect_gone(w);
	world_end(w);
}

static void what_etcd_refuses_is_tried_ever_more_slowly(void **unused)
{
	struct world *w = two_nodes(2);
	unsigned before;

	world_run(w);
	store_fake_fail_next(w->store, STORE_FAKE_WRITE, P "node/", 1000, -EACCES);
	before = store_fake_faults_left(w->store);
	put(w, "removed/n1", REMOVED_NOW);
	world_pass(w, 300);
	expect_whole(w);
	assert_in_range(before - store_fake_faults_left(w->store), 10, 30);
	store_fake_forget_faults(w->store);
	world_pass(w, 35);
	expect_gone(w);
	world_end(w);
}

static void a_living_lease_is_never_reclaimed(void **unused)
{
	struct world *w = two_nodes(2);

	put(w, "status/node/n1", "{}");
	put(w, "removed/n1", REMOVED_NOW);
	world_pass(w, 2 * 3600);
	expect_whole(w);
	assert_non_null(health_reason(w->health, "removed/n1"));
	assert_int_equal(keeper_stats(w->keeper).removals[REMOVAL_ALIVE], 1);
	/* It ends: only from then on the time counts. Nobody says of this one that it is off. */
	put(w, "removed/n1", REMOVED);
	world_pass(w, 100);
	store_fake_delete(w->store, P "status/node/n1", NULL);
	world_pass(w, 3590);
	expect_whole(w);
	assert_null(health_reason(w->health, "removed/n1"));
	world_pass(w, 20);
	expect_gone(w);
	world_end(w);
}

/* Whoever registers after the removal lives, whatever was said about the machine. */
static void a_registration_after_the_removal_starts_the_time_anew(void **unused)
{
	struct world *w = two_nodes(2);

	store_fake_delete(w->store, P "node/n1", NULL);
	put(w, "removed/n1", REMOVED_NOW);
	put(w, "node/n1", NODE_VALUE);
	world_pass(w, 3590);
	expect_whole(w);
	put(w, "node/n1", NODE_VALUE);
	world_pass(w, 3590);
	expect_whole(w);
	world_pass(w, 20);
	expect_gone(w);
	world_end(w);
}

/* An earlier leader's knowledge is not inherited: the node may have lived in between. */
static void another_leader_starts_the_time_anew(void **unused)
{
	struct world *w = two_nodes(2);

	put(w, "removed/n1", REMOVED);
	world_pass(w, 3000);
	store_fake_delete(w->store, P "leader/controller", NULL);
	world_pass(w, 3000);
	expect_whole(w);
	world_pass(w, 700);
	expect_gone(w);
	world_end(w);
}

/* Until its own first look, a new leader has nothing to say of these; counters go on. */
static void what_one_leadership_showed_is_not_shown_by_the_next(void **unused)
{
	struct world *w = two_nodes(2);
	struct keeper_stats s;

	put(w, "static-route/vpn", "{\"subnet\":\"10.9.0.0/16\"}");
	put(w, "status/node/n1", "{}");
	put(w, "removed/n1", REMOVED);
	store_fake_delete(w->store, P "host/n1/ipv4/block/default/10.1.0.16-28", NULL);
	world_pass(w, 150);
	assert_int_equal(keeper_stats(w->keeper).routes->records, 1);
	assert_int_equal(keeper_stats(w->keeper).repairs->tried[FINDING_BLOCK_WITHOUT_INDEX], 1);
	assert_int_equal(keeper_stats(w->keeper).removals[REMOVAL_ALIVE], 1);
	assert_non_null(health_reason(w->health, "removed/n1"));

	keeper_stop(w->keeper);
	s = keeper_stats(w->keeper);
	assert_int_equal(keeper_stats(w->keeper).routes->records, 0);
	assert_int_equal(s.removals[REMOVAL_ALIVE], 0);
	assert_int_equal(s.comparison_us, 0);
	assert_null(health_reason(w->health, "removed/n1"));
	assert_true(s.comparisons > 0);
	assert_int_equal(keeper_stats(w->keeper).repairs->tried[FINDING_BLOCK_WITHOUT_INDEX], 1);
	world_end(w);
}

static void a_removal_that_cannot_be_read_is_no_command(void **unused)
{
	struct world *w = two_nodes(2);

	put(w, "removed/n1", "{\"now\":\"yes\"}");
	world_pass(w, 2 * 3600);
	expect_whole(w);
	world_end(w);
}

static void a_removal_taken_back_stops_it(void **unused)
{
	struct world *w = two_nodes(2);

	put(w, "removed/n1", REMOVED);
	world_pass(w, 3500);
	store_fake_delete(w->store, P "removed/n1", NULL);
	world_pass(w, 500);
	put(w, "removed/n1", REMOVED);
	world_pass(w, 3500);
	expect_whole(w);
	world_end(w);
}

static void no_transaction_is_larger_than_etcd_takes(void **unused)
{
	for (unsigned blocks = 35; blocks < 50; blocks++) {
		struct world *w = two_nodes(blocks);

		/* The store refuses larger ones. */
		put(w, "removed/n1", REMOVED_NOW);
		world_run(w);
		expect_gone(w);
		assert_int_equal(keeper_stats(w->keeper).work.failed, 0);
		world_end(w);
	}
}

/* --- every transaction names its leader ----------------------------------------------------- */

static unsigned unfenced;

static void look_for_token(struct store *s, const struct store_txn *txn, void *arg)
{
	struct world *w = arg;
	bool compares = false, puts = false;

	if (!elect_token(w->elect) || !txn->n_success || txn->success[0].kind == STORE_GET)
		return;
	for (size_t i = 0; i < txn->n_compares; i++)
		compares = compares || (strcmp(txn->compares[i].key, P "leader/controller") == 0 &&
					txn->compares[i].target == STORE_CREATE_REVISION &&
					txn->compares[i].number == elect_token(w->elect));
	for (size_t i = 0; i < txn->n_success; i++)
		puts = puts || (strcmp(txn->success[i].key, P "leader/controller") == 0 &&
				txn->success[i].keep_lease);
	unfenced += !compares || !puts;
}

static void every_transaction_compares_the_token(void **unused)
{
	struct world *w = two_nodes(100);

	unfenced = 0;
	world_run(w);
	store_fake_before_txn(w->store, look_for_token, w);
	store_fake_delete(w->store, P "host/n2/ipv4/block/default/10.1.187.128-28", NULL);
	put(w, "pool/web", "{}");
	put(w, "removed/n1", REMOVED_NOW);
	world_pass(w, 200);
	expect_gone(w);
	assert_true(has(w, "host/n2/ipv4/block/default/10.1.187.128-28"));
	assert_true(has(w, "status/pool/web"));
	assert_int_equal(unfenced, 0);
	world_end(w);
}

/* What was sent and came late, after another had become leader, changes nothing. */
static void a_late_transaction_of_an_old_leader_does_nothing(void **unused)
{
	struct world *w = two_nodes(2);

	world_run(w);
	store_fake_next(w->store, STORE_FAKE_WRITE, P "node/n1", 1, STORE_FAKE_LATE);
	put(w, "removed/n1", REMOVED_NOW);
	while (store_fake_faults_left(w->store))
		assert_true(world_step(w));
	store_fake_delete(w->store, P "leader/controller", NULL);
	store_fake_put(w->store, P "leader/controller", "{\"id\":\"c2\"}");
	world_run(w);
	assert_int_equal(store_fake_wake(w->store), 1);
	world_run(w);
	expect_whole(w);
	world_end(w);
}

/* --- repairs -------------------------------------------------------------------------------- */

static void an_orphan_is_mended_when_it_is_seen_twice(void **unused)
{
	struct world *w = two_nodes(2);

	store_fake_delete(w->store, P "host/n1/ipv4/block/default/10.1.0.16-28", NULL);
	put(w, "host/n1/ipv4/block/default/10.1.9.0-28", "{\"pool\":\"web\"}");
	put(w, "extent/other/gone", "{\"cidr\":\"10.9.0.0/16\",\"blockSize\":28}");
	world_pass(w, 50);
	assert_int_equal(keeper_stats(w->keeper).repairs->found[FINDING_BLOCK_WITHOUT_INDEX], 1);
	assert_false(has(w, "host/n1/ipv4/block/default/10.1.0.16-28"));
	assert_true(has(w, "extent/other/gone"));
	world_pass(w, 100);
	assert_true(has(w, "host/n1/ipv4/block/default/10.1.0.16-28"));
	assert_false(has(w, "host/n1/ipv4/block/default/10.1.9.0-28"));
	assert_false(has(w, "extent/other/gone"));
	world_pass(w, 100);
	assert_int_equal(keeper_stats(w->keeper).repairs->found[FINDING_BLOCK_WITHOUT_INDEX], 0);
	assert_int_equal(keeper_stats(w->keeper).repairs->tried[FINDING_BLOCK_WITHOUT_INDEX], 1);
	world_end(w);
}

/* Each time that it is looked at it is another one. */
static void what_changes_between_two_looks_is_left_alone(void **unused)
{
	struct world *w = two_nodes(2);

	for (unsigned i = 0; i < 10; i++) {
		put(w, "host/n1/ipv4/block/default/10.1.9.0-28", "{\"pool\":\"web\"}");
		world_pass(w, 45);
	}
	assert_true(has(w, "host/n1/ipv4/block/default/10.1.9.0-28"));
	world_end(w);
}

/* --- static routes -------------------------------------------------------------------------- */

static void a_route_that_is_deleted_waits_for_a_dead_node_to_be_removed(void **unused)
{
	struct world *w = two_nodes(1);

	put(w, "static-route/vpn",
	    "{\"subnet\":\"10.9.0.0/16\",\"deleting\":\"2026-11-16T02:45:55Z\"}");
	put(w, "status/static-route/vpn/n1", "{\"subnet\":\"10.9.0.0/16\"}");
	world_pass(w, 3600);
	assert_true(has(w, "static-route/vpn"));
	assert_int_equal(keeper_stats(w->keeper).routes->deleting, 1);
	assert_int_equal(keeper_stats(w->keeper).routes->applied, 1);
	put(w, "removed/n1", REMOVED_NOW);
	world_pass(w, 10);
	expect_gone(w);
	assert_false(has(w, "status/static-route/vpn/n1"));
	assert_false(has(w, "static-route/vpn"));
	world_end(w);
}

static void report_before_the_end(struct store *s, const struct store_txn *txn, void *arg)
{
	bool *reported = arg;

	for (size_t i = 0; i < txn->n_success; i++)
		if (txn->success[i].kind == STORE_DELETE && !*reported &&
		    strcmp(txn->success[i].key, P "static-route/vpn") == 0) {
			*reported = true;
			store_fake_put(s, P "status/static-route/vpn/n1",
				       "{\"subnet\":\"10.9.0.0/16\"}");
		}
}

static void a_report_in_the_last_moment_keeps_the_record(void **unused)
{
	struct world *w = two_nodes(1);
	bool reported = false;

	world_pass(w, 10);
	store_fake_before_txn(w->store, report_before_the_end, &reported);
	put(w, "static-route/vpn",
	    "{\"subnet\":\"10.9.0.0/16\",\"deleting\":\"2026-11-16T02:45:55Z\"}");
	world_pass(w, 30);
	assert_true(reported);
	assert_true(has(w, "static-route/vpn"));
	store_fake_delete(w->store, P "status/static-route/vpn/n1", NULL);
	world_pass(w, 10);
	assert_false(has(w, "static-route/vpn"));
	world_end(w);
}

/* --- pools ---------------------------------------------------------------------------------- */

static void a_full_pool_is_told_and_those_with_surplus_are_asked(void **unused)
{
	struct world *w = two_nodes(3);

	/* n1 has three, two of them empty; n2 has one and no address is free in it. */
	store_fake_delete(w->store, P "host/n1/address/default/10.1.0.1", NULL);
	store_fake_delete(w->store, P "host/n1/address/default/10.1.0.17", NULL);
	put(w, "status/node/n1", "{\"health\":\"ok\"}");
	put(w, "status/node/n2", "{\"health\":[{\"part\":\"pool-full/web\",\"reason\":\"r\"}]}");
	world_pass(w, 10);
	assert_true(has(w, "status/pool/web"));
	assert_true(has(w, "host/n1/give-back/default"));
	assert_false(has(w, "host/n2/give-back/default"));
	assert_int_equal(keeper_stats(w->keeper).pools->full, 1);
	/* It gave nothing: it is not asked again at once. */
	store_fake_delete(w->store, P "host/n1/give-back/default", NULL);
	world_pass(w, 30);
	assert_false(has(w, "host/n1/give-back/default"));
	world_pass(w, 60);
	assert_true(has(w, "host/n1/give-back/default"));
	put(w, "status/node/n2", "{\"health\":\"ok\"}");
	world_pass(w, 10);
	assert_int_equal(keeper_stats(w->keeper).pools->full, 0);
	store_fake_delete(w->store, P "pool/web", NULL);
	world_pass(w, 10);
	assert_false(has(w, "status/pool/web"));
	world_end(w);
}

static void a_pool_that_is_well_has_no_status(void **unused)
{
	struct world *w = two_nodes(3);
	int64_t before;

	world_pass(w, 10);
	assert_false(has(w, "status/pool/web"));
	put(w, "pool/web", "{\"cidr\":\"10.1.0.0/16\",\"blockSize\":99}");
	world_pass(w, 10);
	assert_true(has(w, "status/pool/web"));
	/* Written once. */
	before = store_fake_get(w->store, P "status/pool/web")->mod_revision;
	world_pass(w, 100);
	assert_int_equal(store_fake_get(w->store, P "status/pool/web")->mod_revision, before);
	assert_int_equal(keeper_stats(w->keeper).pools->invalid, 1);
	world_end(w);
}

static void nodes_that_lack_preallocated_blocks_are_counted(void **unused)
{
	struct world *w = two_nodes(2);

	put(w, "pool/web",
	    "{\"cidr\":\"10.1.0.0/16\",\"blockSize\":28,\"preallocate\":2,\"nodeSelector\":\"asn "
	    "!= 'x'\"}");
	put(w, "status/node/n1", "{}");
	put(w, "status/node/n2", "{}");
	world_pass(w, 10);
	assert_int_equal(keeper_stats(w->keeper).pools->lacking, 1);
	own_block(w, "n2", 3001, false);
	world_pass(w, 10);
	assert_int_equal(keeper_stats(w->keeper).pools->lacking, 0);
	world_end(w);
}

/* --- leases --------------------------------------------------------------------------------- */

#define LEASED(ip, expires)                                                                        \
	"{\"node\":\"lease-" ip "\",\"pool\":\"web\",\"lease\":{\"publicIP\":\"" ip                \
	"\",\"expires\":\"" expires "\"}}"

/* The clock on the wall is the machine's own: one is long ago, one far away. */
static void an_expired_lease_waits_until_this_leader_has_led_for_the_grace(void **unused)
{
	struct world *w = world_begin();

	web_pool(w);
	put(w, "node/lease-192.0.2.5", NODE_VALUE);
	put(w, "node/lease-192.0.2.6", NODE_VALUE);
	put(w, "block/default/10.1.0.0-28", LEASED("192.0.2.5", "2020-01-01T00:00:00Z"));
	put(w, "block/default/10.1.0.16-28", LEASED("192.0.2.6", "2100-01-01T00:00:00Z"));
	put(w, "host/lease-192.0.2.5/ipv4/block/default/10.1.0.0-28", "{\"pool\":\"web\"}");
	put(w, "host/lease-192.0.2.6/ipv4/block/default/10.1.0.16-28", "{\"pool\":\"web\"}");
	world_pass(w, 290);
	assert_true(has(w, "block/default/10.1.0.0-28"));
	assert_int_equal(keeper_stats(w->keeper).leases, 2);
	assert_int_equal(keeper_stats(w->keeper).silent, 0);
	world_pass(w, 120);
	assert_false(has(w, "block/default/10.1.0.0-28"));
	assert_false(has(w, "node/lease-192.0.2.5"));
	expect_range(w, "host/lease-192.0.2.5/", "");
	assert_true(has(w, "block/default/10.1.0.16-28"));
	assert_true(has(w, "node/lease-192.0.2.6"));
	assert_int_equal(keeper_stats(w->keeper).leases_freed, 1);
	world_end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_silent_node_keeps_everything),
		cmocka_unit_test(a_removed_and_silent_node_is_reclaimed_after_its_time),
		cmocka_unit_test(the_record_says_how_long),
		cmocka_unit_test(a_config_that_is_lowered_or_broken_shortens_nothing),
		cmocka_unit_test(a_record_without_a_promise_waits_as_config_says_or_an_hour),
		cmocka_unit_test(a_record_that_cannot_be_read_is_only_freed_by_an_operators_word),
		cmocka_unit_test(nothing_is_freed_while_a_recovery_is_open),
		cmocka_unit_test(with_now_it_is_reclaimed_at_once),
		cmocka_unit_test(what_etcd_refuses_is_tried_ever_more_slowly),
		cmocka_unit_test(a_living_lease_is_never_reclaimed),
		cmocka_unit_test(a_registration_after_the_removal_starts_the_time_anew),
		cmocka_unit_test(another_leader_starts_the_time_anew),
		cmocka_unit_test(what_one_leadership_showed_is_not_shown_by_the_next),
		cmocka_unit_test(a_removal_that_cannot_be_read_is_no_command),
		cmocka_unit_test(a_removal_taken_back_stops_it),
		cmocka_unit_test(no_transaction_is_larger_than_etcd_takes),
		cmocka_unit_test(every_transaction_compares_the_token),
		cmocka_unit_test(a_late_transaction_of_an_old_leader_does_nothing),
		cmocka_unit_test(an_orphan_is_mended_when_it_is_seen_twice),
		cmocka_unit_test(what_changes_between_two_looks_is_left_alone),
		cmocka_unit_test(a_route_that_is_deleted_waits_for_a_dead_node_to_be_removed),
		cmocka_unit_test(a_report_in_the_last_moment_keeps_the_record),
		cmocka_unit_test(a_full_pool_is_told_and_those_with_surplus_are_asked),
		cmocka_unit_test(an_expired_lease_waits_until_this_leader_has_led_for_the_grace),
		cmocka_unit_test(a_pool_that_is_well_has_no_status),
		cmocka_unit_test(nodes_that_lack_preallocated_blocks_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
