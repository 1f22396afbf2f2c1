/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lease server: leases of subnets over HTTP, for nodes that hold no credentials of etcd.
 *
 *   clients -> [lease_server] -> view (one watch of etcd), polls, jobs (transactions)
 *
 * Every controller serves, leader or not, and remembers nothing that etcd does not: a client may
 * ask one now and another next. docs/LEASES.md has the API.
 */
#pragma once

#include "controller/leases/lease_jobs.h"
#include "lib/base/metrics.h"
#include "lib/daemon/health.h"

struct lease_server;

struct lease_server_options {
	sd_event *event;
	struct timers *timers;
	struct health *health;
	struct store *store;
	const char *prefix;
	const char *listen;           /* "ADDRESS:PORT[,...]" */
	struct serve_tls_files files; /* certificate "": plain HTTP */
	uint32_t ttl;                 /* s */
	const char *operators;        /* as lease_operators_check() takes them; "": none */
	uint32_t quota;               /* leases of one client in a network */
};
/* What the options point to is borrowed. 0 or a negative errno with the sentence. */
int lease_server_new(const struct lease_server_options *options, struct lease_server **ret,
		     struct err *err);
void lease_server_free(struct lease_server *s);
AUTO_DEFINE(struct lease_server *, lease_server_free)

/* Pass on the store's notices. */
void lease_server_notice(struct lease_server *s, enum store_notice notice);
/* Reads certificate, CA and CRL again; clients that are not believed any more are cut off. */
void lease_server_reload(struct lease_server *s);
void lease_server_metrics(const struct lease_server *s, struct metrics *m);
/* As an option's check: one or more of "ADDRESS:PORT", with commas between. */
int lease_listen_check(const char *text, struct err *err);
/* Whether all of these addresses are loopback. */
bool lease_listen_is_local(const char *text);
