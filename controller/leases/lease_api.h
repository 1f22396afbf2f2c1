/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lease API as texts: what a request means, and how answers are spelled.
 *
 *   method, path, body -> [lease_api] -> calls and wishes ... leases -> [lease_api] -> JSON
 *
 * Pure. The spellings are those of flannel's server, which clients of the day still use
 * (docs/LEASES.md). Paths are /v1/{network}/..., where "_" is the network "default"; and
 * /network/..., which means the same as /v1/_/...
 */
#pragma once

#include "lib/base/json_out.h"
#include "lib/model/model.h"

/* An expiration that never comes, as Go prints a time that was not set. */
#define LEASE_NEVER "0001-01-01T00:00:00Z"

enum lease_verb {
	LEASE_NETWORKS,     /* GET /v1/ */
	LEASE_CONFIG,       /* GET .../config */
	LEASE_WATCH,        /* GET .../leases */
	LEASE_WATCH_ONE,    /* GET .../leases/{subnet} */
	LEASE_ACQUIRE,      /* POST .../leases */
	LEASE_RENEW,        /* PUT .../leases/{subnet} */
	LEASE_REVOKE,       /* DELETE .../leases/{subnet} */
	LEASE_RESERVATIONS, /* GET .../reservations */
	LEASE_RESERVE,      /* POST .../reservations */
	LEASE_UNRESERVE,    /* DELETE .../reservations/{subnet} */
	LEASE_VERBS
};

struct lease_call {
	enum lease_verb verb;
	char network[NAME_TEXT]; /* "": of LEASE_NETWORKS */
	struct prefix subnet;    /* family 0: the path has none */
};
/* 0; -ENOENT: there is no such path or verb; -EINVAL: no network or no subnet; with a sentence. */
int lease_call_parse(const char *method, const char *path, struct lease_call *ret, struct err *err);

/* What somebody wants who asks for a lease, renews or reserves one. */
struct lease_wish {
	struct prefix subnet; /* family 0: any */
	struct address public_ip;
	char *backend_type, *backend_data; /* "": none */
	struct mac mac;                    /* of backend_data, with type vxlan; else zero */
	/* Of a renewal: until when the holder counts on it, s since 1970; INT64_MAX: always, a
	 * reservation; 0: it does not say. */
	int64_t expires;
};
void lease_wish_done(struct lease_wish *wish);
/* Bodies of LEASE_ACQUIRE, LEASE_RENEW, LEASE_RESERVE: 0, -ENOMEM, or -EINVAL with a sentence. */
int lease_wish_parse(enum lease_verb verb, const char *body, size_t len, struct lease_wish *ret,
		     struct err *err);

/* A cursor, which is a revision of etcd: 0 or -EINVAL. */
int lease_cursor_parse(const char *text, int64_t *ret);

/*
 * The lease of a block. One without a lease record belongs to a node with an agent, whose record
 * is then needed, and the settings of the overlay. *ret_attrs is what makes two leases alike for
 * those who only want to reach it: all but the expiration. 0, -ENOMEM, or -ENODATA: nothing is
 * known that would help to reach it.
 */
int lease_render(const struct block *block, const struct node *node,
		 const struct config_vxlan *vxlan, char **ret, char **ret_attrs);

struct lease_network_config {
	struct prefix network;
	struct prefix first, last; /* subnets */
	struct config_vxlan vxlan;
	bool direct_routing;
};
int lease_render_config(const struct lease_network_config *config, char **ret);
