/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roostd put together. agent.c reads top down: what follows from what, who this node is, the order
 * of the start. api.c is what it shows: the local API, the status record, metrics.
 *
 *   lock -> name and pin -> files and kernel (ipam) -> socket -> etcd: inputs, registration
 *
 * The socket is there from the first moment and says 503 with the reason until
 * addresses are served. Without a pin of this boot the node's address is chosen
 * when the pools are known, because no address of theirs may be the node's own.
 */
#pragma once

#include "agent/addresses/ipam.h"
#include "agent/addresses/request_stats.h"
#include "agent/bird/routing.h"
#include "agent/checks.h"
#include "agent/firewall/firewall.h"
#include "agent/node/identity.h"
#include "agent/node/lock.h"
#include "agent/node/network_config.h"
#include "agent/node/register.h"
#include "agent/node/report.h"
#include "agent/overlay/overlay.h"
#include "agent/records/records.h"
#include "agent/settings.h"
#include "agent/show/certificates.h"
#include "agent/show/status_watch.h"
#include "agent/static/static_routes.h"
#include "lib/daemon/health.h"
#include "lib/daemon/lifecycle.h"
#include "lib/daemon/monitor.h"
#include "lib/daemon/serve.h"
#include "lib/etcd/store_etcd.h"
#include "lib/model/keys.h"

/* More are answered with what BIRD said last. */
#define LIVE_MAX 16

struct agent {
	struct settings *settings;
	int argc;
	char *const *argv;
	sd_event *event;
	struct lifecycle *lifecycle;
	struct timers *timers;
	struct health *health;
	struct store *store;
	struct ipam *ipam;
	struct kernel *kernel;
	struct reaper *reaper;
	struct records *records;
	struct overlay *overlay;
	struct firewall *firewall;
	struct static_routes *statics;
	struct checks *checks;
	struct routing *routing; /* NULL: BIRD is not managed */
	struct registration *registration;
	struct report *report;
	struct status_watch status_watch;
	struct serve_request *live[LIVE_MAX]; /* wait for BIRD's answer */
	size_t n_live;
	struct serve *serve;
	struct certificates *certificates;
	struct network_config *network_config;
	struct monitor *monitor; /* NULL: not over TCP */
	struct request_stats requests;
	struct err unprotected; /* why an ADD was refused, while it is answered */
	sd_event_source *socket_watch;
	struct identity identity;
	char asked_name[NODE_NAME_TEXT]; /* by flag or host name; a pin may say otherwise */
	bool identified, compared;
	bool addresses_known, opened; /* the kernel's part may remove what is surplus */
	struct timer identify;
	char started[TIME_TEXT];
	struct lock lock;
	const char *server; /* part of health, and flag: "etcd" or "lease-server" */
	bool connected;
	char etcd_error[256];
	char node_key[KEY_FULL_TEXT], status_key[KEY_FULL_TEXT];
};

/* settings is borrowed and may be changed by a reload. 0 or -errno with the reason. */
int agent_new(struct settings *settings, int argc, char *const *argv, struct agent **ret,
	      struct err *err);
/* Until it is told to stop; 0 or -errno. */
int agent_run(struct agent *a);
void agent_free(struct agent *a);
AUTO_DEFINE(struct agent *, agent_free)

/* Of the node's uplink; 0: unknown. */
uint32_t agent_mtu(struct agent *a);

/* api.c. The local API's routes (docs/API.md), and those that anybody may ask, over TCP too. */
const struct serve_route *api_routes(size_t *ret_n);
const struct serve_route *api_monitor_routes(size_t *ret_n);
/* The text of the status record. */
int api_report(char **ret, void *agent);
/* BIRD has said how its sessions are: for whoever waits for that. */
void api_answer_live(void *agent);
/* The status as it is, for whoever waited for it. */
void api_answer_status(struct serve_request *request, void *agent);
