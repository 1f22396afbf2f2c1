/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to do about node/<node>, given what stands there.
 *
 *   one reading -> [register_decide] -> register: the write that follows, or none
 *
 * Pure. "This agent" is machine, boot and start together: the same machine may
 * have rebooted, the same boot may have seen an earlier agent. "This machine" is more than its
 * machine id, which an image carries along: register_same_machine().
 *
 * A name changes machines as a block changes nodes: after its holder has been silent for as long as
 * its record promises (reclaimAfter), or when an operator states that the machine is off.
 */
#pragma once

#include "lib/model/model.h"

struct register_seen {
	bool present;            /* node/<node> */
	const struct node *node; /* NULL: absent, or not to be understood */
	bool wrote;              /* we have tried to, since etcd last went back */
	bool same_value;         /* byte for byte what we have tried to write */
	bool same_fence;         /* we wrote it, and its CREATE revision is still that one */
	bool status_alive;       /* status/node/<node> stands: an agent keeps its lease */
	bool held_before;        /* etcd went back, and until then the name was ours */
	bool off;          /* removed/<node> states that the machine which wrote this is off */
	bool removed;      /* removed/<node> stands */
	bool waited;       /* this agent has found the name taken before */
	bool recovering;   /* a recovery is open: nothing changes hands */
	uint32_t silent_s; /* so long it has been seen unchanged and without a status */
	uint32_t wait_s;   /* for so long that must last */
	const char *until; /* the time at which it has, for people */
};

enum register_step {
	REGISTER_CREATE,
	REGISTER_UPDATE,
	REGISTER_ADOPT, /* it is there as it should be: a write of ours whose reply was lost */
	REGISTER_TAKE_OVER,
	REGISTER_WAIT,  /* its holder is silent, but not for long enough */
	REGISTER_REFUSE /* its holder is alive */
};
const char *register_step_name(enum register_step step);

/*
 * displaced: another agent took the name from us while we were registered. why gets the
 * sentence for TAKE_OVER, WAIT and REFUSE: both machines and addresses, when, and what to do.
 */
enum register_step register_decide(const struct node *self, const struct register_seen *seen,
				   bool displaced, struct err *why);

/* Was this record, which is not what we wrote, written by another agent (or by hand)? */
bool register_by_other(const struct node *self, const struct node *found);

/*
 * Whether two records are of one machine. The machine id must be the same. Where both name
 * permanent MACs, one of them in common decides; else different DMI ids say no; else the same boot,
 * or an address in common, says yes. So a copied image is another machine; a reboot is the same
 * one, also with another address where a network card is known.
 */
bool register_same_machine(const struct node *a, const struct node *b);
