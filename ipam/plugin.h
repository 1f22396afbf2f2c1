/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roost-ipam: the IPAM plugin in front of the agent.
 *
 *   main plugin (roost, ptp, bridge, ...) -> stdin, CNI_* -> [roost-ipam] -> agent.sock
 *
 * Thin: it turns configuration and environment into one request of
 * docs/LOCAL-API.md and the reply into a result. It keeps no state; who owns an
 * address is for the agent to know. DEL always succeeds: without an agent it leaves a
 * note in the spool.
 */
#pragma once

#include <json-c/json.h>

#include "lib/cni_main.h"

/* The agent's own limit is 8 s, so an ADD gets its answer rather than ours. */
#define ADD_DEADLINE_MS   10000U
#define DEL_DEADLINE_MS   5000U
#define CHECK_DEADLINE_MS 5000U
#define GC_DEADLINE_MS    10000U
/* STATUS is polled, and some runtimes hold a lock meanwhile. */
#define STATUS_DEADLINE_MS 1000U

cni_verb_fn plugin_add, plugin_del, plugin_check, plugin_gc, plugin_status;

/*
 * One request. 0 and the reply (json_put() it) if the agent said 200; else negative with e
 * filled: the agent's own code and sentence, or why there is no answer: -ENOTCONN for no
 * agent at all, -ETIMEDOUT for none in time.
 */
int plugin_ask(const struct cni_call *call, const char *method, const char *path, const char *body,
	       unsigned deadline_ms, struct json_object **ret, struct cni_error *e);

/* Gives the attachment's addresses back, now or by a note; never fails. */
void plugin_release(const struct cni_call *call);
