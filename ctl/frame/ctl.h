/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of roostctl: what it was told, its way to etcd and to the agent, where it prints.
 *
 *   argv -> settings, command -> [ctl] -> command->run -> out, exit code
 *
 * Nothing is connected before it is asked for.
 */
#pragma once

#include <systemd/sd-event.h>

#include "ctl/frame/command.h"
#include "ctl/frame/out.h"
#include "ctl/frame/settings.h"
#include "lib/store/store.h"

#define CTL_TIMEOUT_MS 5000U

struct ctl {
	const struct ctl_settings *settings;
	const struct command *command;
	const char *const *args; /* behind noun and verb */
	size_t n_args;
	struct out out;
	uint32_t timeout_ms; /* for each call to etcd */
	sd_event *event;
	struct store *store;
};

/* --- etcd ----------------------------------------------------------------------------------- */

/* The store, opened at the first call; it belongs to ctl. */
int ctl_store(struct ctl *ctl, struct store **ret, struct err *err);

/* After a call that failed: says what to look at when etcd is not there. Returns r. */
int ctl_etcd_failed(int r, struct err *err);

struct ctl_kv {
	char *key; /* relative: "pool/web" */
	char *value;
	size_t value_len;
	int64_t create_revision, mod_revision, lease;
};
struct ctl_kvs {
	struct ctl_kv *v;
	size_t n, room;
	int64_t revision; /* of etcd when it was read */
};
void ctl_kvs_done(struct ctl_kvs *kvs);

/* Every key that begins so, sorted; ret is zeroed or holds what an earlier call read: it grows. */
int ctl_read(struct ctl *ctl, const char *beginning, struct ctl_kvs *ret, struct err *err);
/* One key: ret->n is 0 or 1. */
int ctl_read_one(struct ctl *ctl, const char *key, struct ctl_kvs *ret, struct err *err);
/* Binary search in one reading; NULL: not there. */
const struct ctl_kv *ctl_find(const struct ctl_kvs *kvs, const char *key);

/* --- the agent on this node ----------------------------------------------------------------- */

/*
 * One request on its socket. 0 with the reply's object (may be NULL; json_object_put() it) and
 * status; a status of 400 and more is an error with the agent's sentence unless ret_status is
 * given.
 */
int ctl_agent(struct ctl *ctl, const char *method, const char *path, const char *body,
	      unsigned *ret_status, struct json_object **ret, struct err *err);

/* --- people --------------------------------------------------------------------------------- */

/* 0: go on (--yes, --dry-run, or the answer was yes). -ECANCELED: no. CTL_USAGE: no terminal to ask on. */
int ctl_ask(struct ctl *ctl, const char *question, struct err *err);

/* --- watches -------------------------------------------------------------------------------- */

/* Waits until etcd says that something has changed. */
struct ctl_watch {
	bool dirty;
};

/* Keys that begin so, NULL-ended. It lasts as long as ctl; dirty once all is listed. */
int ctl_watch(struct ctl *ctl, const char *const *beginnings, struct ctl_watch *w, struct err *err);
/* Until something has changed since the last call; what comes in the next moment belongs to it. An
 * interrupt ends the program, as it should. 0 or a negative errno. */
int ctl_watch_next(struct ctl *ctl, struct ctl_watch *w);

/* --- lists ---------------------------------------------------------------------------------- */

/* An array of the rows of all keys that begin so. */
int ctl_rows(struct ctl *ctl, const char *beginning, command_row_fn *row, void *arg,
	     struct json_object **ret, struct err *err);
/* command->list printed, and again and again with --watch. */
int ctl_list(struct ctl *ctl, struct err *err);
