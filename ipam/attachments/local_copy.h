/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What survives the agent on this boot: files under the run directory.
 *
 *   attachments/<hash>           one per attachment, before anybody is told of it
 *   blocks/<network>/<block>     one per owned block: after the claim, until before the release;
 *                                also of a lost one, until its last pod is gone
 *   records                      pools, extents, labels and config as etcd had them last
 *
 * With these an agent that starts while etcd is away serves as before. Files
 * that another program removes are noticed (inotify) and reported to the caller, who
 * writes them again from memory. A damaged file is reported with the reason and left
 * where it is, for a person to look at; nothing is concluded from it.
 */
#pragma once

#include <systemd/sd-event.h>

#include "ipam/attachments/attachments.h"
#include "lib/base/err.h"

struct local_copy;

/* An owned block with what its extent says, so that it can be claimed again after etcd lost all. */
struct block_copy {
	char network[NAME_TEXT], pool[NAME_TEXT];
	struct prefix block, cidr; /* cut from this, by the block's length */
	bool lost;                 /* another node has it, but pods here still use it */
	/* As its pool said last: */
	bool unrouted; /* it gets no route of ours */
	bool nat;      /* natOutgoing */
};

/* Files vanished that we did not remove: look which (local_copy_has_*()), and write them again. */
typedef void local_copy_tampered_fn(void *arg);

/* Makes the folders. tampered may be NULL. */
int local_copy_open(const char *run_dir, sd_event *event, local_copy_tampered_fn *tampered,
		    void *arg, struct local_copy **ret, struct err *err);
void local_copy_close(struct local_copy *c);
AUTO_DEFINE(struct local_copy *, local_copy_close)

/* Reading, at the start. Takers own what they get; a negative return ends the reading. */
struct local_copy_taker {
	int (*attachment)(struct attachment *a, void *arg);
	int (*block)(const struct block_copy *block, void *arg);
	void (*damaged)(const char *file, const char *why, void *arg);
};
int local_copy_read(struct local_copy *c, const struct local_copy_taker *taker, void *arg);

/* Writing: 0 or -errno. Removing what is not there is fine. */
int local_copy_put_attachment(struct local_copy *c, const struct attachment *a);
int local_copy_remove_attachment(struct local_copy *c, const struct attachment_key *key);
bool local_copy_has_attachment(struct local_copy *c, const struct attachment_key *key);
int local_copy_put_block(struct local_copy *c, const struct block_copy *block);
int local_copy_remove_block(struct local_copy *c, const char *network, const struct prefix *block);
bool local_copy_has_block(struct local_copy *c, const char *network, const struct prefix *block);
/* Opens folders that were removed; 0 or -errno. */
int local_copy_reopen(struct local_copy *c);

int local_copy_put_records(struct local_copy *c, const char *text);
/* -ENOENT: there are none. free() the text. */
int local_copy_get_records(struct local_copy *c, char **ret, size_t *ret_len);
