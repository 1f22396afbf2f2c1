/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long random walks: some nodes claim and release some blocks while replies
 * are lost, members stop and wake, and the connection comes and goes. What
 * each node believes after each answer must be what etcd's history says, and
 * no late request may ever change it. The seeds are fixed: a failure repeats.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/store/store_fake.h"

#define NODES      4
#define BLOCKS     5
#define STEPS      6000
#define TOKENS_MAX STEPS

struct walk {
	struct store *store;
	uint64_t random;
	/* A node and a block, with one request at a time. */
	struct pair {
		struct walk *walk;
		char node[24], block[24];
		char belief[16]; /* the token by which the node owns the block, or "" */
		char wanted[16];
		bool busy, releasing;
	} pairs[NODES][BLOCKS];
	/* Claims that were refused: their tokens must never appear. */
	struct refused {
		char block[24], token[16];
	} refused[TOKENS_MAX];
	size_t n_refused;
	unsigned tokens;
	unsigned outcomes[2][2][2]; /* releasing, lost, applied */
};

static uint64_t dice(struct walk *w, uint64_t sides)
{
	/* xorshift64* */
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return w->random * 0x2545F4914F6CDD1DULL % sides;
}

static const char *owner_token(const struct walk *w, const char *block)
{
	const struct store_kv *kv = store_fake_get(w->store, block);

	return kv ? kv->value : "";
}

/* --- answers -------------------------------------------------------------------------------- */

static void claim_settled(struct pair *p, bool applied)
{
	struct walk *w = p->walk;

	assert_int_equal(store_fake_ever(w->store, p->block, p->wanted), applied);
	if (applied) {
		assert_string_equal(owner_token(w, p->block), p->wanted);
		strcpy(p->belief, p->wanted);
	} else {
		strcpy(w->refused[w->n_refused].block, p->block);
		strcpy(w->refused[w->n_refused++].token, p->wanted);
	}
}

static void release_settled(struct pair *p, bool applied)
{
	if (applied) {
		assert_string_not_equal(owner_token(p->walk, p->block), p->belief);
		p->belief[0] = '\0';
	} else {
		assert_string_equal(owner_token(p->walk, p->block), p->belief);
	}
}

static void on_settled(const struct store_settled *settled, void *arg)
{
	struct pair *p = arg;
	bool applied = settled->outcome == STORE_APPLIED;

	p->busy = false;
	if (settled->outcome == STORE_UNSETTLED)
		return;
	assert_int_equal(settled->reply->err, 0);
	p->walk->outcomes[p->releasing][settled->was_lost][applied]++;
	if (p->releasing)
		release_settled(p, applied);
	else
		claim_settled(p, applied);
}

/* --- what nodes do -------------------------------------------------------------------------- */

static void start_claim(struct pair *p)
{
	struct walk *w = p->walk;
	const struct store_compare compares[] = {
		{ .key = p->block, .target = STORE_VERSION },
		{ .key = p->node,
		  .target = STORE_MOD_REVISION,
		  .number = store_fake_get(w->store, p->node)->mod_revision },
	};
	struct store_op put = { STORE_PUT, .key = p->block, .value = p->wanted };
	const struct store_txn txn = {
		.compares = compares, .n_compares = 2, .success = &put, .n_success = 1
	};

	snprintf(p->wanted, sizeof(p->wanted), "t%u", ++w->tokens);
	put.value_len = strlen(p->wanted);
	p->busy = true;
	p->releasing = false;
	assert_int_equal(store_txn_settled(w->store, &txn, 1, 0, on_settled, p, NULL), 0);
}

static void start_release(struct pair *p)
{
	struct walk *w = p->walk;
	const struct store_compare unchanged = {
		.key = p->block,
		.target = STORE_MOD_REVISION,
		.number = store_fake_get(w->store, p->block)->mod_revision,
	};
	const struct store_op delete = { STORE_DELETE, .key = p->block };
	const struct store_txn txn = {
		.compares = &unchanged, .n_compares = 1, .success = &delete, .n_success = 1
	};

	p->busy = true;
	p->releasing = true;
	assert_int_equal(store_txn_settled(w->store, &txn, 0, 0, on_settled, p, NULL), 0);
}

static void act(struct walk *w)
{
	struct pair *p = &w->pairs[dice(w, NODES)][dice(w, BLOCKS)];

	if (p->busy)
		return;
	if (p->belief[0])
		start_release(p);
	else
		start_claim(p);
}

/* --- what happens to them ------------------------------------------------------------------- */

static void misfortune(struct walk *w)
{
	static const enum store_fake_fate fates[] = { STORE_FAKE_LOSE_REPLY,
						      STORE_FAKE_LOSE_REQUEST, STORE_FAKE_LATE,
						      STORE_FAKE_LATE, STORE_FAKE_HOLD };
	struct pair *p = &w->pairs[dice(w, NODES)][dice(w, BLOCKS)];

	switch (dice(w, 12)) {
	case 0:
		store_fake_wake(w->store);
		break;
	case 1:
		store_fake_connect(w->store, dice(w, 3) > 0);
		break;
	case 2:
		/* The node's agent writes its own record. */
		store_fake_put(w->store, p->node, "again");
		break;
	case 3:
	case 4:
		store_fake_release(w->store);
		break;
	case 5:
		store_fake_next(w->store, STORE_FAKE_WRITE, NULL, (unsigned)dice(w, 3),
				STORE_FAKE_PASS);
		break;
	default:
		store_fake_next(w->store, STORE_FAKE_WRITE, NULL, 1,
				fates[dice(w, ARRAY_SIZE(fates))]);
	}
}

/* --- what must always hold ------------------------------------------------------------------ */

static void nobody_owns_twice(const struct walk *w)
{
	for (int b = 0; b < BLOCKS; b++) {
		int owners = 0;

		for (int n = 0; n < NODES; n++) {
			const struct pair *p = &w->pairs[n][b];

			/* While a release is under way the block may be another's already. */
			if (!p->belief[0] || p->busy)
				continue;
			owners++;
			assert_string_equal(owner_token(w, p->block), p->belief);
		}
		assert_true(owners <= 1);
	}
}

static void all_is_quiet(struct walk *w)
{
	store_fake_forget_faults(w->store);
	store_fake_connect(w->store, true);
	store_fake_release(w->store);
	store_fake_run(w->store);
	assert_int_equal(store_fake_stats(w->store).calls, 0);
	store_fake_wake(w->store);
	nobody_owns_twice(w);
	/* And nothing is owned by nobody, which would be a leak. */
	for (int b = 0; b < BLOCKS; b++) {
		const char *token = owner_token(w, w->pairs[0][b].block);
		bool known = !*token;

		for (int n = 0; n < NODES; n++)
			known = known || !strcmp(w->pairs[n][b].belief, token);
		assert_true(known);
	}
	for (size_t i = 0; i < w->n_refused; i++)
		assert_false(store_fake_ever(w->store, w->refused[i].block, w->refused[i].token));
}

static void walk(struct walk *w, uint64_t seed)
{
	w->random = seed;
	w->store = store_fake_new();
	for (int n = 0; n < NODES; n++)
		for (int b = 0; b < BLOCKS; b++) {
			struct pair *p = &w->pairs[n][b];

			p->walk = w;
			snprintf(p->node, sizeof(p->node), "node/%d", n);
			snprintf(p->block, sizeof(p->block), "block/%d", b);
			store_fake_put(w->store, p->node, "here");
		}
	for (int i = 0; i < STEPS; i++) {
		uint64_t steps = dice(w, 4);

		act(w);
		if (dice(w, 3) == 0)
			misfortune(w);
		while (steps--)
			store_fake_step(w->store);
		nobody_owns_twice(w);
	}
	all_is_quiet(w);
}

static void belief_and_history_agree_on_every_walk(void **unused)
{
	static const uint64_t seeds[] = { 1, 2, 3, 20251, 777777, 0xfeedULL };
	unsigned total[2][2][2] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		struct walk *w = calloc(1, sizeof(*w));

		assert_non_null(w);
		walk(w, seeds[i]);
		for (int k = 0; k < 8; k++)
			total[k / 4][k / 2 % 2][k % 2] += w->outcomes[k / 4][k / 2 % 2][k % 2];
		store_free(w->store);
		free(w);
	}
	/* A walk that never met a case proves nothing about it. */
	for (int k = 0; k < 8; k++) {
		print_message("%s, %s, %s: %u\n", k / 4 ? "release" : "claim",
			      k / 2 % 2 ? "lost" : "not lost", k % 2 ? "applied" : "refused",
			      total[k / 4][k / 2 % 2][k % 2]);
		/* Nobody but its owner touches a block: a release is refused only after a loss. */
		if (k != 4)
			assert_true(total[k / 4][k / 2 % 2][k % 2] > 50);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(belief_and_history_agree_on_every_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
