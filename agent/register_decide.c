/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/register_decide.h"

#include <string.h>

const char *register_step_name(enum register_step step)
{
	static const char *const names[] = {
		[REGISTER_CREATE] = "create", [REGISTER_UPDATE] = "update",
		[REGISTER_ADOPT] = "adopt",   [REGISTER_TAKE_OVER] = "take over",
		[REGISTER_REFUSE] = "refuse",
	};

	return names[step];
}

static const char *show_address(const struct node *node, char *text)
{
	const struct prefix *p = node->ipv4.address.family ? &node->ipv4 : &node->ipv6;

	return address_print(&p->address, text);
}

bool register_by_other(const struct node *self, const struct node *found)
{
	return found && (strcmp(found->machine, self->machine) != 0 ||
			 strcmp(found->boot, self->boot) != 0 ||
			 strcmp(found->agent.started, self->agent.started) != 0);
}

static void tell_who(const struct node *self, const struct register_seen *seen, struct err *why)
{
	const char *alive = seen->status_alive ? "alive" : "silent";
	char theirs[ADDRESS_TEXT], ours[ADDRESS_TEXT];

	show_address(self, ours);
	if (!seen->node) {
		err_set(why, 0,
			"the record of node %s cannot be understood, and whoever wrote it is %s; "
			"this is machine %s at %s",
			self->name, alive, self->machine, ours);
		return;
	}
	show_address(seen->node, theirs);
	if (strcmp(seen->node->machine, self->machine) == 0)
		err_set(why, 0,
			"the name %s is also used by an agent at %s, which is %s, with the same "
			"machine id %s (a copied image?) and boot %s; this one is at %s, boot %s",
			self->name, theirs, alive, self->machine, seen->node->boot, ours,
			self->boot);
	else
		err_set(why, 0,
			"the name %s belongs to machine %s at %s, which is %s; this is machine %s "
			"at %s",
			self->name, seen->node->machine, theirs, alive, self->machine, ours);
}

enum register_step register_decide(const struct node *self, const struct register_seen *seen,
				   bool displaced, struct err *why)
{
	if (!seen->present)
		return REGISTER_CREATE;
	if (seen->same_value)
		return REGISTER_ADOPT;
	if (seen->node && strcmp(seen->node->machine, self->machine) == 0 &&
	    !(displaced && register_by_other(self, seen->node)))
		return REGISTER_UPDATE;
	/* Whoever takes over makes it anew: this one was spoilt by hand. */
	if (!seen->node && seen->same_fence)
		return REGISTER_UPDATE;
	tell_who(self, seen, why);
	return seen->status_alive ? REGISTER_REFUSE : REGISTER_TAKE_OVER;
}
