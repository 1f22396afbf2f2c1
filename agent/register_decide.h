/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to do about node/<node>, given what stands there.
 *
 *   one reading -> [register_decide] -> register: the write that follows, or none
 *
 * Pure. "This agent" is machine, boot and start together: the same machine may
 * have rebooted, the same boot may have seen an earlier agent.
 */
#pragma once

#include "lib/model.h"

struct register_seen {
	bool present;            /* node/<node> */
	const struct node *node; /* NULL: absent, or not to be understood */
	bool same_value;         /* byte for byte what we have tried to write */
	bool same_fence;         /* registered, and its CREATE revision is still that one */
	bool status_alive;       /* status/node/<node> stands, so somebody keeps its lease */
};

enum register_step {
	REGISTER_CREATE,
	REGISTER_UPDATE,
	REGISTER_ADOPT, /* it is there as it should be: a write of ours whose reply was lost */
	REGISTER_TAKE_OVER,
	REGISTER_REFUSE
};
const char *register_step_name(enum register_step step);

/*
 * displaced: another agent took the name from us while we were registered. why gets the
 * sentence for REGISTER_TAKE_OVER and REGISTER_REFUSE, with both machines and addresses.
 */
enum register_step register_decide(const struct node *self, const struct register_seen *seen,
				   bool displaced, struct err *why);

/* Was this record, which is not what we wrote, written by another agent (or by hand)? */
bool register_by_other(const struct node *self, const struct node *found);
