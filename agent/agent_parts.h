/* SPDX-License-Identifier: Apache-2.0 */
/* Inside agent/agent*.c: all that an agent consists of. */
#pragma once

#include "agent/addresses/ipam.h"
#include "agent/addresses/request_stats.h"
#include "agent/agent.h"
#include "agent/api.h"
#include "agent/bird/routing.h"
#include "agent/firewall/firewall.h"
#include "agent/node/identity.h"
#include "agent/node/network_config.h"
#include "agent/node/register.h"
#include "agent/node/report.h"
#include "agent/overlay/overlay.h"
#include "agent/records/records.h"
#include "agent/show/certificates.h"
#include "agent/show/status_watch.h"
#include "agent/static/static_routes.h"
#include "lib/daemon/health.h"
#include "lib/daemon/lifecycle.h"
#include "lib/daemon/monitor.h"
#include "lib/daemon/serve.h"
#include "lib/etcd/store_etcd.h"
#include "lib/model/keys.h"

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
	struct routing *routing; /* NULL: BIRD is not managed */
	struct registration *registration;
	struct report *report;
	struct status_watch status_watch;
	struct serve *serve;
	struct certificates *certificates;
	struct network_config *network_config;
	struct monitor *monitor; /* NULL: not over TCP */
	struct request_stats requests;
	sd_event_source *socket_watch;
	struct identity identity;
	char asked_name[NODE_NAME_TEXT]; /* by flag or host name; a pin may say otherwise */
	bool identified, compared;
	bool addresses_known, opened; /* the kernel's part may remove what is surplus */
	struct timer identify;
	char started[TIME_TEXT];
	int lock;
	const char *server; /* part of health, and flag: "etcd" or "lease-server" */
	bool connected;
	char etcd_error[256];
	char node_key[KEY_FULL_TEXT], status_key[KEY_FULL_TEXT];
};

/* agent_show.c: the text of the status record. */
int agent_report(char **ret, void *arg);
/* The status as it is, to whoever asked for it. */
void agent_answer_status(struct serve_request *request, void *arg);
/* Microseconds since etcd was last heard of; UINT64_MAX: never. */
uint64_t agent_silence(const struct agent *a);
/* Of the node's uplink; 0: unknown. */
uint32_t agent_mtu(struct agent *a);

/* Something that status shows has changed. */
void agent_changed(void *arg);

/* agent_store.c */
int agent_open_store(struct agent *a, struct err *err);
/* Name, machine and boot; the addresses too where they are pinned on this boot. */
int agent_identify(struct agent *a, struct err *err);
/* Of the timer that chooses the addresses, once etcd has told the pools. */
void agent_on_identify(void *arg);
int agent_start_registration(struct agent *a);
const struct fence *agent_fence(void *arg);
void agent_fence_moved(int64_t revision, void *arg);
const char *agent_why_unregistered(void *arg); /* "" if it is */
/* One kind of write goes well again after a refusal: whatever else was refused is tried now. */
void agent_accepted(void *arg);
uint32_t agent_promise(void *arg); /* register_promise(); 0: no registration yet */
int agent_set_promise(uint32_t seconds, void *arg);
int agent_set_recovery(const char *id, void *arg);

/* agent_overlay.c; arg is the agent. */
int agent_open_overlay(struct agent *a, struct err *err);
/* Lets the kernel's part remove what is surplus, once all is known. */
void agent_open_when_known(struct agent *a);
void agent_tunnel_changed(void *arg);
int agent_desire_overlay(struct kernel_wants *ret, void *arg);

/* agent_wire.c */
int agent_open_parts(struct agent *a, struct err *err);
