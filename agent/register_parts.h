/* SPDX-License-Identifier: Apache-2.0 */
/* Inside agent/register*.c. */
#pragma once

#include "agent/register.h"
#include "agent/register_decide.h"
#include "lib/keys.h"

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
	char node_key[KEY_FULL_TEXT], status_key[KEY_FULL_TEXT], removed_key[KEY_FULL_TEXT];
	char removed_name[KEY_TEXT], node_name[KEY_TEXT]; /* relative, for the decoders */
	struct node self;
	char *value;
	bool vtep_told; /* else that of the record which is there stays */
	struct store_call *call;
	struct store_watch *watches[2];
	struct timer timer;
	enum phase phase;
	bool registered, displaced, removed;
	bool wrote; /* in this process, to this etcd: only then can an equal value be ours */
	struct fence fence;
	int64_t creating; /* CREATE revision that an update keeps; 0: it creates */
	int64_t newest;   /* of our key, as the watch shows it */
	uint64_t restored, back_off;
	char reason[512];
};

/* A new round: ends what is under way, reads, decides, writes. */
void register_round(struct registration *r);
/* The same, later. */
void register_wait(struct registration *r, uint64_t delay_ms);
/* The fence holds no more; told once. */
void register_lost(struct registration *r, const char *why);
void register_set_reason(struct registration *r, const char *text);
bool register_is_ours(const struct registration *r, const struct store_kv *kv);

/* register_watch.c: follows node/<node> and removed/<node>. */
int register_watch(struct registration *r);
