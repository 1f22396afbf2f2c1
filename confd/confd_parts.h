/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of confd*.c. */
#pragma once

#include "confd/confd.h"
#include "confd/job.h"
#include "lib/daemon/lifecycle.h"
#include "lib/daemon/monitor.h"

struct confd {
	struct confd_settings *settings;
	int argc;
	char *const *argv;
	sd_event *event;
	struct lifecycle *lifecycle;
	struct timers *timers;
	struct health *health;   /* of the monitor alone: a job's problem is its own */
	struct monitor *monitor; /* NULL: not asked for */
	struct store *store;
	bool connected;
	struct json_object *data;
	struct job_context context;
	struct job **jobs;
	size_t n_jobs;
	struct texts bad; /* names of resources that could not be read this time */
	bool failed;      /* something that is no job's outcome */
	struct err trouble;
	sd_event_source *deadline;
};

/* confd_show.c: for the monitor; arg is the confd. */
extern const struct serve_route confd_routes[];
size_t confd_n_routes(void);
