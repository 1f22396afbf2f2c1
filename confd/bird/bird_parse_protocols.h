/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `show protocols` and `show protocols all` as records.
 *
 * Pure. Rows are split at blanks, because names over ten bytes shift the columns.
 * Of the details the ones that status and metrics need are kept; unknown ones are
 * skipped, so that other versions of BIRD say more without harm. A row that cannot
 * be read is -EBADMSG, never a protocol silently missing. All texts lie in one copy
 * of the reply: a record of 5,000 peers is three allocations.
 */
#pragma once

#include <stdint.h>

#include "confd/bird/bird_reply.h"

struct bird_channel {
	const char *name;  /* "ipv4", "ipv6", "main" of a pipe */
	const char *state; /* "UP"; "" for a pipe */
	const char *table;
	bool counted; /* the numbers are there: the channel is up */
	uint64_t imported, filtered, exported, preferred;
};

/* Texts that BIRD does not give are "", numbers 0. */
struct bird_protocol {
	const char *name, *proto; /* "n_b", "BGP" */
	const char *table;        /* "---" if it has none or several */
	const char *state;        /* "up", "start", "down", "stop", "feed", "flush" */
	const char *since, *info; /* "00:37:24.345", "Idle          Error: BFD session down" */
	/* The rest by `show protocols all`. */
	const char *description;
	const char *bgp_state; /* "Established"; by `show protocols`: of info */
	const char *neighbor;  /* address, with "%eth0" if link-local; or the range */
	const char *neighbor_id, *source, *last_error;
	uint32_t neighbor_as, local_as;
	size_t first_channel, n_channels;
};

struct bird_protocols {
	struct bird_protocol *v;
	size_t n;
	struct bird_channel *channels;
	size_t n_channels;
	size_t overflows; /* lines that BIRD dropped because they were too long */
	char *text;
};

/* -EBADMSG, -ENOMEM. Release it with bird_protocols_done(). */
int bird_protocols_parse(const struct bird_reply *reply, struct bird_protocols *ret);
void bird_protocols_done(struct bird_protocols *p);
/* NULL if there is none of that name. */
const struct bird_protocol *bird_protocols_find(const struct bird_protocols *p, const char *name);
static inline const struct bird_channel *bird_protocol_channels(const struct bird_protocols *list,
								const struct bird_protocol *p)
{
	return p->n_channels ? list->channels + p->first_channel : NULL;
}
