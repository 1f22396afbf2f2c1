/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static routes on this node: an operator's records, kept in the kernel.
 *
 *   etcd: static-route/, own labels -> entries -> static_decide (pure) -> kernel's one pass
 *   kernel_view -> static_status (pure) -> static_report -> status/static-route/<name>/<node>
 *
 * Nothing is added before records, labels and pools are known, and nothing withdrawn before our own
 * statuses have been read, too. A key that was deleted is withdrawn only where etcd still knows
 * this node as it did before: what vanished with etcd's data stays in force.
 */
#pragma once

#include "agent/kernel/kernel.h"
#include "agent/node/register.h"
#include "agent/static/static_entries.h"
#include "lib/base/metrics.h"

/* 0, or -EINVAL with the sentence: the forms of --protected-subnets, --fallback-gateway-probe. */
int static_subnets_parse(const char *text, struct prefixes *ret, struct err *err);
int static_probes_parse(const char *text, struct address ret[2], struct err *err);

/* The same as checks of an option. */
int static_subnets_check(const char *text, struct err *err);
int static_probes_check(const char *text, struct err *err);

struct static_routes;

struct static_routes_options {
	struct store *store;
	struct records *records; /* borrowed */
	struct timers *timers;
	struct health *health;
	const char *prefix, *node; /* borrowed */
	uint32_t minute;           /* in ms; shorter in tests */
	uint32_t table;
	const char *protect, *probes; /* as the settings have them, checked */
	struct prefixes endpoints;    /* of etcd; copied */
	struct kernel *kernel;        /* borrowed */
	int (*pools)(struct prefix **ret, size_t *ret_n, void *arg);
	/* Something that status shows has changed. */
	void (*changed)(void *arg);
	void *arg;
};

int static_routes_new(const struct static_routes_options *options, struct static_routes **ret,
		      struct err *err);
void static_routes_free(struct static_routes *s);
AUTO_DEFINE(struct static_routes *, static_routes_free)

/* From the registration, the store and the addresses' part. */
void static_routes_registered(struct static_routes *s, const struct registration *registration);
void static_routes_notice(struct static_routes *s, enum store_notice notice);
/* etcd takes writes that it refused before. */
void static_routes_retry(struct static_routes *s);
void static_routes_pools_known(struct static_routes *s);
void static_routes_pools_changed(struct static_routes *s);

/* For the kernel's pass; see kernel.h. */
int static_routes_desire(struct static_routes *s, struct kernel_wants *ret);
void static_routes_restored(struct static_routes *s, const struct kroute *r);
void static_routes_passed(struct static_routes *s);

struct static_counts static_routes_counts(const struct static_routes *s);
void static_routes_metrics(const struct static_routes *s, struct metrics *m);
