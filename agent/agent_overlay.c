/* SPDX-License-Identifier: Apache-2.0 */
/* What the overlay is told by the other parts, and they by it. */
#include "agent/agent_parts.h"

#include "lib/base/log.h"

/* What is surplus may go only when all is known that anything is made from. */
void agent_open_when_known(struct agent *a)
{
	if (a->opened || !a->addresses_known || !overlay_in_sync(a->overlay))
		return;
	a->opened = true;
	plug_open(a->plug);
}

static bool inputs_known(void *arg)
{
	const struct agent *a = arg;

	return a->ipam && ipam_inputs_known(a->ipam);
}

static uint32_t uplink_mtu(const struct address *node, void *arg)
{
	const struct agent *a = arg;

	return plug_mtu(a->plug, node);
}

static void want_address(const bool wanted[OVERLAY_FAMILIES], void *arg)
{
	struct agent *a = arg;

	ipam_want_tunnel(a->ipam, wanted);
}

static struct ipam_tunnel tunnel_address(int family, void *arg)
{
	const struct agent *a = arg;

	return ipam_tunnel(a->ipam, family);
}

static void tell_vtep(const struct node_vtep *vtep, void *arg)
{
	struct agent *a = arg;

	if (a->registration && register_set_vtep(a->registration, vtep) < 0)
		log_error("agent", "out of memory: the node's record does not tell its tunnel");
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
	plug_routes_changed(a->plug, false);
	agent_changed(a);
}

int agent_desire_overlay(struct kernel_desired *ret, void *arg)
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
		.run_dir = a->settings->run_dir,
		.known = inputs_known,
		.uplink_mtu = uplink_mtu,
		.want_address = want_address,
		.address = tunnel_address,
		.tell_vtep = tell_vtep,
		.changed = overlay_changed,
		.arg = a,
	};

	return overlay_new(&o, &a->overlay, err);
}
