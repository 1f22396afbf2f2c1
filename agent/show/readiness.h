/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the agent can do its work, input by input, with the reason for each that is not there.
 *
 *   etcd, registration, watches, kernel, BIRD -> [readiness] -> /readyz, status
 *
 * Pure. What is needed decides: without it a pod could not be started here, or could not be
 * reached. The others explain: with etcd away addresses are still given, and a neighbour that is
 * down must not keep an upgrade from going on to the next node.
 */
#pragma once

#include "agent/show/status.h"
#include "lib/base/err.h"
#include "lib/daemon/health.h"
#include "lib/json/tree.h"

#define READINESS_MAX 24

struct ready_part {
	const char *name;
	bool needed;
	struct err reason; /* "": it is there */
};

struct readiness {
	struct ready_part v[READINESS_MAX];
	size_t n;
};

/* reason NULL or "": ready. */
void readiness_add(struct readiness *r, const char *name, bool needed, const char *reason);
/* Whether all that is needed is there; else the first that is not, by name. */
bool readiness_is_ready(const struct readiness *r, struct err *why);

/* "inputs": [{"name", "ready", "needed", "reason"}]. */
void readiness_inputs(const struct readiness *r, struct tree *t);
/* "notReady": the names of those that are not ready. */
void readiness_names(const struct readiness *r, struct tree *t);
/* The body of /readyz; the sentences about peers are those of health's "session/<name>". */
int readiness_json(const struct readiness *r, const struct status_bird *bird,
		   const struct health *health, struct json_object **ret);
