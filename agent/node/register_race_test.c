/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies and events come on two connections: a reply may be overtaken by what happened after it.
 * The fake store delivers in order, so a store in front of it holds the replies to writes back.
 */
#include <errno.h>

#include "agent/node/register_world.h"
#include "lib/store/store_ops.h"

struct slow {
	struct store base;
	struct store *inner;
	struct store_call call;
	store_reply_fn *fn;
	void *arg;
	bool held, succeeded;
	int64_t revision;
};

static struct slow slow;

static void on_inner(const struct store_reply *reply, void *arg)
{
	slow.held = true;
	slow.succeeded = reply->succeeded;
	slow.revision = reply->revision;
}

static void forget(struct store_call *call)
{
	slow.held = false;
	slow.fn = NULL;
}

static int slow_txn(struct store *s, const struct store_txn *txn, uint32_t timeout_ms,
		    store_reply_fn *fn, void *arg, struct store_call **ret_call)
{
	if (txn->n_compares == 0)
		return store_txn(slow.inner, txn, timeout_ms, fn, arg, ret_call);
	slow.fn = fn;
	slow.arg = arg;
	*ret_call = &slow.call;
	return store_txn(slow.inner, txn, timeout_ms, on_inner, NULL, NULL);
}

static int slow_watch(struct store *s, const char *key, const char *range_end,
		      const struct store_watch_handlers *handlers, void *arg,
		      struct store_watch **ret)
{
	return store_watch(slow.inner, key, range_end, handlers, arg, ret);
}

static const struct store_ops slow_ops = { .txn = slow_txn, .watch = slow_watch };

static void deliver(void)
{
	const struct store_reply reply = { .text = "",
					   .succeeded = slow.succeeded,
					   .revision = slow.revision };

	assert_true(slow.held);
	slow.held = false;
	slow.fn(&reply, slow.arg);
}

/* Runs to the reply that is held back, lets the test interfere, and on to the end. */
static void interfere(const char *value, const char *want)
{
	struct world w;
	struct agent a;

	world_open(&w);
	slow = (struct slow){ .base.ops = &slow_ops, .inner = w.store, .call.cancel = forget };
	w.store = &slow.base;
	agent_start(&w, &a, "m1", "b1", "1");
	w.store = slow.inner;
	store_fake_run(w.store);
	if (value)
		store_fake_put(w.store, NODE_KEY, value);
	else
		store_fake_delete(w.store, NODE_KEY, NULL);
	store_fake_run(w.store);
	expect(&w, "");
	deliver();
	store_fake_run(w.store);
	while (slow.held) {
		deliver();
		store_fake_run(w.store);
	}
	expect(&w, want);
	agent_stop(&a);
	world_close(&w);
}

static void a_deletion_that_overtakes_the_reply_is_not_overlooked(void **unused)
{
	interfere(NULL, "m1 registered\n");
}

static void an_edit_that_overtakes_the_reply_is_not_overlooked(void **unused)
{
	interfere("{}", "m1 registered\n");
}

static void a_take_over_that_overtakes_the_reply_is_never_told_as_registered(void **unused)
{
	struct world w;
	struct agent a;

	world_open(&w);
	slow = (struct slow){ .base.ops = &slow_ops, .inner = w.store, .call.cancel = forget };
	w.store = &slow.base;
	agent_start(&w, &a, "m1", "b1", "1");
	w.store = slow.inner;
	store_fake_run(w.store);
	store_fake_put(w.store, NODE_KEY, "{\"ipv4\":\"10.0.0.2/24\",\"machine\":\"m2\"}");
	store_fake_put(w.store, STATUS_KEY, "{}");
	store_fake_run(w.store);
	deliver();
	store_fake_run(w.store);
	expect(&w, "");
	assert_null(register_fence(a.registration));
	assert_non_null(strstr(register_reason(a.registration), "belongs to machine m2"));
	agent_stop(&a);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_deletion_that_overtakes_the_reply_is_not_overlooked),
		cmocka_unit_test(an_edit_that_overtakes_the_reply_is_not_overlooked),
		cmocka_unit_test(a_take_over_that_overtakes_the_reply_is_never_told_as_registered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
