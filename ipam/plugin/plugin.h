/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roost-ipam: the IPAM plugin in front of the agent.
 *
 *   main plugin (roost, ptp, bridge, ...) -> stdin, CNI_* -> [roost-ipam] -> agent.sock
 *
 * Thin: it turns configuration and environment into one request of
 * docs/API.md and the reply into a result. It keeps no state; who owns an
 * address is for the agent to know. DEL always succeeds: without an agent it leaves a
 * note in the spool.
 */
#pragma once

#include <json-c/json.h>

#include "lib/cni/cni_main.h"
#include "lib/cni/cni_want.h"

cni_verb_fn plugin_add, plugin_del, plugin_check, plugin_gc, plugin_status;

/*
 * One request, answered before the deadline. 0 and the reply (json_put() it) if the agent said 200;
 * else negative with e filled: the agent's own code and sentence, or why there is no answer:
 * -ENOTCONN for no agent at all, -ETIMEDOUT for none in time.
 */
int plugin_ask(const struct cni_call *call, const char *method, const char *path, const char *body,
	       const struct deadline *deadline, struct json_object **ret, struct cni_error *e);

/*
 * STATUS: the agent's answer at this path; codes 50 and 51 only. An agent that served before and is
 * away for a short time, as in an upgrade, counts as one that answers: lib/cni/cni_away.h.
 */
int plugin_ask_status(const struct cni_call *call, const char *path, struct cni_error *e);

/* What an attachment was given. */
struct plugin_given {
	struct json_object *reply; /* NULL: the configuration gave it, nobody was asked */
	struct cni_result result;  /* its texts are the reply's and the configuration's */
	bool existing;             /* it had them before this call */
	size_t n_fixed;            /* addresses at the end that the configuration itself gave */
	uint32_t mtu;              /* of the node's uplink; 0: not known */
};
void plugin_given_done(struct plugin_given *given);

/* Addresses, routes and DNS for this attachment. After a failure nothing is held by this call. */
int plugin_assign(const struct cni_call *call, const struct cni_want *want,
		  struct plugin_given *ret, struct cni_error *e);
/* Gives back what this very call was given; an attachment that was there before stays. */
void plugin_undo(const struct cni_call *call, const struct plugin_given *given);
/* Gives the attachment's addresses back, now or by a note; never fails. */
void plugin_release(const struct cni_call *call, const struct deadline *deadline);
