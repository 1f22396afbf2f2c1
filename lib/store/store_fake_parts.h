/* SPDX-License-Identifier: Apache-2.0 */
/* Inside store_fake: the store in memory, and the test's hands upon it. */
#pragma once

#include "lib/store/store_fake.h"

struct fake_fault;
TAILQ_HEAD(fake_faults, fake_fault);

struct fake {
	struct memory memory;
	struct fake_faults faults;
	struct memory_request **late;
	size_t n_late;
	/* The client has not noticed yet: */
	struct memory_task news;
	bool cluster_changed, went_back;
	store_fake_txn_fn *before_txn;
	void *before_txn_arg;
};

static inline struct fake *fake_of(struct store *s)
{
	return (struct fake *)s;
}

/* store_fake_faults.c */
extern const struct memory_hooks fake_hooks;
void fake_drop_late(struct fake *f);
void fake_faults_done(struct fake *f);
void fake_tell_news(struct memory_task *task);
