/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `show bfd sessions`, `show ospf neighbors` (one shape: a protocol's name, a heading, rows of
 * six words) and `show route count` as records.
 *
 * Pure. A row that does not have its six words is -EBADMSG. That no such protocol runs is
 * an empty table.
 */
#pragma once

#include <stdint.h>

#include "confd/bird/bird_reply.h"

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
