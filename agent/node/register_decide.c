/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/register_decide.h"

#include <string.h>

const char *register_step_name(enum register_step step)
{
	static const char *const names[] = {
		[REGISTER_CREATE] = "create", [REGISTER_UPDATE] = "update",
		[REGISTER_ADOPT] = "adopt",   [REGISTER_TAKE_OVER] = "take over",
		[REGISTER_WAIT] = "wait",     [REGISTER_REFUSE] = "refuse",
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

/* Ids of one kind that both have: 1; that both have, but none in common: 0; else -1. */
static int share(const struct node *a, const struct node *b, const char *kind)
{
	bool a_has = false, b_has = false;

	for (size_t i = 0; i < a->hardware.n; i++) {
		if (strncmp(a->hardware.v[i], kind, strlen(kind)) != 0)
			continue;
		a_has = true;
		for (size_t j = 0; j < b->hardware.n; j++)
			if (strcmp(a->hardware.v[i], b->hardware.v[j]) == 0)
				return 1;
	}
	for (size_t j = 0; j < b->hardware.n; j++)
		b_has = b_has || strncmp(b->hardware.v[j], kind, strlen(kind)) == 0;
	return a_has && b_has ? 0 : -1;
}

static bool share_address(const struct prefix *a, const struct prefix *b)
{
	return a->address.family && address_compare(&a->address, &b->address) == 0;
}

bool register_same_machine(const struct node *a, const struct node *b)
{
	int macs = share(a, b, "mac:");

	if (strcmp(a->machine, b->machine) != 0)
		return false;
	if (macs >= 0)
		return macs;
	if (share(a, b, "dmi:") == 0)
		return false;
	if (a->boot[0] && strcmp(a->boot, b->boot) == 0)
		return true;
	return share_address(&a->ipv4, &b->ipv4) || share_address(&a->ipv6, &b->ipv6);
}

static void say_who(const struct node *self, const struct register_seen *seen, struct err *why)
{
	const char *alive = seen->status_alive ? "alive" : "silent";
	char theirs[ADDRESS_TEXT], ours[ADDRESS_TEXT];

	show_address(self, ours);
	if (!seen->node) {
		err_set(why, 0,
			"the record of node %s cannot be understood, and its writer is %s; "
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

/* When, and how it goes faster. */
static void say_when(const struct node *self, const struct register_seen *seen, struct err *why)
{
	struct err who = *why;

	if (seen->recovering)
		err_set(why, 0,
			"%s; etcd went back, and names change machines only after the recovery",
			who.text);
	else
		err_set(why, 0,
			"%s; this machine takes the name over at %s, after %u s of silence; if "
			"that machine is off for good: roostctl node delete %s --now",
			who.text, seen->until, seen->wait_s, self->name);
}

enum register_step register_decide(const struct node *self, const struct register_seen *seen,
				   bool displaced, struct err *why)
{
	if (!seen->present && seen->removed && seen->waited) {
		err_set(why, 0,
			"the machine that had the name %s is being removed: this one takes the "
			"name when removed/%s is gone (a controller deletes it last)",
			self->name, self->name);
		return REGISTER_WAIT;
	}
	if (!seen->present)
		return REGISTER_CREATE;
	if (seen->same_value)
		return REGISTER_ADOPT;
	/* One that waits for another machine, and finds its own record without having written it:
	 * a restore brought it back, and the other machine may live. */
	if (seen->node && register_same_machine(seen->node, self) &&
	    !(seen->waited && !seen->wrote) && !(displaced && register_by_other(self, seen->node)))
		return REGISTER_UPDATE;
	/* Only a hand edits it so, and the fence shows that nobody made it again. */
	if (!seen->node && seen->same_fence)
		return REGISTER_UPDATE;
	say_who(self, seen, why);
	/* A restore brought back the record of an earlier machine. */
	if (seen->held_before)
		return REGISTER_TAKE_OVER;
	if (seen->status_alive)
		return REGISTER_REFUSE;
	if (seen->off || (!seen->recovering && seen->silent_s >= seen->wait_s))
		return REGISTER_TAKE_OVER;
	say_when(self, seen, why);
	return REGISTER_WAIT;
}
