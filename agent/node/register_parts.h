/* SPDX-License-Identifier: Apache-2.0 */
/* Inside agent/node/register*.c. */
#pragma once

#include "agent/node/register.h"
#include "agent/node/register_decide.h"
#include "lib/model/keys.h"

#define REGISTER_PART "registration"

enum phase {
	READING,
	WRITING,  /* create or update */
	DELETING, /* the first half of taking over */
	WAITING,  /* refused, or after an error */
	SETTLED   /* registered, and the watch shows nothing else */
};

struct registration {
	struct store *store;
	struct timers *timers;
	struct health *health;
	const struct register_handlers *handlers;
	void *arg;
	uint32_t minute;
	char node_key[KEY_FULL_TEXT], status_key[KEY_FULL_TEXT], removed_key[KEY_FULL_TEXT];
	char recovery_key[KEY_FULL_TEXT];
	char removed_name[KEY_TEXT], node_name[KEY_TEXT]; /* relative, for the decoders */
	struct node self;
	char recovery[ID_TEXT]; /* what self.recovery points to */
	char *value;
	bool vtep_told, promise_told; /* else those of the record which is there stay */
	uint32_t lowest;              /* promise that the record may carry */
	struct store_call *call;
	struct records *records;
	struct record_want *wants[2];
	struct timer timer;
	enum phase phase;
	bool registered, displaced, removed;
	bool lost;        /* the handler was called, and it was not registered since */
	bool held_before; /* etcd went back while we were registered */
	bool waited;      /* the name was found taken */
	/* Of another machine's record: since when it is silent, its MOD revision, the last look. */
	uint64_t silent_since, looked;
	int64_t silent_mod;
	bool wrote; /* in this process, to this etcd: only then can an equal value be ours */
	struct fence fence;
	int64_t creating; /* CREATE revision that an update keeps; 0: it creates */
	int64_t newest;   /* of our key, as the watch shows it */
	uint64_t restored;
	unsigned failures; /* in a row */
	char reason[512];
};

/* A new round: ends what is under way, reads, decides, writes. */
void register_round(struct registration *r);
/* The same, later. */
void register_wait(struct registration *r, uint64_t delay_ms);
/* The fence holds no more; said once. */
void register_void(struct registration *r, const char *why);
/* The same, and what was proven by it is void too. */
void register_lost(struct registration *r, const char *why);
void register_set_reason(struct registration *r, const char *text);
bool register_is_ours(const struct registration *r, const struct store_kv *kv);

/* register_watch.c: follows node/<node> and removed/<node>. */
int register_watch(struct registration *r);
