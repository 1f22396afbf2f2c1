/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text becomes a file that a daemon runs on, or the reason is known why not.
 *
 *   change -> pace -> render -> [publish]: equal? -> candidate -> check -> rename -> reload -> outcome
 *
 * On the loop; never blocks but for the disk. One publication at a time; changes that come
 * meanwhile, or faster than the pace allows, wait together and the newest state is what gets
 * published. Output equal to the file's content, mode and owner is no reload, unless the last
 * reload was interrupted. A check that refuses leaves the target alone; a reload that is refused
 * brings the previous file back; a reload that finds nobody to talk to leaves the new file for
 * when that daemon starts. A file that cannot be written is tried again after a second, and with
 * back-off up to 30 s; so is, up to five minutes, a refused reload where that is asked for. Nothing
 * else is retried by itself: say publish_changed() again.
 */
#pragma once

#include <systemd/sd-event.h>

#include "confd/target.h"
#include "lib/base/metrics.h"
#include "lib/base/names.h"

struct publish;

/* --- check and reload ----------------------------------------------------------------------- */

enum publish_answer {
	PUBLISH_ACCEPTED,
	PUBLISH_REJECTED, /* for the reason in words */
	PUBLISH_NOBODY    /* reload: there is nobody to be reloaded; the new file stays */
};
#define PUBLISH_ANSWERS (PUBLISH_NOBODY + 1)
const char *publish_answer_name(enum publish_answer answer); /* "accepted", ... */
typedef void publish_answer_fn(enum publish_answer answer, const char *words, void *answer_arg);

/* Asynchronous. start() returns 0 and answers later, once, from the loop; or -errno with the
 * sentence, which counts as rejected. After cancel() no answer comes. start NULL: nothing to do. */
struct publish_step {
	int (*start)(const char *path, publish_answer_fn *answer, void *answer_arg, void *arg,
		     struct err *err);
	void (*cancel)(void *arg);
	void *arg;
};

/* --- outcomes ------------------------------------------------------------------------------- */

enum publish_result {
	PUBLISH_NONE, /* nothing has been tried yet */
	PUBLISH_UNCHANGED,
	PUBLISH_DONE,
	PUBLISH_UNHEARD,      /* the file is there, but nobody was there to be reloaded */
	PUBLISH_UNRENDERED,   /* render() failed */
	PUBLISH_UNWRITABLE,   /* the file, or what is to be kept of the old one */
	PUBLISH_REFUSED,      /* by the check */
	PUBLISH_NOT_RELOADED, /* the reload was refused; the previous file is back */
};
#define PUBLISH_RESULTS (PUBLISH_NOT_RELOADED + 1)
const char *publish_result_name(enum publish_result result); /* "none", "unchanged", ... */

struct publish_outcome {
	enum publish_result result;
	struct err reason; /* "" for the good ones */
	char when[TIME_TEXT];
};
bool publish_failed(enum publish_result result);

/* --- publications --------------------------------------------------------------------------- */

struct publish_options {
	sd_event *event;
	struct target_rules target; /* path borrowed */
	struct publish_step check;  /* of the candidate's path */
	struct publish_step reload; /* of the target's path */
	bool retry_reload;          /* a refused one is tried again */
	/* Makes the text when its time has come; free() it. */
	int (*render)(char **ret, size_t *ret_len, void *arg, struct err *err);
	/* Whether the file that is there is a stranger's: then it is kept as <path>.before-roost
	 * (once), and if that fails nothing is overwritten. NULL: nobody's. */
	bool (*is_foreign)(const char *text, size_t len, void *arg);
	/* After each publication, equal ones too. It may call publish_changed(), not free us. */
	void (*told)(const struct publish_outcome *outcome, void *arg);
	void *arg;
};

/* 0 or -errno. */
int publish_new(const struct publish_options *options, struct publish **ret);
/* What runs is cancelled; a reload that was begun counts as interrupted. */
void publish_free(struct publish *p);
AUTO_DEFINE(struct publish *, publish_free)

/* Something changed, or should be tried again: soon. */
void publish_changed(struct publish *p);
/* The next publication reloads even if nothing changed: the daemon lost what it had. */
void publish_reload(struct publish *p);

bool publish_busy(const struct publish *p); /* one is under way or due */
const struct publish_outcome *publish_last(const struct publish *p);

struct publish_stats {
	uint64_t results[PUBLISH_RESULTS];
	struct histogram duration; /* of all publications, from the rendering on */
	uint64_t reloads[PUBLISH_ANSWERS];
	struct histogram reload_duration;
};
const struct publish_stats *publish_stats(const struct publish *p);
