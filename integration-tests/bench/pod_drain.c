/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node is drained while pods still come: many DELs, a few at a time, until the last link is
 * really gone, and ADDs at a steady pace meanwhile, held against the same ADDs before it.
 *
 * The ADDs are begun by the clock, whether or not the former ones have ended, as pods that
 * are scheduled do not wait for each other.
 */
#include "integration-tests/bench/pod_bench.h"

#include <time.h>

struct drain {
	struct bench *bench;
	struct pod *leaving, *coming; /* coming: namespaces - drained */
	size_t begun, ended, came;
	struct figures *adds; /* for the times of those that come */
};

static size_t coming_max(const struct bench *b)
{
	return b->namespaces - b->drained;
}

/* tags below drained are of those that leave. */
static void one_ended(size_t tag, double ms, void *arg)
{
	struct drain *d = arg;

	if (tag < d->bench->drained)
		d->ended++;
	else
		figures_push(d->adds, d->coming[tag - d->bench->drained].contestant, ms);
}

static void begin_coming(struct drain *d)
{
	pod_begin(&d->bench->pods, &d->coming[d->came], "ADD", d->bench->drained + d->came);
	d->came++;
}

static void begin_leaving(struct drain *d)
{
	while (d->begun < d->bench->drained && d->begun - d->ended < d->bench->workers) {
		pod_begin(&d->bench->pods, &d->leaving[d->begun], "DEL", d->begun);
		d->begun++;
	}
}

/* Begins those whose time has come; ms until the next one's, -1 if there is none. */
static double keep_pace(struct drain *d, size_t max, double start)
{
	while (d->came < max) {
		double wait = start + (double)(d->came * d->bench->pace_ms) - now_ms();

		if (wait > 0)
			return wait;
		begin_coming(d);
	}
	return -1;
}

/* Until records of the former pods are written, block claims settled: nothing tells when. */
static void rest(void)
{
	const struct timespec second = { .tv_sec = 1 };

	nanosleep(&second, NULL);
}

static void expect_coming(struct drain *d, size_t contestant, struct figures *adds)
{
	const struct bench *b = d->bench;

	for (size_t i = 0; i < coming_max(b); i++)
		d->coming[i] = pod_new(&d->bench->pods, contestant, b->drained + i);
	d->adds = adds;
	d->came = 0;
}

static void finish_coming(struct drain *d)
{
	struct pods *p = &d->bench->pods;

	while (crowd_busy(p->crowd) > 0)
		pods_wait(p, -1, one_ended, d);
	pods_all(p, d->coming, d->came, "DEL", d->bench->workers, NULL);
	pods_settle(p);
}

/* --- before, and meanwhile ------------------------------------------------------------------ */

/* The pods that will leave are there, and nothing else goes on. */
static void add_idle(struct drain *d, size_t contestant, struct figures *idle)
{
	double start;

	expect_coming(d, contestant, idle);
	rest();
	start = now_ms();
	while (d->came < d->bench->idle)
		pods_wait(&d->bench->pods, keep_pace(d, d->bench->idle, start), one_ended, d);
	finish_coming(d);
}

/* Until the last DEL has returned and the last link is gone. */
static double drain(struct drain *d, size_t contestant, struct figures *meanwhile)
{
	struct pods *p = &d->bench->pods;
	const size_t target = p->gone + d->bench->drained;
	double start, ms;

	expect_coming(d, contestant, meanwhile);
	d->begun = d->ended = 0;
	rest();
	start = now_ms();
	while (d->ended < d->bench->drained || p->gone < target) {
		begin_leaving(d);
		pods_wait(p, keep_pace(d, coming_max(d->bench), start), one_ended, d);
	}
	ms = now_ms() - start;
	finish_coming(d);
	return ms;
}

static double drain_round(struct drain *d, size_t contestant, struct figures *idle,
			  struct figures *meanwhile)
{
	struct bench *b = d->bench;

	for (size_t i = 0; i < b->drained; i++)
		d->leaving[i] = pod_new(&b->pods, contestant, i);
	pods_all(&b->pods, d->leaving, b->drained, "ADD", b->workers, NULL);
	add_idle(d, contestant, idle);
	return drain(d, contestant, meanwhile);
}

void bench_drain(struct bench *b)
{
	AUTO(figures_free) struct figures *whole = figures_new(b->pods.n_contestants);
	AUTO(figures_free) struct figures *idle = figures_new(b->pods.n_contestants);
	AUTO(figures_free) struct figures *meanwhile = figures_new(b->pods.n_contestants);
	AUTO(free) struct pod *pods = zeroed(b->namespaces, sizeof(*pods));
	struct drain d = { .bench = b, .leaving = pods, .coming = pods + b->drained };

	for (size_t i = 0; i < b->drains * b->pods.n_contestants; i++) {
		size_t contestant = bench_turn(b, i);

		figures_push(whole, contestant, drain_round(&d, contestant, idle, meanwhile));
	}
	figures_tell(whole, "drain", b->pods.names, b->result);
	figures_tell(idle, "add_idle", b->pods.names, b->result);
	figures_tell(meanwhile, "add_meanwhile", b->pods.names, b->result);
}
