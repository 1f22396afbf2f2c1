/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What BIRD says on its control socket: bytes in, whole replies out, and those as records.
 *
 *   socket -> bird_control -> [bird_reply] -> status, metrics, the outcome of `configure`
 *
 * Pure. A reply is a number of lines "dddd-text" (more follows) or " text" (the same code again),
 * ended by "dddd text". Lines "+text" come at any time and belong to no reply; they are left out.
 * "8000-<line overflow>" within a reply stands for a line over 511 bytes that BIRD dropped: no
 * failure. Bytes may come in any pieces. Anything else is no BIRD, and -EBADMSG.
 *
 * As records: codes decide, never words, where BIRD gives codes. Rows are split at blanks, because
 * names over ten bytes shift the columns. A row that cannot be read is -EBADMSG, never a record
 * silently missing; unknown details are skipped, so that other versions of BIRD may say more. All
 * texts lie in one copy of the reply: a record of 5,000 peers is three allocations.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/auto.h"

/* 5,000 peers make 1.9 MB of `show protocols all`. */
#define BIRD_REPLY_MAX (16 << 20)

enum bird_code {
	BIRD_READY = 1,
	BIRD_RECONFIGURED = 3,
	BIRD_IN_PROGRESS = 4,
	BIRD_QUEUED = 5,
	BIRD_SHUTTING_DOWN = 6,
	BIRD_ROUTE = 1007,
	BIRD_RUNTIME_ERRORS = 8000, /* from here on */
	BIRD_LINE_OVERFLOW = 8000,
	BIRD_REFUSED = 8002,
	BIRD_DENIED = 8007,
};

/* One whole reply; lies in the reader. */
struct bird_reply {
	int code;         /* of the last line */
	const char *text; /* of the last line */
	const char *data; /* all lines, each with a NUL behind it */
	size_t len;
};

/* Zero it, then bird_line_next() until it returns false. */
struct bird_line {
	int code;
	const char *text;
	size_t next;
};
bool bird_line_next(const struct bird_reply *reply, struct bird_line *line);
static inline bool bird_reply_failed(const struct bird_reply *reply)
{
	return reply->code >= BIRD_RUNTIME_ERRORS;
}

struct bird_reader {
	char *data;
	size_t len, room;
	size_t line;  /* where the line begins that is not complete */
	int code;     /* of the line before; 0 with started false: none yet */
	bool started; /* a line of this reply has come */
	size_t max;   /* 0: BIRD_REPLY_MAX */
};

/*
 * 1: a reply is complete and in *ret until bird_reader_next(); *used tells how many bytes it took.
 * 0: all bytes used, more needed. -EBADMSG, -EMSGSIZE (over max), -ENOMEM: give up the connection.
 */
int bird_reader_feed(struct bird_reader *r, const char *bytes, size_t n, size_t *used,
		     struct bird_reply *ret);
/* Ready for the next reply. Does not hold on to the room of a large one. */
void bird_reader_next(struct bird_reader *r);
/* Whether part of a reply is there. */
bool bird_reader_pending(const struct bird_reader *r);
void bird_reader_done(struct bird_reader *r);

/* --- BIRD itself ---------------------------------------------------------------------------- */

struct bird_version {
	unsigned major, minor, patch;
};
/* "BIRD 2.0.12 ready." or "BIRD 3.1.7"; a missing part counts as 0. -EBADMSG: no BIRD. */
int bird_version_parse(const char *text, struct bird_version *ret);

#define BIRD_STATUS_TEXT 64
struct bird_status {
	struct bird_version version;
	char router_id[BIRD_STATUS_TEXT], hostname[BIRD_STATUS_TEXT];
	char server_time[BIRD_STATUS_TEXT], last_reboot[BIRD_STATUS_TEXT];
	char last_reconfiguration[BIRD_STATUS_TEXT];
	bool recovering;              /* graceful restart */
	unsigned waiting_for;         /* that many channels */
	char state[BIRD_STATUS_TEXT]; /* "Daemon is up and running" */
};
/* -EBADMSG: that was no status. */
int bird_status_parse(const struct bird_reply *reply, struct bird_status *ret);
/*
 * How long ago the last reconfiguration was. The times themselves are no mark of it: BIRD works
 * each out from the wall clock of the moment, so the same one is told differently from call to
 * call. -EBADMSG: in a format of the operator's.
 */
int bird_status_age_ms(const struct bird_status *s, int64_t *ret);

enum bird_progress {
	BIRD_PROGRESS_DONE,     /* what was accepted runs */
	BIRD_PROGRESS_RUNNING,  /* accepted, something is still shutting down */
	BIRD_PROGRESS_QUEUED,   /* accepted, will run next */
	BIRD_PROGRESS_SHUTDOWN, /* not accepted: BIRD ends */
	BIRD_PROGRESS_REFUSED,  /* the file is bad, or was not found */
	BIRD_PROGRESS_DENIED,   /* a restricted session */
	BIRD_PROGRESS_UNKNOWN,
};
const char *bird_progress_name(enum bird_progress p);
/* What the reply to `configure` says, and that to `configure status`. */
enum bird_progress bird_configure_parse(const struct bird_reply *reply);
enum bird_progress bird_configure_status_parse(const struct bird_reply *reply);

/* --- protocols ------------------------------------------------------------------------------ */

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

/* --- tables and counts ---------------------------------------------------------------------- */

/*
 * BFD sessions and OSPF neighbours have one shape: a protocol's name, a heading, rows of six
 * words. That no such protocol runs is an empty table.
 */
enum bird_bfd_column {
	BIRD_BFD_ADDRESS,
	BIRD_BFD_INTERFACE, /* "---" for multihop */
	BIRD_BFD_STATE,     /* "Up", "Down", "Init", "AdminDown" */
	BIRD_BFD_SINCE,
	BIRD_BFD_INTERVAL,
	BIRD_BFD_TIMEOUT,
};

enum bird_ospf_column {
	BIRD_OSPF_ROUTER_ID,
	BIRD_OSPF_PRIORITY,
	BIRD_OSPF_STATE, /* "Full/DR", "2-Way/Other" */
	BIRD_OSPF_DEAD_TIME,
	BIRD_OSPF_INTERFACE,
	BIRD_OSPF_ADDRESS,
};

#define BIRD_COLUMNS 6

struct bird_row {
	const char *protocol;
	const char *cell[BIRD_COLUMNS];
};

struct bird_table {
	struct bird_row *v;
	size_t n;
	char *text;
};

int bird_table_parse(const struct bird_reply *reply, struct bird_table *ret);
void bird_table_done(struct bird_table *t);

#define BIRD_TABLE_TEXT 72
struct bird_count {
	char table[BIRD_TABLE_TEXT];
	uint64_t routes, networks;
};

struct bird_counts {
	struct bird_count *v;
	size_t n;
};

int bird_counts_parse(const struct bird_reply *reply, struct bird_counts *ret);
void bird_counts_done(struct bird_counts *c);
