/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node comes back while it is being reclaimed, at every moment of it: its registration and its
 * claims are the agent's own, and another node claims whatever is free as soon as it is.
 */
#include "agent/node/register.h"
#include "agent/records/records.h"
#include "controller/keeper_world.h"
#include "ipam/claims.h"

#define REMOVED_NOW "{\"by\":\"me\",\"when\":\"2026-11-16T02:45:55Z\",\"now\":true}"
#define BLOCKS      70U

/* What the agent of n1 believes of a block, as agent/addresses/own_blocks.c concludes it. */
enum belief { UNKNOWN, OURS, LOST, CLAIMING };

struct claimer {
	struct back *back;
	struct block_need need;
	unsigned i;
};

struct back {
	struct world *w;
	struct health *health;
	struct records *records;
	struct registration *registration;
	struct claims *claims;
	enum belief belief[BLOCKS];
	struct claimer claimers[BLOCKS];
	bool registered;
	bool tells; /* its status comes with its registration; else its record alone must save it */
};

static void block_key(char *key, unsigned i)
{
	snprintf(key, 128, P "block/default/10.1.%u.%u-28", i * 16 / 256, i * 16 % 256);
}

static bool owned_by(const struct world *w, unsigned i, const char *node)
{
	const struct store_kv *kv;
	char key[128], start[64];

	block_key(key, i);
	kv = store_fake_get(w->store, key);
	snprintf(start, sizeof(start), "{\"node\":\"%s\"", node);
	return kv && strncmp(kv->value, start, strlen(start)) == 0;
}

/* --- the other node: takes what is free, by a claim's own compare --------------------------- */

static void grab(struct world *w, unsigned i)
{
	char key[128];

	block_key(key, i);
	if (!store_fake_get(w->store, key))
		store_fake_put(w->store, key,
			       "{\"node\":\"n2\",\"pool\":\"web\",\"token\":\"n2\"}");
}

/* --- the agent that comes back -------------------------------------------------------------- */

static int64_t fence(void *arg)
{
	const struct fence *f = register_fence(((struct back *)arg)->registration);

	return f ? f->mod_revision : 0;
}

static void fence_moved(int64_t revision, void *arg)
{
	register_raised(((struct back *)arg)->registration, revision);
}

static void on_claimed(const struct claim_result *result, void *arg)
{
	struct claimer *c = arg;

	c->back->belief[c->i] = result->outcome == CLAIM_DONE    ? OURS
				: result->outcome == CLAIM_TAKEN ? LOST
								 : UNKNOWN;
}

static void claim_again(struct back *b, unsigned i)
{
	struct claimer *c = &b->claimers[i];
	struct claim claim = { .need = &c->need };
	const struct store_kv *extent = store_fake_get(b->w->store, P "extent/default/web");

	*c = (struct claimer){ .back = b, .i = i };
	strcpy(c->need.pool, "web");
	strcpy(c->need.network, "default");
	assert_int_equal(prefix_parse("10.1.0.0/16", &c->need.cidr), 0);
	c->need.block_size = 28;
	c->need.specific = true;
	assert_int_equal(prefix_nth_block(&c->need.cidr, 28, i, &c->need.block), 0);
	claim.extent_revision = extent->create_revision;
	b->belief[i] = CLAIMING;
	if (claims_claim(b->claims, &claim, on_claimed, c, NULL) < 0)
		b->belief[i] = UNKNOWN;
}

/* Every block has a pod: it is looked at, and claimed again if its key has vanished. */
static void look(struct back *b)
{
	for (unsigned i = 0; i < BLOCKS && fence(b); i++) {
		char key[128];

		if (b->belief[i] != UNKNOWN)
			continue;
		block_key(key, i);
		if (owned_by(b->w, i, "n1"))
			b->belief[i] = OURS;
		else if (store_fake_get(b->w->store, key))
			b->belief[i] = LOST;
		else
			claim_again(b, i);
	}
}

static void on_registered(const struct fence *f, void *arg)
{
	struct back *b = arg;

	b->registered = true;
	for (unsigned i = 0; i < BLOCKS; i++)
		if (b->belief[i] == OURS)
			b->belief[i] = UNKNOWN;
	if (b->tells)
		store_fake_put(b->w->store, P "status/node/n1", "{}");
}

static void on_unregistered(const char *why, void *arg)
{
	((struct back *)arg)->registered = false;
}

static void on_lost(const char *why, void *arg)
{
}

static void on_removed(const struct node_removed *removed, void *arg)
{
}

static bool holds(void *arg)
{
	return true;
}

static void come_back(struct back *b)
{
	static const struct register_handlers handlers = { on_registered, on_unregistered, on_lost,
							   holds, on_removed };
	static struct node node = { .name = "n1", .machine = "m1", .boot = "b1" };

	assert_int_equal(prefix_parse_host("192.0.2.1/24", &node.ipv4), 0);
	snprintf(node.agent.started, sizeof(node.agent.started), "2026-11-16T03:00:00Z");
	assert_int_equal(records_new(&(struct records_options){ .store = b->w->store,
								.timers = &b->w->time.base,
								.health = b->health,
								.prefix = P,
								.node = "n1",
								.minute = 60000 },
				     &b->records),
			 0);
	assert_int_equal(register_new(&(struct register_options){ .store = b->w->store,
								  .records = b->records,
								  .timers = &b->w->time.base,
								  .health = b->health,
								  .prefix = P,
								  .minute = 60000,
								  .node = &node,
								  .handlers = &handlers,
								  .arg = b },
				      &b->registration),
			 0);
	assert_int_equal(
		claims_new(&(struct claims_config){ b->w->store, P, "n1", fence, fence_moved, b },
			   &b->claims),
		0);
}

/* --- one run -------------------------------------------------------------------------------- */

static struct world *silent_node(void)
{
	struct world *w = world_begin();

	web_pool(w);
	put(w, "node/n1", NODE_VALUE);
	put(w, "node/n2", NODE_VALUE);
	for (unsigned i = 0; i < BLOCKS; i++)
		own_block(w, "n1", i, true);
	world_run(w);
	return w;
}

static void check(const struct world *w, const struct back *b)
{
	assert_true(b->registered);
	assert_true(has(w, "node/n1"));
	for (unsigned i = 0; i < BLOCKS; i++) {
		/* What it believes to be its own is; and everything has one owner. */
		assert_int_equal(b->belief[i], owned_by(w, i, "n1") ? OURS : LOST);
		assert_true(owned_by(w, i, "n1") || owned_by(w, i, "n2"));
	}
}

/* Comes back so many steps after the removal, or before it; whether the reclaim was still under way
 * then. */
static bool run(int stop, bool greedy, bool tells, unsigned *ret_lost)
{
	struct world *w = silent_node();
	struct back b = { .w = w, .tells = tells };
	bool under_way = true;

	assert_int_equal(health_new(NULL, NULL, &b.health), 0);
	if (stop < 0)
		come_back(&b);
	for (int i = stop; i < 0; i++)
		world_step(w);
	put(w, "removed/n1", REMOVED_NOW);
	for (int i = 0; i < stop && under_way; i++)
		under_way = world_step(w);
	if (stop >= 0)
		come_back(&b);
	for (unsigned n = 0; n < 20000; n++) {
		bool stepped = world_step(w);

		for (unsigned i = 0; greedy && i < BLOCKS; i++)
			grab(w, i);
		look(&b);
		if (!stepped && b.registered)
			break;
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		grab(w, i);
	world_pass(w, 300);
	look(&b);
	world_pass(w, 10);
	check(w, &b);
	*ret_lost = 0;
	for (unsigned i = 0; i < BLOCKS; i++)
		*ret_lost += b.belief[i] == LOST;
	claims_free(b.claims);
	register_free(b.registration);
	records_free(b.records);
	health_free(b.health);
	world_end(w);
	return under_way;
}

static void it_returns_at_any_moment(void **unused)
{
	unsigned lost, none = 0, some = 0, all = 0;
	int stop = -12;

	for (bool under_way = true; under_way;) {
		under_way = run(stop, true, false, &lost);
		none += lost == 0;
		some += lost > 0 && lost < BLOCKS;
		all += lost == BLOCKS;
		run(stop, true, true, &lost);
		assert_true(stop++ < 10000);
	}
	print_message("%d moments: nothing lost in %u, some in %u, all in %u\n", stop + 12, none,
		      some, all);
	/* All three were met: before, in the midst, and after the last block was taken. */
	assert_true(none && some && all);
}

/* Nobody else wants them: it gets back what it had. */
static void nobody_else_wants_them(void **unused)
{
	unsigned lost;
	int stop = -12;

	while (run(stop, false, stop & 1, &lost)) {
		assert_int_equal(lost, 0);
		stop++;
	}
}

/* --- replies and requests of the reclaim that are lost or come late ------------------------- */

static void run_with_fault(unsigned nth, enum store_fake_fate fate, bool returns)
{
	struct world *w = silent_node();
	struct back b = { .w = w };

	put(w, "removed/n1", REMOVED_NOW);
	store_fake_next(w->store, STORE_FAKE_WRITE, P, nth, STORE_FAKE_PASS);
	store_fake_next(w->store, STORE_FAKE_WRITE, P, 1, fate);
	for (unsigned i = 0; i < 1000 && store_fake_faults_left(w->store); i++)
		if (!world_step(w))
			break;
	assert_int_equal(health_new(NULL, NULL, &b.health), 0);
	if (returns) {
		come_back(&b);
		for (unsigned n = 0; n < 20000 && (world_step(w) || !b.registered); n++)
			look(&b);
	}
	store_fake_wake(w->store);
	for (unsigned n = 0; n < 1000; n++) {
		world_pass(w, 1);
		if (returns)
			look(&b);
		if (n > 20)
			break;
	}
	if (returns) {
		check(w, &b);
	} else {
		assert_false(has(w, "removed/n1"));
		expect_range(w, "host/n1/", "");
		for (unsigned i = 0; i < BLOCKS; i++)
			assert_false(owned_by(w, i, "n1"));
	}
	claims_free(b.claims);
	register_free(b.registration);
	records_free(b.records);
	health_free(b.health);
	world_end(w);
}

static void lost_and_late_transactions_of_the_reclaim(void **unused)
{
	static const enum store_fake_fate fates[] = { STORE_FAKE_LOSE_REPLY,
						      STORE_FAKE_LOSE_REQUEST, STORE_FAKE_LATE };

	for (unsigned nth = 0; nth < 4; nth++)
		for (unsigned f = 0; f < ARRAY_SIZE(fates); f++) {
			run_with_fault(nth, fates[f], false);
			run_with_fault(nth, fates[f], true);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_returns_at_any_moment),
		cmocka_unit_test(nobody_else_wants_them),
		cmocka_unit_test(lost_and_late_transactions_of_the_reclaim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
