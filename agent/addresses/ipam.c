/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/addresses/ipam.h"

#include <errno.h>
#include <string.h>

#include "agent/addresses/ipam_state.h"
#include "lib/base/backoff.h"
#include "lib/base/clock.h"

/* How long the start waits for etcd before it serves from the files of this boot. */
#define START_GRACE_MS 2000
/* How long address keys are gathered before they are written. */
#define WRITE_BEHIND_MS 25

/* --- may addresses be given? ---------------------------------------------------------------- */

bool ipam_all_listed(const struct ipam *m)
{
	for (size_t i = 0; i < INPUTS; i++)
		if (!records_in_sync(m->wants[i]))
			return false;
	return true;
}

static bool unverified(const struct ipam *m)
{
	for (size_t i = 0; i < m->owned.n; i++) {
		const struct owned *o = m->owned.v[i];

		if (!o->revision && !o->copy.lost && !o->restored && !o->cut_apart && !o->damaged)
			return true;
	}
	return false;
}

bool ipam_holds(const struct ipam *m)
{
	return ipam_authority_left(m) > 0;
}

/* A registered agent whose proof is missing or too old: the next look, under way, may bring one. */
bool ipam_is_proving(const struct ipam *m)
{
	return m->connected && ipam_all_listed(m) && m->o.fence(m->o.arg) && !m->authority.removed;
}

/* Which proof counts now: the promise may have been lowered since. */
static struct authority authority(const struct ipam *m)
{
	struct authority a = m->authority;
	uint32_t standing = m->o.promise(m->o.arg);

	if (standing && standing < a.promise)
		a.promise = standing;
	return a;
}

int64_t ipam_authority_left(const struct ipam *m)
{
	const struct authority a = authority(m);
	int64_t now = ipam_now();

	return authority_decide(&a, now) == AUTHORITY_HELD ? authority_end(&a) - now : 0;
}

static bool has_authority(const struct ipam *m, struct err *why)
{
	const struct authority a = authority(m);
	const char *reason = m->o.reason(m->o.arg);

	if (!reason[0])
		reason = m->unproven.text;
	switch (authority_decide(&a, ipam_now())) {
	case AUTHORITY_HELD:
		return true;
	case AUTHORITY_REMOVED:
		err_set(why, 0,
			"node %s was removed from the cluster; delete the key removed/%s to take "
			"it back",
			m->o.node, m->o.node);
		return false;
	case AUTHORITY_UNPROVEN:
		err_set(why, 0,
			"%s has not confirmed that this node's blocks are still its own%s%s",
			ipam_server(m), reason[0] ? ": " : "", reason);
		return false;
	case AUTHORITY_EXPIRED:
		err_set(why, 0,
			"%s last confirmed more than %u minutes ago that this node's blocks are "
			"its "
			"own, so they may be given to others; it gives addresses again when %s "
			"answers",
			ipam_server(m), authority_allowed(a.promise) / 60, ipam_server(m));
		return false;
	}
	return false;
}

/* With the cause: whoever started the pod sees this sentence, and not the agent's log. */
void ipam_unregistered(const struct ipam *m, struct err *why)
{
	const char *reason = m->o.reason(m->o.arg);

	err_set(why, 0,
		m->connected ? "this node is not registered with %s%s%s"
			     : "%s cannot be reached%s%s",
		ipam_server(m), reason[0] ? ": " : "", reason);
}

/* Before it has served: what is it waiting for? */
static void starting(const struct ipam *m, const char *otherwise, struct err *why)
{
	if (m->connected && ipam_all_listed(m) && !m->o.fence(m->o.arg))
		ipam_unregistered(m, why);
	else
		err_set(why, 0, "%s %s", otherwise, ipam_server(m));
}

bool ipam_ready(struct ipam *m, struct err *why)
{
	bool known = ipam_all_listed(m) && m->o.fence(m->o.arg) && m->connected;
	const char *reason;

	if (m->damaged && !m->host_listed) {
		err_set(why, 0,
			"files of this boot are damaged, so what is in use must first be read from "
			"%s",
			ipam_server(m));
		return false;
	}
	if (!known && !m->local && !m->authority.removed) {
		if (m->connected) {
			starting(m, "it is still reading", why);
			return false;
		}
		reason = m->o.reason(m->o.arg);
		err_set(why, 0,
			"%s has not answered yet, and there is no local copy of this boot%s%s",
			ipam_server(m), reason[0] ? ": " : "", reason);
		return false;
	}
	if (!m->served && (known ? unverified(m) : !m->start_over) && !m->authority.removed) {
		starting(m, "it has just started and is asking", why);
		return false;
	}
	if (!has_authority(m, why))
		return false;
	m->served = true;
	return true;
}

void ipam_proved(struct ipam *m, int64_t sent)
{
	if (sent <= m->void_before || sent <= m->authority.proved)
		return;
	/* An agent that is killed now must not have to prove it again; later, each minute. */
	m->unsaved = m->unsaved || !m->authority.proved;
	m->authority.proved = sent;
	m->authority.promise = m->o.promise(m->o.arg);
}

void ipam_lost(struct ipam *m)
{
	m->void_before = ipam_now();
	if (!m->authority.proved)
		return;
	m->authority.proved = 0;
	/* A restart must not believe it either. */
	if (ipam_records_save(m) < 0)
		local_copy_put_records(m->copy, "");
	pass_mark(m->pass);
}

/*
 * What others may count on follows config. A lower value counts for us from before it is written:
 * the reply may be lost, or we may be killed in between.
 */
static void keep_promise(struct ipam *m)
{
	uint32_t wanted = m->inputs.reclaim_after;

	if (!records_in_sync(m->wants[INPUT_CONFIG]) || !m->o.promise(m->o.arg) ||
	    m->inputs.config_wrong || wanted == m->promised)
		return;
	if (wanted < m->authority.promise) {
		m->authority.promise = wanted;
		if (ipam_records_save(m) < 0)
			return;
	}
	if (m->o.set_promise(wanted, m->o.arg) == 0)
		m->promised = wanted;
}

int64_t ipam_fence_revision(const struct ipam *m)
{
	const struct fence *fence = m->o.fence(m->o.arg);

	return fence ? fence->mod_revision : 0;
}

/* --- the pass ------------------------------------------------------------------------------- */

static void on_write(void *arg)
{
	struct ipam *m = arg;

	behind_kick(m->behind);
}

/* A moment later: pods come in groups, and one transaction costs etcd as much as one key. */
static void write_soon(struct ipam *m)
{
	if (behind_pending(m->behind) && !m->write.set)
		timer_set(m->o.timers, &m->write, WRITE_BEHIND_MS, WRITE_BEHIND_MS);
}

static int work(void *arg)
{
	struct ipam *m = arg;
	int r = ipam_configure(m);

	if (r < 0)
		return r;
	if (m->unsaved && ipam_all_listed(m)) {
		r = ipam_records_save(m);
		if (r < 0)
			health_set(m->o.health, "files", LOG_LEVEL_ERROR,
				   "%s/records cannot be written: %s", m->o.run_dir, strerror(-r));
		else
			health_clear(m->o.health, "files");
		m->local = r == 0;
	}
	keep_promise(m);
	ipam_recovery_work(m);
	ipam_look(m);
	ipam_retry_waiting(m, NULL, NULL);
	if (!m->known && ipam_all_listed(m) && m->o.fence(m->o.arg) && !unverified(m)) {
		m->known = true;
		m->o.known(m->o.arg);
	}
	ipam_tunnel_work(m);
	if (ipam_all_listed(m)) {
		ipam_restore_extents(m);
		ipam_claim_ahead(m);
		ipam_give_back(m);
		ipam_answer_requests(m);
	}
	ipam_tell(m);
	write_soon(m);
	return r;
}

static void on_ripe(void *arg)
{
	struct ipam *m = arg;

	pass_mark(m->pass);
}

static void on_start_over(void *arg)
{
	struct ipam *m = arg;

	if (m->start_over)
		return;
	m->start_over = true;
	if (m->local && !m->connected)
		log_warning("ipam", "%s does not answer: serving from the files of this boot",
			    ipam_server(m));
	pass_mark(m->pass);
}

/* A restart must know what was proven, and when; and a proof is due. */
static void on_heard_time(void *arg)
{
	struct ipam *m = arg;

	if (m->connected && ipam_all_listed(m) && ipam_records_save(m) < 0)
		log_debug("ipam", "%s/records cannot be written", m->o.run_dir);
	ipam_released_sweep(m);
	/* Without an overlay nobody watches the block keys: one that is spoilt is found so. */
	ipam_look_at_blocks(m);
	timer_set(m->o.timers, &m->heard, m->o.minute, m->o.minute / 2);
}

/* --- from the store and the registration ---------------------------------------------------- */

void ipam_look_at_blocks(struct ipam *m)
{
	m->prove = true;
	for (size_t i = 0; i < m->owned.n; i++)
		m->owned.v[i]->verify = true;
	pass_mark(m->pass);
}

void ipam_registered(struct ipam *m)
{
	ipam_retry(m);
	ipam_look_at_blocks(m);
}

void ipam_retry(struct ipam *m)
{
	if (m->write_refusals)
		timer_clear(m->o.timers, &m->write);
	timer_clear(m->o.timers, &m->refused);
	ipam_on_again(m);
}

void ipam_removed(struct ipam *m, bool removed)
{
	m->authority.removed = removed;
	/* What was proven before the removal proves nothing after it. */
	if (removed)
		ipam_lost(m);
	m->prove = true;
	pass_mark(m->pass);
}

void ipam_notice(struct ipam *m, enum store_notice notice)
{
	switch (notice) {
	case STORE_WATCHING:
		m->connected = true;
		ipam_retry(m);
		m->refusals = m->write_refusals = m->look_failures = 0;
		ipam_look_at_blocks(m);
		break;
	case STORE_TROUBLE:
		m->connected = false;
		/* Nobody answers: no need to wait any longer before the files are taken. */
		on_start_over(m);
		break;
	case STORE_CLUSTER_CHANGED:
	case STORE_REVISION_WENT_BACK:
		ipam_went_back(m);
		behind_restart(m->behind);
		break;
	}
	pass_mark(m->pass);
}

/* --- life ----------------------------------------------------------------------------------- */

static int64_t claims_fence(void *arg)
{
	return ipam_fence_revision(arg);
}

static void claims_fence_moved(int64_t revision, void *arg)
{
	struct ipam *m = arg;

	m->o.fence_moved(revision, m->o.arg);
}

/* If it was the fence, the registration is being looked at by its own module. */
static void behind_refused(const struct store_reply *reply, void *arg)
{
	struct ipam *m = arg;
	uint64_t delay = backoff_refused_ms(&m->write_refusals);

	if (reply->err)
		health_set(m->o.health, "address-records", LOG_LEVEL_WARNING,
			   "etcd lacks changes of this node's address records; pods are not "
			   "affected: %s",
			   reply->text);
	timer_set(m->o.timers, &m->write, delay, delay / 4);
}

static void behind_written(void *arg)
{
	struct ipam *m = arg;
	bool refused = m->write_refusals;

	m->write_refusals = 0;
	health_clear(m->o.health, "address-records");
	if (refused)
		m->o.accepted(m->o.arg);
}

static int make_parts(struct ipam *m)
{
	struct claims_config claims = {
		.store = m->o.store,
		.prefix = m->o.prefix,
		.node = m->o.node,
		.fence = claims_fence,
		.fence_moved = claims_fence_moved,
		.arg = m,
	};
	struct behind_config behind = {
		.store = m->o.store,
		.fence_key = m->fence_key,
		.fence = claims_fence,
		.refused = behind_refused,
		.written = behind_written,
		.arg = m,
	};
	char relative[KEY_TEXT];
	int r = key_node(relative, m->o.node);

	r = r ?: key_full(m->o.prefix, relative, m->fence_key);
	r = r ?: key_status_node(relative, m->o.node);
	r = r ?: key_full(m->o.prefix, relative, m->status_key);
	r = r ?: key_removed(relative, m->o.node);
	r = r ?: key_full(m->o.prefix, relative, m->removed_key);
	m->allocator = allocator_new();
	r = r ?: (m->allocator ? 0 : -ENOMEM);
	r = r ?: claims_new(&claims, &m->claims);
	r = r ?: behind_new(&behind, &m->behind);
	return r ?: pass_new(m->o.event, work, m, &m->pass);
}

int ipam_new(const struct ipam_options *options, struct ipam **ret, struct err *err)
{
	AUTO(ipam_free) struct ipam *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->o = *options;
	m->spool_dir = m->released_dir = -1;
	m->stale = true;
	m->authority.minute = options->minute;
	TAILQ_INIT(&m->waitings);
	m->refused_old = (struct timer){ .fn = ipam_on_refused_old, .arg = m };
	m->start = (struct timer){ .fn = on_start_over, .arg = m };
	m->heard = (struct timer){ .fn = on_heard_time, .arg = m };
	m->write = (struct timer){ .fn = on_write, .arg = m };
	m->again = (struct timer){ .fn = ipam_on_again, .arg = m };
	m->refused = (struct timer){ .fn = ipam_on_again, .arg = m };
	m->ripe = (struct timer){ .fn = on_ripe, .arg = m };
	ipam_recovery_init(m);
	r = make_parts(m);
	r = r ?: ipam_start(m, err);
	r = r ?: ipam_inputs_start(m);
	if (r < 0)
		return err && err->text[0] ? r : err_set(err, r, "addresses: %s", strerror(-r));
	timer_set(m->o.timers, &m->start, START_GRACE_MS, 0);
	timer_set(m->o.timers, &m->heard, m->o.minute, m->o.minute / 2);
	ipam_links_start(m);
	pass_open(m->pass, true);
	*ret = TAKE(m);
	return 0;
}

void ipam_free(struct ipam *m)
{
	if (!m)
		return;
	timer_clear(m->o.timers, &m->start);
	timer_clear(m->o.timers, &m->heard);
	timer_clear(m->o.timers, &m->ripe);
	timer_clear(m->o.timers, &m->mend);
	timer_clear(m->o.timers, &m->write);
	timer_clear(m->o.timers, &m->again);
	timer_clear(m->o.timers, &m->refused);
	timer_clear(m->o.timers, &m->leaks);
	timer_clear(m->o.timers, &m->unplug);
	ipam_waiting_done(m);
	timer_clear(m->o.timers, &m->refused_old);
	refusals_done(&m->refused_pods);
	ipam_spool_done(m);
	ipam_released_close(m);
	ipam_inputs_done(m);
	ipam_recovery_free(m);
	ipam_host_done(m);
	ipam_blocks_done(m);
	behind_free(m->behind);
	claims_free(m->claims);
	allocator_free(m->allocator);
	ipam_inputs_free(m);
	local_copy_close(m->copy);
	pass_free(m->pass);
	free(m);
}
