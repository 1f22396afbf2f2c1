/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/records/records.h"
#include "lib/store/fake_time.h"

#define PREFIX "/roost/v1/"
#define PEER   PREFIX "peer/p"
#define NODE   PREFIX "node/n2"
#define GOOD   "{\"address\":\"192.0.2.1\",\"asn\":64999}"
#define BETTER "{\"address\":\"192.0.2.1\",\"asn\":64998}"
#define BLOCK  PREFIX "block/default/10.1.0.64-26"
#define OF_N2  "{\"node\":\"n2\",\"pool\":\"web\",\"token\":\"t1\"}"
#define OF_N3  "{\"node\":\"n3\",\"pool\":\"web\",\"token\":\"t2\"}"
#define ADDR   "{\"ipv4\":\"10.0.0.2/24\"}"

struct world {
	struct store *store;
	struct fake_time time;
	struct health *health;
	struct records *records;
	struct record_want *wants[6];
	unsigned changes, events;
};

static void on_event(const struct record_event *e, void *arg)
{
	struct world *w = arg;

	w->changes += e->changed;
	w->events++;
}

static void on_notice(enum store_notice notice, const char *text, void *arg)
{
	struct world *w = arg;

	if (w->records)
		records_notice(w->records, notice);
}

static void quiet_sink(const struct log_record *record)
{
}

static const char *const watched[] = { KEYS_PEER, KEYS_FILTER, KEYS_NODE, KEYS_SPEC, KEYS_BLOCK };
#define WANTED_BLOCKS 4

static struct world world;
static int fresh(void **state)
{
	struct world *w = &world;

	log_set_sink(quiet_sink);
	*w = (struct world){ .store = store_fake_new(), .time = FAKE_TIME };
	*state = w;
	store_fake_put(w->store, PEER, GOOD);
	store_fake_put(w->store, NODE, ADDR);
	store_fake_put(w->store, PREFIX "filter/f", "{\"rules\":[]}");
	store_on_notice(w->store, on_notice, w);
	if (health_new(NULL, NULL, &w->health) < 0)
		return -1;
	if (records_new(&(struct records_options){ .store = w->store,
						   .timers = &w->time.base,
						   .health = w->health,
						   .prefix = PREFIX,
						   .node = "n1",
						   .minute = 60000 },
			&w->records) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(watched); i++)
		if (records_want(w->records, watched[i], on_event, w, &w->wants[i]) < 0)
			return -1;
	fake_time_pass(&w->time, w->store, 0);
	for (size_t i = 0; i < ARRAY_SIZE(watched); i++)
		if (!records_listed(w->wants[i]) || !records_in_sync(w->wants[i]))
			return -1;
	return 0;
}

static int done(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_SIZE(w->wants); i++)
		records_unwant(w->wants[i]);
	records_free(w->records);
	w->records = NULL;
	store_free(w->store);
	health_free(w->health);
	log_set_sink(log_to_stderr);
	return 0;
}

static size_t n_watches(const struct world *w)
{
	return store_fake_stats(w->store).watches;
}

static void pass(struct world *w, unsigned seconds)
{
	fake_time_pass(&w->time, w->store, seconds);
}

static uint32_t peer_asn(const struct world *w)
{
	const struct peer *p = records_find(w->records, KEY_PEER, "p");

	return p ? p->asn : 0;
}

static bool has_node(const struct world *w)
{
	return records_find(w->records, KEY_NODE, "n2") != NULL;
}

static void a_damaged_record_leaves_the_good_one(void **state)
{
	struct world *w = *state;
	unsigned before = w->changes;

	store_fake_put(w->store, PEER, "{\"address\":\"192.0.2.1\",\"asn\":\"x\"}");
	pass(w, 0);
	assert_int_equal(peer_asn(w), 64999);
	assert_int_equal(w->changes, before);
	assert_non_null(strstr(health_reason(w->health, "peer/p"), "field \"asn\""));
	assert_non_null(strstr(health_reason(w->health, "peer/p"), "stays in force"));
	store_fake_put(w->store, PEER, BETTER);
	pass(w, 0);
	assert_int_equal(peer_asn(w), 64998);
	assert_null(health_reason(w->health, "peer/p"));
}

/* A room reports a conflict of a good record under the same name. */
static void what_others_report_of_a_good_record_stays(void **state)
{
	struct world *w = *state;

	health_set(w->health, "peer/p", LOG_LEVEL_ERROR, "its neighbour is one of ours");
	store_fake_put(w->store, PEER, BETTER);
	pass(w, 0);
	assert_non_null(health_reason(w->health, "peer/p"));
	store_fake_delete(w->store, PEER, NULL);
	pass(w, 0);
	assert_null(health_reason(w->health, "peer/p"));
}

static void a_record_that_was_never_good_is_told_and_absent(void **state)
{
	struct world *w = *state;

	store_fake_put(w->store, PREFIX "peer/q", "nothing");
	pass(w, 0);
	assert_null(records_find(w->records, KEY_PEER, "q"));
	assert_null(strstr(health_reason(w->health, "peer/q"), "stays in force"));
	store_fake_delete(w->store, PREFIX "peer/q", NULL);
	pass(w, 0);
	assert_null(health_reason(w->health, "peer/q"));
}

static void an_equal_record_changes_nothing(void **state)
{
	struct world *w = *state;
	unsigned before = w->changes;

	store_fake_put(w->store, PEER, " { \"asn\":64999, \"address\" : \"192.0.2.1\" }");
	store_fake_put(w->store, NODE, ADDR);
	pass(w, 0);
	assert_int_equal(w->changes, before);
}

static void a_node_that_comes_back_in_time_was_never_missed(void **state)
{
	struct world *w = *state;
	unsigned before = w->changes;

	store_fake_delete(w->store, NODE, NULL);
	pass(w, 8);
	assert_true(has_node(w));
	store_fake_put(w->store, NODE, ADDR);
	pass(w, 60);
	assert_true(has_node(w));
	assert_int_equal(w->changes, before);
}

static void a_node_that_stays_away_is_dropped(void **state)
{
	struct world *w = *state;
	unsigned before = w->changes;

	store_fake_delete(w->store, NODE, NULL);
	pass(w, 9);
	assert_true(has_node(w));
	pass(w, 5);
	assert_false(has_node(w));
	assert_int_equal(w->changes, before + 1);
}

/* One that vanishes while another's time runs has its full time too. */
static void each_node_has_its_own_time(void **state)
{
	struct world *w = *state;

	store_fake_put(w->store, PREFIX "node/n3", "{\"ipv4\":\"10.0.0.3/24\"}");
	pass(w, 0);
	store_fake_delete(w->store, NODE, NULL);
	pass(w, 7);
	store_fake_delete(w->store, PREFIX "node/n3", NULL);
	pass(w, 8);
	assert_false(has_node(w));
	assert_non_null(records_find(w->records, KEY_NODE, "n3"));
	pass(w, 10);
	assert_null(records_find(w->records, KEY_NODE, "n3"));
}

static void a_peer_that_is_deleted_is_dropped_at_once(void **state)
{
	struct world *w = *state;
	unsigned before = w->changes;

	store_fake_delete(w->store, PEER, NULL);
	pass(w, 0);
	assert_int_equal(peer_asn(w), 0);
	assert_int_equal(w->changes, before + 1);
}

/* Another, empty cluster: nobody deleted anything. */
static void what_etcd_lost_stays_until_it_is_written_again(void **state)
{
	struct world *w = *state;

	store_fake_wipe(w->store);
	pass(w, 5);
	assert_int_equal(peer_asn(w), 64999);
	assert_non_null(records_find(w->records, KEY_FILTER, "f"));
	store_fake_put(w->store, NODE, ADDR);
	pass(w, 60);
	assert_true(has_node(w));
	assert_int_equal(peer_asn(w), 64999);
	store_fake_put(w->store, PEER, BETTER);
	pass(w, 0);
	assert_int_equal(peer_asn(w), 64998);
	/* From now on it is etcd's again. */
	store_fake_delete(w->store, PEER, NULL);
	pass(w, 0);
	assert_int_equal(peer_asn(w), 0);
}

static void what_an_old_backup_lacks_stays_too(void **state)
{
	struct world *w = *state;
	AUTO(store_fake_snapshot_free)
	struct store_fake_snapshot *old = store_fake_snapshot(w->store);

	store_fake_put(w->store, PREFIX "peer/q", GOOD);
	pass(w, 0);
	store_fake_restore(w->store, old);
	pass(w, 60);
	assert_non_null(records_find(w->records, KEY_PEER, "q"));
	assert_int_equal(peer_asn(w), 64999);
	assert_true(has_node(w));
}

static const char *owner(const struct world *w)
{
	const struct block_place *p = records_find(w->records, KEY_BLOCK, "default/10.1.0.64-26");

	return p ? p->node : NULL;
}

/* Whoever has pods in it claims it again; who claims it instead has it at once. */
static void a_block_counts_on_for_a_while_unless_another_has_it(void **state)
{
	struct world *w = *state;

	store_fake_put(w->store, BLOCK, OF_N2);
	pass(w, 0);
	assert_string_equal(owner(w), "n2");
	store_fake_delete(w->store, BLOCK, NULL);
	pass(w, 9);
	assert_string_equal(owner(w), "n2");
	store_fake_put(w->store, BLOCK, OF_N3);
	pass(w, 0);
	assert_string_equal(owner(w), "n3");
	store_fake_delete(w->store, BLOCK, NULL);
	pass(w, 12);
	assert_null(owner(w));
}

/* Thousands of nodes write their own again: that takes more than a moment. */
static void others_blocks_outlive_the_loss_of_etcd(void **state)
{
	struct world *w = *state;

	store_fake_put(w->store, BLOCK, OF_N2);
	pass(w, 0);
	store_fake_wipe(w->store);
	pass(w, 300);
	assert_string_equal(owner(w), "n2");
	assert_true(has_node(w));
	store_fake_put(w->store, NODE, ADDR);
	pass(w, 400);
	assert_null(owner(w));
	assert_true(has_node(w));
}

static void what_nobody_wants_is_forgotten_and_not_watched(void **state)
{
	struct world *w = *state;
	struct record_want *again;

	store_fake_put(w->store, BLOCK, "nothing");
	pass(w, 0);
	assert_non_null(health_reason(w->health, "block/default/10.1.0.64-26"));
	store_fake_put(w->store, BLOCK, OF_N2);
	pass(w, 0);
	/* Two want it. */
	assert_int_equal(records_want(w->records, KEYS_BLOCK, on_event, w, &again), 0);
	assert_true(records_listed(again));
	records_unwant(TAKE(w->wants[WANTED_BLOCKS]));
	assert_string_equal(owner(w), "n2");
	store_fake_put(w->store, PREFIX "block/default/10.1.0.128-26", "nothing");
	pass(w, 0);
	records_unwant(again);
	assert_null(owner(w));
	assert_int_equal(records_count(w->records, KEY_BLOCK), 0);
	assert_null(health_reason(w->health, "block/default/10.1.0.128-26"));
	store_fake_put(w->store, BLOCK, OF_N3);
	pass(w, 0);
	assert_null(owner(w));
	assert_int_equal(
		records_want(w->records, KEYS_BLOCK, on_event, w, &w->wants[WANTED_BLOCKS]), 0);
	assert_false(records_listed(w->wants[WANTED_BLOCKS]));
	pass(w, 0);
	assert_string_equal(owner(w), "n3");
}

/* After a cut of the watches the list is compared: what is not in it was deleted meanwhile. */
static void a_deletion_that_was_not_seen_counts(void **state)
{
	struct world *w = *state;

	store_fake_follow(w->store, false);
	store_fake_delete(w->store, PEER, NULL);
	store_fake_compact(w->store);
	store_fake_follow(w->store, true);
	pass(w, 1);
	assert_int_equal(peer_asn(w), 0);
}

static void a_record_of_the_file_counts_until_the_first_list_lacks_it(void **state)
{
	struct world *w = *state;
	static const char config[] = "{\"asn\":65001}", bad[] = "{\"asn\":0}";
	static const char extent[] = "{\"cidr\":\"10.1.0.0/16\",\"blockSize\":26}";
	const struct cluster_config *c;
	struct record_want *wants[2];

	assert_int_equal(records_put(w->records, "config", config, strlen(config), -1), 0);
	assert_int_equal(records_put(w->records, "config", bad, strlen(bad), -1), 0);
	assert_int_equal(records_put(w->records, "extent/default/web", extent, strlen(extent), -1),
			 0);
	c = records_find(w->records, KEY_CONFIG, "");
	assert_non_null(c);
	assert_int_equal(c->asn, 65001);
	assert_string_equal(records_entry(w->records, KEY_CONFIG, "")->text, config);
	assert_int_equal(records_want(w->records, "config", on_event, w, &wants[0]), 0);
	assert_int_equal(records_want(w->records, KEYS_EXTENT, on_event, w, &wants[1]), 0);
	assert_non_null(records_find(w->records, KEY_CONFIG, ""));
	pass(w, 0);
	assert_null(records_find(w->records, KEY_CONFIG, ""));
	assert_int_equal(records_at(w->records, KEY_EXTENT, 0)->state, RECORD_LINGERS);
	pass(w, 15);
	assert_int_equal(records_count(w->records, KEY_EXTENT), 0);
	records_unwant(wants[0]);
	records_unwant(wants[1]);
}

/* Both hear of the key, by one watch. */
static void a_want_inside_another_shares_its_watch(void **state)
{
	struct world *w = *state;
	struct world narrow = { 0 };
	struct record_want *want;
	size_t watches = n_watches(w);
	unsigned before = w->events;

	assert_int_equal(records_want(w->records, "node/n2", on_event, &narrow, &want), 0);
	assert_int_equal(n_watches(w), watches);
	assert_true(records_in_sync(want));
	store_fake_put(w->store, PREFIX "node/n3", ADDR);
	pass(w, 0);
	assert_int_equal(narrow.events, 0);
	store_fake_put(w->store, NODE, "{\"ipv4\":\"10.0.0.9/24\"}");
	pass(w, 0);
	assert_int_equal(narrow.events, 1);
	assert_int_equal(w->events, before + 2);
	records_unwant(want);
	assert_int_equal(n_watches(w), watches);
}

/* A wider want takes the narrow ones in once it is listed; until then they stay in sync. */
static void a_wider_want_takes_the_narrow_ones_in(void **state)
{
	struct world *w = *state;
	size_t watches = n_watches(w);
	struct record_want *narrow, *wide;

	assert_int_equal(records_want(w->records, "pool/web", on_event, w, &narrow), 0);
	pass(w, 0);
	assert_int_equal(n_watches(w), watches + 1);
	assert_int_equal(records_want(w->records, KEYS_POOL, on_event, w, &wide), 0);
	assert_true(records_in_sync(narrow));
	assert_false(records_in_sync(wide));
	pass(w, 0);
	assert_true(records_in_sync(narrow) && records_in_sync(wide));
	assert_int_equal(n_watches(w), watches + 1);
	store_fake_put(w->store, PREFIX "pool/web", "{\"cidr\":\"10.1.0.0/16\"}");
	pass(w, 0);
	assert_non_null(records_find(w->records, KEY_POOL, "web"));
	records_unwant(wide);
	records_unwant(narrow);
	assert_int_equal(n_watches(w), watches);
}

static void a_wider_want_takes_in_at_once_what_is_not_listed_yet(void **state)
{
	struct world *w = *state;
	size_t watches = n_watches(w);
	struct record_want *narrow, *wide;

	assert_int_equal(records_want(w->records, "pool/web", on_event, w, &narrow), 0);
	assert_int_equal(records_want(w->records, KEYS_POOL, on_event, w, &wide), 0);
	assert_int_equal(n_watches(w), watches + 1);
	assert_false(records_listed(narrow));
	pass(w, 0);
	assert_true(records_in_sync(narrow) && records_in_sync(wide));
	records_unwant(narrow);
	records_unwant(wide);
}

static void unwant_at_first_event(const struct record_event *e, void *arg)
{
	struct record_want **want = arg;

	records_unwant(TAKE(*want));
}

static void a_want_may_end_within_its_own_event(void **state)
{
	struct world *w = *state;
	size_t watches = n_watches(w);
	struct record_want *want;

	store_fake_put(w->store, PREFIX "pool/web", "{\"cidr\":\"10.1.0.0/16\"}");
	assert_int_equal(records_want(w->records, KEYS_POOL, unwant_at_first_event, &want, &want),
			 0);
	pass(w, 0);
	assert_null(want);
	assert_int_equal(n_watches(w), watches);
	assert_int_equal(records_count(w->records, KEY_POOL), 0);
}

static void a_kept_value_outlives_its_record(void **state)
{
	struct world *w = *state;
	const struct peer *p = record_keep(records_find(w->records, KEY_PEER, "p"));

	store_fake_put(w->store, PEER, BETTER);
	pass(w, 0);
	assert_int_equal(p->asn, 64999);
	record_drop(p);
}

static void while_etcd_is_listed_again_it_is_listed_but_not_in_sync(void **state)
{
	struct world *w = *state;

	records_notice(w->records, STORE_REVISION_WENT_BACK);
	assert_true(records_listed(w->wants[0]));
	assert_false(records_in_sync(w->wants[0]));
	assert_int_equal(records_seen(w->wants[0]), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, fresh, done)
int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_damaged_record_leaves_the_good_one),
		CASE(what_others_report_of_a_good_record_stays),
		CASE(a_record_that_was_never_good_is_told_and_absent),
		CASE(an_equal_record_changes_nothing),
		CASE(a_node_that_comes_back_in_time_was_never_missed),
		CASE(a_node_that_stays_away_is_dropped),
		CASE(each_node_has_its_own_time),
		CASE(a_peer_that_is_deleted_is_dropped_at_once),
		CASE(what_etcd_lost_stays_until_it_is_written_again),
		CASE(what_an_old_backup_lacks_stays_too),
		CASE(a_block_counts_on_for_a_while_unless_another_has_it),
		CASE(others_blocks_outlive_the_loss_of_etcd),
		CASE(what_nobody_wants_is_forgotten_and_not_watched),
		CASE(a_deletion_that_was_not_seen_counts),
		CASE(a_record_of_the_file_counts_until_the_first_list_lacks_it),
		CASE(a_want_inside_another_shares_its_watch),
		CASE(a_wider_want_takes_the_narrow_ones_in),
		CASE(a_wider_want_takes_in_at_once_what_is_not_listed_yet),
		CASE(a_want_may_end_within_its_own_event),
		CASE(a_kept_value_outlives_its_record),
		CASE(while_etcd_is_listed_again_it_is_listed_but_not_in_sync),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
