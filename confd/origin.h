/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which etcd a resource's file was last made from, kept over restarts.
 *
 *   good outcome -> [origin] -> <state-dir>/<resource> -> at the next start: did etcd go back?
 *
 * A file for each resource: the cluster's id, the newest revision then, and whether the file was
 * being kept. Nothing is known without one, and everything that etcd has is believed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

struct origin {
	uint64_t cluster; /* 0: nothing is remembered */
	int64_t revision;
	bool keeps;
};

/* 0 also if there is none; -errno with a sentence that names the file. */
int origin_read(const char *dir, const char *resource, struct origin *ret, struct err *err);
int origin_write(const char *dir, const char *resource, const struct origin *origin,
		 struct err *err);

/* Another cluster, or an older state of it; or it was so before and nobody has accepted that. */
bool origin_went_back(const struct origin *origin, uint64_t cluster, int64_t revision);
