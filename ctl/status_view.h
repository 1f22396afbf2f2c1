/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a node for people: one line for each part, one for each problem.
 *
 *   agent's status, or what can be seen without it -> [status_view] -> tree -> out
 *
 * The tree: node, reachable, state ("ok", "settling", "warning", "error", "unreachable"), parts [{part, state,
 * about}], problems [{level, since, part, problem}]. Pure.
 */
#pragma once

#include <stdbool.h>
#include <time.h>

#include "lib/base/err.h"
#include "lib/json/json.h"

struct status_view {
	struct json_object *parts, *problems; /* arrays */
	bool failed;                          /* out of memory */
};

struct status_view status_view_new(void);
void status_view_done(struct status_view *v);

void status_part(struct status_view *v, const char *part, const char *state, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
/* since "": unknown. */
void status_problem(struct status_view *v, const char *level, const char *since, const char *part,
		    const char *fmt, ...) PRINTF_LIKE(5, 6);

/* From the reply to GET /v1/status; now: by which it tells how long something has been settling. */
void status_view_agent(struct status_view *v, struct json_object *status, time_t now);
/* "ok", "settling", or the worst level of the problems: what is merely told ("info") is none. */
const char *status_view_state(const struct status_view *v);
/* Which of the parts a part of the agent's health belongs to. */
const char *status_part_of(const char *health);
