/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that is published, and the three beside it.
 *
 *   bird.conf               the target: whole at any moment, replaced by rename
 *   .bird.conf.new          the candidate, while it is checked
 *   .bird.conf.previous     the last one whose reload is known to have gone well, until the
 *                           outcome of the next is known; an empty one of mode 0: none
 *   bird.conf.before-roost  what was there before us, kept once
 *
 * All in one folder, because a configuration may include others relative to itself. A step that
 * fails leaves the target as it was. After a kill at any moment the target is the old or the new
 * one; if .previous is there, nobody knows whether it was reloaded. On anything but a tmpfs,
 * file and folder are synced.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "lib/base/err.h"

#define TARGET_SIZE_MAX (64UL * 1024 * 1024)

struct target_rules {
	const char *path; /* absolute */
	mode_t mode;
	uid_t uid; /* (uid_t)-1: ours; likewise gid */
	gid_t gid;
};

struct target {
	struct target_rules rules;
	int dir;
	char base[NAME_MAX + 1], candidate[NAME_MAX + 1], previous[NAME_MAX + 1],
		kept[NAME_MAX + 1];
	struct stat st; /* of what is there */
	bool exists;
	char *text; /* its content */
	size_t len;
};

/*
 * Looks at what is there. A symbolic link or anything else that is no regular file is refused.
 * All functions: 0 or -errno with a sentence that names the file.
 */
int target_open(const struct target_rules *rules, struct target *ret, struct err *err);
void target_done(struct target *t);

/* Content, mode and owner. */
bool target_equals(const struct target *t, const char *text, size_t len);
/* A reload was begun and its outcome is not known. */
bool target_unsettled(const struct target *t);

int target_write_candidate(const struct target *t, const char *text, size_t len, struct err *err);
/* Must have succeeded before target_swap(); apart, because a check can run meanwhile. */
int target_sync_candidate(const struct target *t, struct err *err);
void target_drop_candidate(const struct target *t);
/* The candidate's path, as a check command gets it; PATH_MAX bytes. */
const char *target_candidate_path(const struct target *t, char *text);

int target_keep_foreign(const struct target *t, struct err *err);
/* The candidate becomes the target; with settle_later the old one is kept beside it. */
int target_swap(const struct target *t, bool settle_later, struct err *err);
/* It went well: .previous is not needed any more. */
void target_settle(const struct target *t);
/* It did not: .previous is the target again. */
int target_restore(const struct target *t, struct err *err);
