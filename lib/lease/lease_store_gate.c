/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transactions that ask the server before they are applied here: held while it is asked, then
 * looked at again, with its answer in the mirror.
 */
#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/lease/lease_store_parts.h"
#include "lib/model/model.h"
#include "lib/model/vtep.h"

static void answered(struct lease_store *s, const struct lease_answer *answer)
{
	char shown[SHOW_TEXT];
	struct err err = { "" };
	struct lease lease;

	s->ask = NULL;
	if (answer->status != 200) {
		s->refused = true;
		err_set(&s->why, 0, "the lease server answers %ld: %s", answer->status,
			text_show(answer->body, shown));
	} else if (s->asking == ASK_RELEASE) {
		lease_mirror_forget(&s->mirror, &s->block);
	} else if (lease_read(answer->body, answer->len, &lease, &err) < 0) {
		s->refused = true;
		err_set(&s->why, 0, "the lease server's answer is not understood: %s", err.text);
	} else {
		lease.holder = s->wanted.holder;
		lease.mac = s->wanted.mac;
		s->attrs = s->wanted;
		s->acquired = true;
		lease_store_granted(s, &lease, answer->sent);
	}
	/* Asked for by name and refused, or another was given: not again at once. */
	s->not_ours = s->block;
	s->not_ours_until = clock_boottime_ns() / 1000000 + s->minute_ms;
	if (s->asking == ASK_BLOCK)
		s->refused = false;
	if (!s->refused)
		s->asking = ASK_NOTHING;
	memory_release(&s->memory);
}

static void on_answer(const struct lease_answer *answer, void *arg)
{
	answered(arg, answer);
}

static struct memory_verdict ask_first(struct lease_store *s, enum asking asking,
				       const struct prefix *block)
{
	static const char *const methods[] = {
		[ASK_ACQUIRE] = "POST", [ASK_BLOCK] = "PUT", [ASK_RELEASE] = "DELETE"
	};
	struct memory_verdict hold = { .fate = MEMORY_HOLD };
	struct lease about = s->wanted;

	/* The answer to what this one had asked before. */
	if (s->refused && s->asking == asking) {
		s->refused = false;
		s->asking = ASK_NOTHING;
		return (struct memory_verdict){ .err = -EIO, .text = s->why.text };
	}
	if (s->ask)
		return hold;
	s->refused = false;
	s->asking = asking;
	s->block = block ? *block : (struct prefix){ 0 };
	if (asking != ASK_ACQUIRE)
		about.subnet = s->block;
	if (lease_store_ask(s, methods[asking], &about, on_answer, &s->ask) < 0)
		return (struct memory_verdict){ .err = -ENOMEM, .text = "out of memory" };
	return hold;
}

/* Who we are to the server, by our record. */
static int read_attrs(const struct lease_store *s, const struct store_op *op, struct lease *ret)
{
	static const struct mac none;
	AUTO_DONE(node_done) struct node node = { 0 };
	int r = node_decode(op->key + strlen(s->prefix), op->value, op->value_len, &node, NULL);

	if (r < 0)
		return r;
	*ret = (struct lease){ .holder = node.ipv4.address.family ? node.ipv4.address
								  : node.ipv6.address,
			       .mac = node.vtep.mac };
	if (memcmp(&ret->mac, &none, sizeof(none)) == 0)
		ret->mac = vtep_mac(s->node);
	return 0;
}

static struct memory_verdict on_register(struct lease_store *s, const struct store_op *op)
{
	struct lease attrs;

	/* What nobody can read is nothing that could be leased for; let it stand or fall here. */
	if (read_attrs(s, op, &attrs) < 0)
		return (struct memory_verdict){ .fate = MEMORY_PASS };
	if (s->acquired && address_compare(&attrs.holder, &s->attrs.holder) == 0 &&
	    memcmp(&attrs.mac, &s->attrs.mac, sizeof(attrs.mac)) == 0 &&
	    lease_mirror_own(&s->mirror, NULL))
		return (struct memory_verdict){ .fate = MEMORY_PASS };
	s->wanted = s->ask ? s->wanted : attrs;
	return ask_first(s, ASK_ACQUIRE, NULL);
}

/*
 * Whoever claims guesses: without a lease it gets what the server gives, with one it has that. Only
 * of a block that is in use nothing else will do.
 */
static struct memory_verdict on_claim(struct lease_store *s, const struct prefix *block)
{
	enum asking asking = ASK_ACQUIRE;
	bool holds = lease_mirror_own(&s->mirror, NULL);
	bool denied = prefix_compare(block, &s->not_ours) == 0 &&
		      clock_boottime_ns() / 1000000 < s->not_ours_until;

	/* Ours or another's: the compares show it. */
	if (lease_mirror_find(&s->mirror, block))
		return (struct memory_verdict){ .fate = MEMORY_PASS };
	if (s->acquired && !denied && s->in_use && s->in_use(s->network, block, s->arg))
		asking = ASK_BLOCK;
	if (!s->acquired || (holds && asking == ASK_ACQUIRE))
		return (struct memory_verdict){ .fate = MEMORY_REFUSE };
	s->wanted = s->ask ? s->wanted : s->attrs;
	return ask_first(s, asking, block);
}

static struct memory_verdict on_release(struct lease_store *s, const struct prefix *block)
{
	const struct lease *found = lease_mirror_find(&s->mirror, block);

	if (!found || !lease_is_own(&s->mirror, found))
		return (struct memory_verdict){ .fate = MEMORY_PASS };
	return ask_first(s, ASK_RELEASE, block);
}

struct memory_verdict lease_store_verdict(struct memory *m, enum memory_kind kind,
					  const struct store_txn *txn, const char *key)
{
	struct lease_store *s = (struct lease_store *)(void *)m;
	struct key parsed;

	for (size_t i = 0; kind == MEMORY_WRITE && i < txn->n_success; i++) {
		const struct store_op *op = &txn->success[i];

		if (op->kind == STORE_GET || op->keep_value ||
		    key_parse_full(s->prefix, op->key, &parsed) < 0)
			continue;
		if (op->kind == STORE_PUT && strcmp(op->key, s->node_key) == 0)
			return on_register(s, op);
		if (parsed.kind == KEY_BLOCK && op->kind == STORE_PUT)
			return on_claim(s, &parsed.block);
		if (parsed.kind == KEY_BLOCK && op->kind == STORE_DELETE)
			return on_release(s, &parsed.block);
	}
	return (struct memory_verdict){ .fate = MEMORY_PASS };
}
