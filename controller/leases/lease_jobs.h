/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that change leases, from their decision to etcd's answer.
 *
 *   request -> [lease_jobs] -> lease_decide -> transaction -> refused: decide anew
 *                                                         -> applied: seen by the view -> answer
 *
 * A limited number is under way at a time: two thousand clients that start together are a queue,
 * not two thousand transactions at once. The answer waits until the view has seen what was done, so
 * whoever then asks this server for all leases finds his own among them.
 *
 * A client that renews again and again is answered slowly, so that it asks slowly, and its renewals
 * are reads to etcd. Health names it.
 */
#pragma once

#include "controller/leases/lease_decide.h"
#include "lib/base/timers.h"
#include "lib/daemon/health.h"
#include "lib/daemon/serve.h"

struct lease_jobs;

/* Both are borrowed. */
struct lease_server_options;
int lease_jobs_new(const struct lease_server_options *options, const struct lease_view *view,
		   struct lease_jobs **ret);
/* Those who wait are answered by their server's end. */
void lease_jobs_free(struct lease_jobs *j);

/* Takes the request and what the wish holds. */
void lease_jobs_add(struct lease_jobs *j, struct serve_request *request,
		    const struct lease_call *call, struct lease_wish *wish,
		    const struct lease_caller *caller);
/* A client was refused what belongs to another: counted, and named in health. */
void lease_jobs_forbid(struct lease_jobs *j, const struct lease_caller *caller, const char *why);
/* The view has moved on. */
void lease_jobs_look(struct lease_jobs *j);

struct lease_jobs_stats {
	uint64_t acquired, renewed, revoked, reserved; /* done */
	uint64_t refused, unavailable, forbidden;      /* answered 500, 503 and 403 */
	uint64_t repeated;                             /* renewals that changed nothing */
	uint64_t again;                                /* transactions that met a change */
	size_t waiting;
};
struct lease_jobs_stats lease_jobs_stats(const struct lease_jobs *j);

#define LEASE_CONTENT_TYPE "application/json; charset=utf-8"
