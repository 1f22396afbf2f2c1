/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roost-controller, put together: the loop, etcd, the election, the keeper, what is shown.
 *
 *   settings -> [controller] -> elect -> keeper -> etcd
 *                     └-> /metrics, /healthz, /readyz
 */
#pragma once

#include "controller/keeper.h"
#include "controller/kube/kube.h"
#include "controller/leases/lease_server.h"
#include "controller/settings.h"
#include "lib/base/pass.h"
#include "lib/daemon/lifecycle.h"
#include "lib/daemon/monitor.h"

struct controller {
	struct controller_settings *settings;
	int argc;
	char *const *argv;
	sd_event *event;
	struct lifecycle *lifecycle;
	struct timers *timers;
	struct health *health;
	struct store *store;
	struct elect *elect;
	struct keeper *keeper;
	struct pass *pass;
	struct monitor *monitor;
	struct monitor *probes;     /* NULL: not asked for */
	struct lease_server *lease; /* NULL: not asked for */
	struct kube *kube;          /* while it leads, with --kubernetes */
	struct kube_nodes kube_nodes;
	struct kube_stats kube_past; /* what the clients of former leaderships counted */
	struct timer kube_again;
	char id[NODE_NAME_TEXT + 16];
	char leader[NODE_NAME_TEXT + 16]; /* "": nobody that we know of */
	bool connected, leads;
	uint64_t elections;
};

/* settings is borrowed. 0, or a negative errno with the sentence. */
int controller_new(struct controller_settings *settings, int argc, char *const *argv,
		   struct controller **ret, struct err *err);
void controller_free(struct controller *c);
AUTO_DEFINE(struct controller *, controller_free)

/* Until it is told to stop: 0 or a negative errno. */
int controller_run(struct controller *c);

/* controller_kube.c: from election to deposition, if it was asked for. */
void controller_kube_start(struct controller *c);
void controller_kube_stop(struct controller *c);
/* At the start: whether the API server could be reached at all, by the configuration. */
int controller_kube_check(struct controller *c, struct err *err);
void controller_kube_expect(const char *name, const char *uid, void *arg);
/* Counters of all leaderships; the rest is of this one. */
void controller_kube_stats(const struct controller *c, struct kube_stats *ret);

/* controller_show.c: serves /metrics, /healthz and /readyz where the settings say so. */
int controller_show(struct controller *c);
