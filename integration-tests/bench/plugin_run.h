/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CNI plugin run as a container runtime runs it, one or many at a time.
 *
 * The time of a run is from before its pipes and posix_spawn() to the end of the process,
 * its output read: what a runtime waits for. Every plugin gets the same treatment. One that
 * fails ends the benchmark with what it said.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/base/auto.h"

struct plugin {
	const char *path;
	const char *folders; /* CNI_PATH; NULL: the usual one */
	char *conf;
};

struct call {
	const char *verb, *container, *interface, *netns;
};

/* From a file; die() if it cannot be read. free() it. */
char *plugin_conf_read(const char *path);

/* Alone, until its end; the time in ms. */
double plugin_call(const struct plugin *p, const struct call *call);

/* Many under way, seen to as they end. */
struct crowd;
struct crowd *crowd_new(size_t room);
void crowd_free(struct crowd *c);
AUTO_DEFINE(struct crowd *, crowd_free)
size_t crowd_busy(const struct crowd *c);
/* Fewer than room must be under way. tag comes back with its end. */
void crowd_begin(struct crowd *c, const struct plugin *p, const struct call *call, size_t tag);

/*
 * Waits until something ended, fd (-1: none) can be read, or timeout_ms (negative: never) have
 * passed; each end is told. Whether fd can be read.
 */
typedef void crowd_ended_fn(size_t tag, double ms, void *arg);
bool crowd_wait(struct crowd *c, int fd, double timeout_ms, crowd_ended_fn *ended, void *arg);
