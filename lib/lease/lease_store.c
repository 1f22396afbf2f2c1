/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/lease/lease_store.h"

#include <errno.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/endpoint.h"
#include "lib/lease/lease_client.h"
#include "lib/lease/lease_mirror.h"
#include "lib/model/keys.h"
#include "lib/model/model.h"
#include "lib/model/vtep.h"
#include "lib/store/store_memory.h"

#define MINUTE_MS    60000
#define POLL_MINUTES 5
/* Steps in one go, so that a long list does not hold up a pod. */
#define STEPS_AT_ONCE 64

/* What the server is being asked for one transaction. */
enum asking { ASK_NOTHING, ASK_ACQUIRE, ASK_BLOCK, ASK_RELEASE };

struct lease_store {
	struct memory memory;
	sd_event *event;
	struct lease_client *client;
	struct lease_mirror mirror;
	char prefix[KEY_FULL_TEXT], network[NAME_TEXT], node[NODE_NAME_TEXT];
	char node_key[KEY_FULL_TEXT];
	char trouble[512], watched[512];
	sd_event_source *work, *renew;
	uint32_t minute_ms;
	uint64_t clock; /* CLOCK_BOOTTIME, s: up to here the leases in memory have run */
	/* What we are to the server: address and MAC. */
	struct lease attrs;
	bool acquired; /* the server knows these */
	/* The transaction's question under way, or answered and not yet looked at. */
	enum asking asking;
	struct prefix block;
	struct lease wanted;
	struct lease_ask *ask;
	bool refused; /* the answer was no, and the sentence says why */
	struct err why;
	struct prefix not_ours; /* a block that the server did not give when it was asked for */
	uint64_t not_ours_until;
	struct lease_ask *renewing;
	/* CLOCK_BOOTTIME, ns: a request was sent then whose answer showed our lease; it is what all
	 * that this store says rests on. 0: none yet. */
	int64_t confirmed;
	bool overdue; /* a renewal was refused: only another one confirms it again */
	struct lease_ask *checking;
	sd_event_source *check;
	struct lease planned; /* whose renewal the timer is for */
	bool (*in_use)(const char *network, const struct prefix *block, void *arg);
	void *arg;
};

static struct lease_store *store_of(struct memory *m)
{
	return (struct lease_store *)(void *)m;
}

/* --- renewals and proofs --------------------------------------------------------------------- */

#define SPREAD 256

static int64_t now_utc(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec;
}

static void plan_renewal(struct lease_store *s);

static void wake_in(struct lease_store *s, uint64_t ms)
{
	sd_event_source_set_time_relative(s->renew, ms * 1000);
	sd_event_source_set_enabled(s->renew, SD_EVENT_ONESHOT);
}

/* Of several the one that ends first; NULL: none that ends. */
static const struct lease *ends_first(const struct lease_store *s)
{
	const struct lease *first = NULL;

	for (const struct lease *l = NULL; (l = lease_mirror_own(&s->mirror, l));)
		if (l->expires && (!first || l->expires < first->expires))
			first = l;
	return first;
}

static void mirrored(struct lease_store *s, bool changed)
{
	if (changed)
		memory_changed(&s->memory);
	plan_renewal(s);
}

/* Just given or renewed, by the answer to a request that was sent then. */
static void granted(struct lease_store *s, const struct lease *lease, int64_t sent)
{
	bool changed = lease_mirror_self(&s->mirror, &lease->holder);

	s->confirmed = sent;
	s->overdue = false;
	changed |= lease_mirror_put(&s->mirror, lease);
	if (lease->expires)
		changed |= lease_mirror_lasts(&s->mirror, lease->expires - now_utc());
	s->planned = (struct lease){ 0 };
	mirrored(s, changed);
}

static void on_renewed(const struct lease_answer *answer, void *arg)
{
	struct lease_store *s = arg;
	struct err err = { "" };
	struct lease lease;

	s->renewing = NULL;
	if (answer->status == 200 && lease_read(answer->body, answer->len, &lease, &err) == 0) {
		lease.holder = s->attrs.holder;
		lease.mac = s->attrs.mac;
		granted(s, &lease, answer->sent);
		return;
	}
	s->overdue = true;
	/* Whose it is now, the list tells; if it is ours after all: again. */
	lease_client_look(s->client);
	wake_in(s, s->minute_ms);
}

static int ask_server(struct lease_store *s, const char *method, const struct lease *lease,
		      lease_answer_fn *fn, struct lease_ask **ret)
{
	char path[64] = "/leases", subnet[PREFIX_TEXT];
	AUTO(free) char *body = NULL;
	int r = 0;

	if (lease->subnet.address.family)
		snprintf(path, sizeof(path), "/leases/%s",
			 prefix_print_key(&lease->subnet, subnet));
	if (strcmp(method, "PUT") == 0)
		r = lease_print(lease, s->mirror.cut.vni, &body);
	else if (strcmp(method, "POST") == 0)
		r = lease_attrs_print(lease, s->mirror.cut.vni, &body);
	return r ?: lease_client_ask(s->client, method, path, body, fn, s, ret);
}

static int renew(sd_event_source *source, uint64_t usec, void *arg)
{
	struct lease_store *s = arg;
	const struct lease *lease = ends_first(s) ?: lease_mirror_own(&s->mirror, NULL);
	struct lease renewed;

	if (!lease || s->renewing || !s->acquired)
		return 0;
	renewed = s->attrs;
	renewed.subnet = lease->subnet;
	renewed.expires = lease->expires;
	if (ask_server(s, "PUT", &renewed, on_renewed, &s->renewing) < 0)
		wake_in(s, s->minute_ms);
	return 0;
}

static void assert_now(struct lease_store *s)
{
	if (s->acquired)
		wake_in(s, 0);
}

/*
 * At the half of what is left, so that the server's clock and ours may differ by hours; a bit
 * earlier by our name, so that nodes which came together do not renew together.
 */
static void plan_renewal(struct lease_store *s)
{
	const struct lease *lease = ends_first(s);
	int64_t left, wait;

	if (!lease || s->renewing || !s->acquired)
		return;
	if (prefix_compare(&s->planned.subnet, &lease->subnet) == 0 &&
	    s->planned.expires == lease->expires)
		return;
	s->planned = *lease;
	left = lease->expires - now_utc();
	wait = left / 2 - left / 8 * (int64_t)endpoints_start(s->node, SPREAD) / SPREAD;
	/* Never faster than each minute, whatever the clocks say. */
	wake_in(s, wait < 60 ? s->minute_ms : (uint64_t)wait * s->minute_ms / 60);
}

/* --- is it still ours? ---------------------------------------------------------------------- */

static void on_checked(const struct lease_answer *answer, void *arg)
{
	AUTO_DONE(lease_changes_done) struct lease_changes changes = { 0 };
	struct lease_store *s = arg;

	s->checking = NULL;
	if (answer->status != 200 || s->overdue ||
	    lease_changes_read(answer->body, answer->len, &changes, NULL) < 0)
		return;
	for (size_t i = 0; i < changes.n; i++)
		if (!changes.v[i].removed &&
		    address_compare(&changes.v[i].lease.holder, &s->attrs.holder) == 0 &&
		    answer->sent > s->confirmed)
			s->confirmed = answer->sent;
}

/*
 * A lease of a day is renewed after half a day: until then the server is asked whether it stands,
 * at a third of the time for which an answer counts (reclaimAfter less ten minutes,
 * agent/addresses/authority.h). Where the lease may end within that time, only a renewal confirms it.
 */
static int check(sd_event_source *source, uint64_t usec, void *arg)
{
	struct lease_store *s = arg;
	const struct lease *own = lease_mirror_own(&s->mirror, NULL);
	const struct lease *first = ends_first(s);
	int64_t counts = (int64_t)s->mirror.reclaim_after - 600; /* s */
	int64_t third = counts * s->minute_ms / 60 / 3;
	char path[64], subnet[PREFIX_TEXT];

	sd_event_source_set_time_relative(s->check, s->minute_ms * 1000ULL);
	sd_event_source_set_enabled(s->check, SD_EVENT_ONESHOT);
	if (!own || !s->acquired || s->checking || s->renewing || s->overdue ||
	    (first && first->expires - now_utc() < counts) ||
	    (int64_t)clock_boottime_ns() - s->confirmed < third * 1000000)
		return 0;
	snprintf(path, sizeof(path), "/leases/%s", prefix_print_key(&own->subnet, subnet));
	lease_client_ask(s->client, "GET", path, NULL, on_checked, s, &s->checking);
	return 0;
}

/* --- what becomes of a request --------------------------------------------------------------- */

/*
 * Transactions that ask the server before they are applied here: held while it is asked, then
 * looked at again, with its answer in the mirror.
 */

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
		granted(s, &lease, answer->sent);
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
	if (ask_server(s, methods[asking], &about, on_answer, &s->ask) < 0)
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

static struct memory_verdict verdict(struct memory *m, enum memory_kind kind,
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

/* --- steps on the loop ---------------------------------------------------------------------- */

static void wind_clock(struct lease_store *s)
{
	uint64_t now = clock_boottime_ns() / 1000000000;

	if (now == s->clock)
		return;
	memory_advance(&s->memory.own, (int64_t)(now - s->clock));
	s->clock = now;
	memory_changed(&s->memory);
}

static int on_work(sd_event_source *source, void *arg)
{
	struct lease_store *s = arg;
	unsigned n = 0;

	wind_clock(s);
	while (n < STEPS_AT_ONCE && memory_step(&s->memory))
		n++;
	memory_trim(&s->memory);
	sd_event_source_set_enabled(s->work, n == STEPS_AT_ONCE ? SD_EVENT_ON : SD_EVENT_OFF);
	return 0;
}

static void on_waiting(struct memory *m)
{
	struct lease_store *s = store_of(m);

	if (s->work)
		sd_event_source_set_enabled(s->work, SD_EVENT_ON);
}

/* --- what the client brings ----------------------------------------------------------------- */

static void on_network(const struct lease_network *network, void *arg)
{
	struct lease_store *s = arg;

	mirrored(s, lease_mirror_network(&s->mirror, network));
}

static void on_changes(const struct lease_changes *changes, void *arg)
{
	struct lease_store *s = arg;

	mirrored(s, lease_mirror_changes(&s->mirror, changes));
}

static void on_watching(const char *text, void *arg)
{
	struct lease_store *s = arg;

	wind_clock(s);
	snprintf(s->watched, sizeof(s->watched), "%s", text);
	memory_connect(&s->memory, true, true, NULL);
}

static void on_trouble(const char *text, void *arg)
{
	struct lease_store *s = arg;

	if (s->memory.online)
		assert_now(s);
	snprintf(s->trouble, sizeof(s->trouble), "%s", text);
	memory_connect(&s->memory, false, true, s->trouble);
}

/* --- the whole ------------------------------------------------------------------------------ */

static int lease_turn(struct store *base, uint32_t timeout_ms)
{
	struct lease_store *s = (struct lease_store *)base;
	int r = sd_event_run(s->event, timeout_ms * 1000ULL);

	return r < 0 ? r : 0;
}

static void lease_stats(const struct store *base, struct store_stats *ret)
{
	const struct lease_store *s = (const struct lease_store *)base;

	lease_client_stats(s->client, ret);
	ret->revision = s->memory.own.revision;
}

static void lease_free(struct store *base)
{
	struct lease_store *s = (struct lease_store *)base;

	memory_close(&s->memory);
	lease_client_free(s->client);
	sd_event_source_disable_unref(TAKE(s->work));
	sd_event_source_disable_unref(s->renew);
	sd_event_source_disable_unref(s->check);
	lease_mirror_done(&s->mirror);
	memory_done(&s->memory);
	sd_event_unref(s->event);
	free(s);
}

static const struct store_ops lease_ops = {
	.txn = memory_txn_start,
	.list = memory_list_start,
	.lease = memory_lease_start,
	.watch = memory_watch,
	.turn = lease_turn,
	.stats = lease_stats,
	.free = lease_free,
};

static int64_t lease_sent(struct memory *m)
{
	return store_of(m)->confirmed;
}

static const struct memory_hooks hooks = {
	.verdict = verdict,
	.work = on_waiting,
	.sent = lease_sent,
};

static const struct lease_client_handlers handlers = { on_network, on_changes, on_watching,
						       on_trouble };

static int make_names(struct lease_store *s, const struct lease_store_options *o)
{
	char relative[KEY_TEXT];
	int r = key_node(relative, o->node);

	snprintf(s->prefix, sizeof(s->prefix), "%s", o->prefix);
	snprintf(s->node, sizeof(s->node), "%s", o->node);
	snprintf(s->network, sizeof(s->network), "%s",
		 strcmp(o->network, "_") == 0 ? "default" : o->network);
	return r ?: key_full(s->prefix, relative, s->node_key);
}

static int make_sources(struct lease_store *s)
{
	int r = sd_event_add_defer(s->event, &s->work, on_work, s);

	if (r >= 0)
		r = sd_event_source_set_enabled(s->work, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(s->event, &s->renew, CLOCK_BOOTTIME, 0, 1000000,
					       renew, s);
	if (r >= 0)
		r = sd_event_source_set_enabled(s->renew, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(s->event, &s->check, CLOCK_BOOTTIME,
					       s->minute_ms * 1000ULL, 1000000, check, s);
	return r < 0 ? r : 0;
}

int lease_store_new(sd_event *event, const struct lease_store_options *o, struct store **ret,
		    struct err *err)
{
	struct lease_store *s = calloc(1, sizeof(*s));
	struct lease_client_options client = {
		.event = event,
		.servers = o->servers,
		.network = o->network,
		.name = o->node,
		.tls = o->tls,
		.poll_ms = POLL_MINUTES * o->minute_ms,
		.handlers = &handlers,
		.arg = s,
	};
	int r;

	if (!s)
		return -ENOMEM;
	memory_init(&s->memory, &lease_ops, &hooks);
	/* Nothing is known yet, and nobody has failed yet. */
	s->memory.online = false;
	s->memory.watched = s->watched;
	s->event = sd_event_ref(event);
	s->minute_ms = o->minute_ms ?: MINUTE_MS;
	s->in_use = o->in_use;
	s->arg = o->arg;
	s->clock = clock_boottime_ns() / 1000000000;
	r = make_names(s, o);
	lease_mirror_init(&s->mirror, &s->memory.own, s->prefix, s->network, s->node);
	if (o->address.family)
		lease_mirror_self(&s->mirror, &o->address);
	r = r ?: make_sources(s);
	r = r ?: lease_client_new(&client, &s->client, err);
	if (r < 0) {
		store_free(&s->memory.base);
		return r;
	}
	*ret = &s->memory.base;
	return 0;
}
