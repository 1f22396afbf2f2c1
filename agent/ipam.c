/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ipam.h"

#include <errno.h>
#include <string.h>

#include "agent/ipam_parts.h"
#include "agent/report.h"
#include "lib/clock.h"

#define SECOND 1000000000LL
/* How long the start waits for etcd before it serves from the files of this boot. */
#define START_GRACE_MS 2000
/* How long address keys are gathered before they are written. */
#define WRITE_BEHIND_MS 25
/* The controller may take a silent node's blocks after reclaimAfter; we stop before that. */
#define RECLAIM_MARGIN 600
/* How often it is asked whether our status stands again. */
#define CHECK_AGAIN_MS 50

/* --- may addresses be given? ---------------------------------------------------------------- */

static bool all_listed(const struct ipam *m)
{
	for (size_t i = 0; i < INPUTS; i++)
		if (!m->watches[i].in_sync)
			return false;
	return true;
}

/* Nanoseconds since etcd was last heard of, over restarts of the agent on this boot. */
static int64_t silence(const struct ipam *m)
{
	uint64_t us = m->o.silence(m->o.arg);

	if (us != UINT64_MAX)
		return (int64_t)us * 1000;
	return m->heard_before ? ipam_now() - m->heard_before : INT64_MAX;
}

/*
 * A cut that outlasts our status may have cost us our blocks. Etcd's first word after it proves
 * nothing, and does not end the silence: only a status that stands (from then on nobody takes
 * anything), and then our registration and each block looked at, do.
 */
static int64_t cut_for(const struct ipam *m)
{
	return m->cut_since ? ipam_now() - m->cut_since : 0;
}

static bool outlasts_status(const struct ipam *m, int64_t ns)
{
	return ns / (SECOND / 1000) * 60 / m->o.minute > REPORT_LEASE_TTL;
}

static void begin_check(struct ipam *m)
{
	if (!m->doubt || !m->connected || !m->o.fence(m->o.arg))
		return;
	if (!m->o.announced(m->o.arg)) {
		if (!m->again.set)
			timer_set(m->o.timers, &m->again, CHECK_AGAIN_MS, CHECK_AGAIN_MS);
		return;
	}
	m->doubt = false;
	m->checking = true;
	for (size_t i = 0; i < m->n_owned; i++)
		m->owned[i]->verify = m->owned[i]->unchecked = true;
}

static void end_check(struct ipam *m)
{
	for (size_t i = 0; i < m->n_owned; i++)
		if (m->owned[i]->unchecked)
			return;
	if (!m->checking)
		return;
	m->checking = false;
	m->cut_since = 0;
	log_info("ipam", "after a long time without %s every block has been looked at",
		 ipam_server(m));
}

static bool unverified(const struct ipam *m)
{
	for (size_t i = 0; i < m->n_owned; i++)
		if (!m->owned[i]->revision && !m->owned[i]->copy.lost)
			return true;
	return false;
}

bool ipam_ready(struct ipam *m, struct err *why)
{
	int64_t limit, quiet;

	if (m->removed) {
		err_set(why, 0,
			"node %s was removed from the cluster; delete the key removed/%s to take "
			"it back",
			m->o.node, m->o.node);
		return false;
	}
	if (m->connected && (m->doubt || m->checking)) {
		err_set(why, 0,
			"it was cut off from %s for more than a minute and first asks which "
			"blocks it still has",
			ipam_server(m));
		return false;
	}
	if (all_listed(m) && m->o.fence(m->o.arg) && m->connected &&
	    (m->served || !unverified(m))) {
		m->served = true;
		return true;
	}
	if (m->damaged && !m->host_listed) {
		err_set(why, 0,
			"files of this boot are damaged, so %s must tell first what is in use",
			ipam_server(m));
		return false;
	}
	if (!m->local) {
		err_set(why, 0,
			m->connected ? "it is still reading %s"
				     : "%s has not answered yet, and there is no local copy of "
				       "this boot",
			ipam_server(m));
		return false;
	}
	if (!m->served && !m->start_over) {
		err_set(why, 0, "it has just started and is asking %s", ipam_server(m));
		return false;
	}
	limit = (int64_t)(m->inputs.reclaim_after ?: 3600) - RECLAIM_MARGIN;
	quiet = silence(m);
	if (quiet < cut_for(m))
		quiet = cut_for(m);
	if (quiet / (SECOND / 1000) * 60 / m->o.minute > limit) {
		err_set(why, 0,
			"%s has been out of reach for more than %lld minutes, so this node's "
			"blocks may be given to others; it gives addresses again when %s answers",
			ipam_server(m), (long long)(limit / 60), ipam_server(m));
		return false;
	}
	m->served = true;
	return true;
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
	if (m->unsaved && all_listed(m)) {
		r = ipam_records_save(m);
		if (r < 0)
			health_set(m->o.health, "files", LOG_LEVEL_ERROR,
				   "%s/records cannot be written: %s", m->o.run_dir, strerror(-r));
		else
			health_clear(m->o.health, "files");
		m->local = r == 0;
	}
	begin_check(m);
	ipam_verify(m);
	end_check(m);
	ipam_retry_waiting(m, NULL, NULL);
	if (!m->known && all_listed(m) && m->o.fence(m->o.arg) && !unverified(m)) {
		m->known = true;
		m->o.known(m->o.arg);
	}
	ipam_tunnel_work(m);
	if (all_listed(m)) {
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

/* A restart must know how long etcd has been away. */
static void on_heard_time(void *arg)
{
	struct ipam *m = arg;

	if (m->connected && all_listed(m) && ipam_records_save(m) < 0)
		log_debug("ipam", "%s/records cannot be written", m->o.run_dir);
	ipam_released_sweep(m);
	/* Without an overlay nobody watches the block keys: one that is spoilt is found so. */
	ipam_look_at_blocks(m);
	timer_set(m->o.timers, &m->heard, m->o.minute, m->o.minute / 2);
}

/* --- from the store and the registration ---------------------------------------------------- */

void ipam_look_at_blocks(struct ipam *m)
{
	for (size_t i = 0; i < m->n_owned; i++)
		m->owned[i]->verify = true;
	pass_mark(m->pass);
}

void ipam_registered(struct ipam *m)
{
	ipam_look_at_blocks(m);
}

void ipam_removed(struct ipam *m, bool removed)
{
	m->removed = removed;
	pass_mark(m->pass);
}

void ipam_notice(struct ipam *m, enum store_notice notice)
{
	switch (notice) {
	case STORE_WATCHING:
		m->connected = true;
		if (outlasts_status(m, cut_for(m)))
			m->doubt = true;
		else if (!m->checking)
			m->cut_since = 0;
		break;
	case STORE_TROUBLE:
		m->connected = false;
		m->doubt = m->doubt || m->checking;
		m->checking = false;
		if (!m->cut_since && silence(m) != INT64_MAX)
			m->cut_since = ipam_now() - silence(m);
		/* Nobody answers: no need to wait any longer before the files are taken. */
		on_start_over(m);
		break;
	case STORE_CLUSTER_CHANGED:
	case STORE_REVISION_WENT_BACK:
		/* Nothing that was seen before counts; everything is listed anew. */
		for (size_t i = 0; i < INPUTS; i++) {
			m->watches[i].in_sync = false;
			m->watches[i].seen = 0;
		}
		for (size_t i = 0; i < m->n_owned; i++) {
			m->owned[i]->revision = 0;
			m->owned[i]->verify = true;
		}
		behind_restart(m->behind);
		break;
	}
	pass_mark(m->pass);
}

/* --- status --------------------------------------------------------------------------------- */

int ipam_pool_prefixes(const struct ipam *m, struct prefix **ret, size_t *ret_n)
{
	const struct pool_views *views = allocator_pools(m->allocator);
	struct prefix *v = calloc(views->n ?: 1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < views->n; i++)
		if (views->v[i].pool)
			v[n++] = views->v[i].cidr;
	*ret = v;
	*ret_n = n;
	return 0;
}

int ipam_extent_prefixes(const struct ipam *m, struct prefix **ret, size_t *ret_n)
{
	const struct inputs *in = &m->inputs;
	struct prefix *pools = NULL, *v;
	size_t n;
	int r = ipam_pool_prefixes(m, &pools, &n);

	if (r < 0)
		return r;
	v = reallocarray(pools, n + in->n_extents + 1, sizeof(*v));
	if (!v) {
		free(pools);
		return -ENOMEM;
	}
	for (size_t i = 0; i < in->n_extents; i++)
		v[n++] = in->extent_list[i]->cidr;
	*ret = v;
	*ret_n = n;
	return 0;
}

static uint64_t small(address_count n)
{
	return n > INT64_MAX ? INT64_MAX : (uint64_t)n;
}

int ipam_pool_status(struct ipam *m, struct status_pool **ret, size_t *ret_n)
{
	const struct pool_views *views = allocator_pools(m->allocator);
	struct status_pool *v = calloc(views->n ?: 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < views->n; i++) {
		struct pool_counts counts = allocator_pool_counts(m->allocator, views->v[i].name,
								  ipam_now());

		v[i] = (struct status_pool){
			.name = views->v[i].name,
			.blocks = counts.blocks,
			.used = small(counts.addresses.used),
			.free = small(counts.addresses.free + counts.addresses.resting),
		};
	}
	*ret = v;
	*ret_n = views->n;
	return 0;
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

static void behind_refused(void *arg)
{
	struct ipam *m = arg;

	/* The registration is being looked at by its own module; then we are called again. */
	pass_mark(m->pass);
}

static int make_parts(struct ipam *m)
{
	struct claims_config claims = {
		m->o.store, m->o.prefix, m->o.node, claims_fence, claims_fence_moved, m,
	};
	struct behind_config behind = {
		m->o.store, m->fence_key, claims_fence, behind_refused, m,
	};
	char relative[KEY_TEXT];
	int r = key_node(relative, m->o.node);

	r = r ?: key_full(m->o.prefix, relative, m->fence_key);
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
	TAILQ_INIT(&m->waitings);
	LIST_INIT(&m->claimings);
	m->start = (struct timer){ .fn = on_start_over, .arg = m };
	m->heard = (struct timer){ .fn = on_heard_time, .arg = m };
	m->write = (struct timer){ .fn = on_write, .arg = m };
	m->again = (struct timer){ .fn = ipam_on_again, .arg = m };
	m->ripe = (struct timer){ .fn = on_ripe, .arg = m };
	r = make_parts(m);
	r = r ?: ipam_start(m, err);
	r = r ?: ipam_inputs_start(m);
	if (r < 0)
		return err && err->text[0] ? r : err_set(err, r, "addresses: %s", strerror(-r));
	if (m->heard_before && outlasts_status(m, ipam_now() - m->heard_before)) {
		m->cut_since = m->heard_before;
		m->doubt = true;
	}
	timer_set(m->o.timers, &m->start, START_GRACE_MS, 0);
	timer_set(m->o.timers, &m->heard, m->o.minute, m->o.minute / 2);
	ipam_leaks_start(m);
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
	timer_clear(m->o.timers, &m->leaks);
	ipam_waiting_done(m);
	ipam_spool_done(m);
	ipam_released_close(m);
	if (m->watches[INPUT_CONFIG].ipam)
		ipam_inputs_done(m);
	ipam_index_done(m);
	ipam_blocks_done(m);
	behind_free(m->behind);
	claims_free(m->claims);
	allocator_free(m->allocator);
	ipam_inputs_free(m);
	local_copy_close(m->copy);
	pass_free(m->pass);
	free(m);
}
