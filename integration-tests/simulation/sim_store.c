/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One program's way to the etcd that all of them share: lib/store/store_memory with the faults of a
 * network and of etcd's members.
 *
 * Another etcd is noticed by the first header that it sends, as lib/etcd/etcd_era.c does. A reply may be
 * what shows it: then its request has been applied already.
 */
#include "integration-tests/simulation/simulation.h"

static struct sim_store *store_of(struct memory *m)
{
	return (struct sim_store *)m;
}

static void follow(struct sim_store *s)
{
	s->resumes = SIM_NEVER;
	memory_connect(&s->memory, true, true, "the network is cut");
}

/* What a header shows. true: news are on their way. */
static bool look_at_header(struct sim_store *s)
{
	if (s->era == sim.era)
		return false;
	s->era = sim.era;
	s->known = 0;
	memory_queue(&s->memory, &s->news);
	return true;
}

static void tell_news(struct memory_task *task)
{
	struct sim_store *s = MEMORY_OWNER(task, struct sim_store, news);

	if (!s->memory.online)
		return;
	memory_watches_list(&s->memory, true);
	follow(s);
	store_notify(&s->memory.base, STORE_REVISION_WENT_BACK, "etcd went back to revision %lld",
		     (long long)s->memory.etcd->revision);
}

static struct memory_verdict verdict(struct memory *m, enum memory_kind kind,
				     const struct store_txn *txn, const char *key)
{
	static const struct memory_verdict pass = { .fate = MEMORY_PASS };
	static const struct memory_verdict hold = { .fate = MEMORY_HOLD };
	struct sim_store *s = store_of(m);

	if (kind == MEMORY_WATCH)
		return pass;
	if (s->net == NET_QUIET || (s->net == NET_DEAF && chance_once_in(&sim.chance, 2)))
		return hold;
	if (kind == MEMORY_WRITE && sim.late) {
		sim.late--;
		return (struct memory_verdict){ .fate = MEMORY_LATE };
	}
	look_at_header(s);
	if (m->etcd->revision > s->known)
		s->known = m->etcd->revision;
	if (s->net == NET_DEAF || (sim.lose && kind != MEMORY_LIST)) {
		sim.lose -= sim.lose > 0;
		return (struct memory_verdict){ .fate = MEMORY_LOSE_REPLY };
	}
	return pass;
}

static void keep_late(struct memory *m, struct memory_request *q)
{
	if (sim.n_late_requests < ARRAY_SIZE(sim.late_requests))
		sim.late_requests[sim.n_late_requests++] = memory_request_ref(q);
}

void sim_members_wake(bool apply)
{
	for (size_t i = 0; i < sim.n_late_requests; i++) {
		struct memory_answer answer;

		if (apply) {
			memory_request_apply(&sim.members, sim.late_requests[i], &answer);
			memory_answer_done(&answer);
		}
		memory_request_unref(sim.late_requests[i]);
	}
	sim.n_late_requests = 0;
}

static void sim_free(struct store *base)
{
	struct sim_store *s = (struct sim_store *)base;

	memory_close(&s->memory);
	memory_unqueue(&s->memory, &s->news);
	memory_done(&s->memory);
	free(s);
}

static void stats(const struct store *base, struct store_stats *ret)
{
	const struct sim_store *s = (const struct sim_store *)base;

	*ret = (struct store_stats){ .server = "etcd",
				     /* By which a restart learns of it, too. */
				     .cluster_id = s->era,
				     .revision = s->known,
				     .heard = 1 };
}

bool sim_store_has_work(const struct sim_store *s)
{
	return !TAILQ_EMPTY(&s->memory.tasks) || s->resumes <= sim.now;
}

bool sim_store_step(struct sim_store *s)
{
	bool did;

	if (s->resumes <= sim.now && s->memory.online) {
		if (!look_at_header(s))
			follow(s);
		return true;
	}
	did = memory_step(&s->memory);
	/* All that has happened was read. */
	if (TAILQ_EMPTY(&s->memory.tasks) && s->memory.online && s->memory.following &&
	    s->era == sim.era && s->memory.etcd->revision > s->known)
		s->known = s->memory.etcd->revision;
	return did;
}

void sim_store_connect(struct sim_store *s, enum net net)
{
	s->net = net;
	if (net == NET_WHOLE) {
		memory_release(&s->memory);
		/* The next step looks what answers, then follows. */
		memory_connect(&s->memory, true, false, NULL);
		s->resumes = sim.now;
		return;
	}
	s->resumes = SIM_NEVER;
	memory_connect(&s->memory, net != NET_CUT, false,
		       net == NET_CUT ? "the network is cut" : NULL);
}

void sim_store_break(struct sim_store *s)
{
	if (s->net != NET_WHOLE)
		return;
	memory_connect(&s->memory, true, false, NULL);
	s->resumes = sim.now + (int64_t)chance_below(&sim.chance, 5 * SEC);
}

struct sim_store *sim_store_new(struct process *p)
{
	static const struct store_ops ops = {
		.txn = memory_txn_start,
		.list = memory_list_start,
		.lease = memory_lease_start,
		.watch = memory_watch,
		.stats = stats,
		.free = sim_free,
	};
	static const struct memory_hooks hooks = { .verdict = verdict, .late = keep_late };
	struct sim_store *s = memory_must(calloc(1, sizeof(*s)));

	memory_init(&s->memory, &ops, &hooks);
	s->memory.etcd = &sim.etcd;
	s->news.run = tell_news;
	s->process = p;
	s->era = sim.era;
	s->resumes = SIM_NEVER;
	s->net = NET_WHOLE;
	return s;
}
