/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BIRD on this node: what it should run, made from the records, and what it does run.
 *
 *   records ─> desired_bird (pure) ─> templates ─> publish: check, rename, configure
 *   bird_control <─ show protocols ─> routing_compare (pure) ─> mend once, health, status
 *
 * Nothing is rendered before all records are known. The first change goes out at
 * once, then at most four a second. What restarts a session or withdraws a block is
 * logged before it happens. Every eight seconds, and whenever BIRD appears, what runs
 * is compared with what was meant; a difference is answered by one reload, and if it
 * stays, by a sentence in health, never by a second reload.
 */
#pragma once

#include "agent/node/identity.h"
#include "agent/records/records.h"
#include "agent/show/metrics.h"
#include "agent/show/readiness.h"
#include "agent/show/status.h"
#include "lib/base/timers.h"
#include "lib/daemon/health.h"

/* The first line of every bird.conf that is ours. */
#define BIRD_CONFIG_MARK "# Rendered by roost"

struct kernel;
struct routing;

struct routing_options {
	sd_event *event;
	struct timers *timers;
	struct health *health;
	struct records *records; /* borrowed */
	struct kernel *kernel;   /* likewise: BIRD learns blocks from it */
	const char *bird_socket, *bird_config, *bird_program;
	const char *template_dir; /* the shipped ones; the operator's go before them */
	const char *secret_dirs;  /* where records may name password files, ':' between */
	/* Own blocks that are routed, for `announce: static`; free() ret->v. */
	int (*blocks)(struct prefixes *ret, void *arg);
	/* Whether a pool whose record is gone was not announced. */
	bool (*silent)(const char *pool, void *arg);
	/* Something that status shows has changed. */
	void (*changed)(void *arg);
	/* What routing_refresh() asked for is there, or cannot be had. */
	void (*refreshed)(void *arg);
	void *arg;
};

int routing_new(const struct routing_options *options, struct routing **ret, struct err *err);
void routing_free(struct routing *r);
AUTO_DEFINE(struct routing *, routing_free)

/* Who we are; copied. Nothing is rendered before. */
void routing_set_self(struct routing *r, const struct identity *self);
/* Own blocks are different, or templates and password files are to be read again. */
void routing_changed(struct routing *r);
/* Once: config, pools and extents have been listed. */
void routing_inputs_known(struct routing *r);
/*
 * A route of BIRD's went from the kernel, by the socket with this number of netlink. If BIRD still
 * means it to be there, it is asked to export all of them again: its own scan comes seconds later.
 */
void routing_route_lost(struct routing *r, const struct prefix *dst, uint32_t port);

struct serve_request;
/* GET /v1/bird/config. */
void routing_show_config(struct routing *r, struct serve_request *request);
void routing_readiness(struct routing *r, struct readiness *ret);
void routing_metrics(struct routing *r, struct metrics *ret);
struct metrics_pass routing_passes(const struct routing *r);
/* Asks BIRD how its sessions are at this moment. false: it is away, and nothing will come. */
bool routing_refresh(struct routing *r);
/* Whether this block of ours is among those that BIRD tells its neighbours. */
bool routing_announces(const struct routing *r, const struct prefix *block);
/* Valid until the loop goes on. */
void routing_status(struct routing *r, struct status_bird *ret);
