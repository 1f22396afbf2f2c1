/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long polls: those who wait for the next change of leases.
 *
 *   GET ?next= -> [lease_polls] <- view's changes; one answer for all who wait for the same
 *
 * Whoever comes with a revision that the view has not seen yet has it from another server, or from
 * an etcd that is no more: etcd is asked once for all of them which of the two it is.
 */
#pragma once

#include "controller/leases/lease_view.h"
#include "lib/daemon/serve.h"
#include "lib/store/store.h"

struct lease_polls;

/* To who asks while a recovery is open; it may say what it holds itself. */
#define LEASE_WENT_BACK                                                                            \
	"etcd went back: leases are shown again when all nodes have reported their blocks; renew " \
	"your lease"

/* Both are borrowed; the view's answers are of lease_answer_done(). */
struct lease_server_options;
int lease_polls_new(const struct lease_server_options *options, const struct lease_view *view,
		    struct lease_polls **ret);
void lease_polls_free(struct lease_polls *p);

/* A snapshot at once, with a next of NULL; else the first change after it. one: of this subnet. */
void lease_polls_add(struct lease_polls *p, struct serve_request *request,
		     struct lease_network *network, const struct prefix *one, const char *next);
/* The view has changed. */
void lease_polls_look(struct lease_polls *p);
/* Revisions start anew: everybody gets a snapshot with the next look. */
void lease_polls_doubt(struct lease_polls *p);
size_t lease_polls_waiting(const struct lease_polls *p);

/* For lease_view_new(). */
void lease_answer_done(void *answer);
