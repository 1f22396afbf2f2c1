/* SPDX-License-Identifier: Apache-2.0 */
/* What the overlay is told by the other parts, and they by it. */
#include "agent/agent_parts.h"

/* What is surplus may go only when all is known that anything is made from. */
void agent_open_when_known(struct agent *a)
{
	if (a->opened || !a->addresses_known || !overlay_in_sync(a->overlay))
		return;
	a->opened = true;
	kernel_open(a->kernel);
}

void agent_tunnel_changed(void *arg)
{
	struct agent *a = arg;

	if (a->overlay)
		overlay_mark(a->overlay);
}

static void overlay_changed(void *arg)
{
	struct agent *a = arg;

	agent_open_when_known(a);
	kernel_mark(a->kernel);
	agent_changed(a);
}

int agent_desire_overlay(struct kernel_wants *ret, void *arg)
{
	struct agent *a = arg;

	return a->overlay ? overlay_desire(a->overlay, ret) : 0;
}

int agent_open_overlay(struct agent *a, struct err *err)
{
	const struct overlay_options o = {
		.event = a->event,
		.timers = a->timers,
		.health = a->health,
		.records = a->records,
		.ipam = a->ipam,
		.kernel = a->kernel,
		.run_dir = a->settings->run_dir,
		.changed = overlay_changed,
		.arg = a,
	};

	return overlay_new(&o, &a->overlay, err);
}
