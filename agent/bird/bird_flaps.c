/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bird/bird_flaps.h"

#include <errno.h>
#include <string.h>

#include "lib/base/array.h"

#define FIELD_OF(member, why_)                                                                     \
	{                                                                                          \
		offsetof(struct bird_session, member), sizeof(((struct bird_session *)0)->member), \
			why_                                                                       \
	}

static const struct {
	size_t at, size;
	const char *why;
} restarting[] = {
	FIELD_OF(local, "its local address changes"),
	FIELD_OF(asn, "the neighbour's AS changes"),
	FIELD_OF(port, "its port changes"),
	FIELD_OF(local_port, "listenPort changes"),
	FIELD_OF(passive, "passive changes"),
	FIELD_OF(options.local_asn, "its own AS changes"),
	FIELD_OF(options.multihop, "multihop changes"),
	FIELD_OF(options.hold_time, "holdTime changes"),
	FIELD_OF(options.keepalive_time, "keepaliveTime changes"),
	FIELD_OF(options.connect_retry_time, "connectRetryTime changes"),
	FIELD_OF(options.graceful_restart, "gracefulRestart changes"),
	FIELD_OF(options.graceful_restart_time, "gracefulRestartTime changes"),
	FIELD_OF(options.allow_local_as, "allowLocalAs changes"),
	FIELD_OF(options.ttl_security, "ttlSecurity changes"),
	FIELD_OF(options.rr_client, "its role as a route reflector's client changes"),
	FIELD_OF(options.cluster_id, "routeReflectorClusterId changes"),
	FIELD_OF(options.ipv4, "its families change"),
	FIELD_OF(options.ipv6, "its families change"),
	FIELD_OF(options.extended_next_hop, "its families change"),
	FIELD_OF(options.gateway_recursive, "its next hops are resolved in another way"),
};

static int add(struct bird_flaps *flaps, enum bird_flap_kind kind, const char *what,
	       const char *why)
{
	struct bird_flap *v = array_add(flaps);

	if (!v)
		return -ENOMEM;
	*v = (struct bird_flap){ .kind = kind, .why = why };
	snprintf(v->what, sizeof(v->what), "%s", what);
	return 0;
}

static const char *why_restart(const struct bird_plan *before, const struct bird_session *a,
			       const struct bird_plan *after, const struct bird_session *b)
{
	const char *old = a->password ?: "", *new = b->password ?: "";

	if (address_compare(&before->router_id, &after->router_id) != 0)
		return "the router id changes";
	if (strcmp(old, new) != 0)
		return "its password changes";
	for (size_t i = 0; i < ARRAY_SIZE(restarting); i++)
		if (memcmp((const char *)a + restarting[i].at, (const char *)b + restarting[i].at,
			   restarting[i].size) != 0)
			return restarting[i].why;
	return NULL;
}

static int session_order(const struct bird_session *a, const struct bird_session *b)
{
	int r = address_compare(&a->neighbour.address, &b->neighbour.address);

	return r ?: strcmp(a->neighbour.zone, b->neighbour.zone);
}

/* Both are sorted. */
static int compare_sessions(const struct bird_plan *before, const struct bird_plan *after,
			    struct bird_flaps *flaps)
{
	size_t i = 0, j = 0;
	int r = 0;

	while (r == 0 && i < before->n_sessions) {
		const struct bird_session *a = &before->sessions[i], *b = after->sessions + j;
		int order = j < after->n_sessions ? session_order(a, b) : -1;
		const char *why = order == 0 ? why_restart(before, a, after, b) : NULL;

		if (order < 0)
			r = add(flaps, BIRD_REMOVED, a->name, "no record requires it any more");
		else if (why)
			r = add(flaps, BIRD_RESTARTS, a->name, why);
		i += order <= 0;
		j += order >= 0;
	}
	return r;
}

static int compare_blocks(const struct bird_plan *before, const struct bird_plan *after,
			  struct bird_flaps *flaps)
{
	size_t i = 0, j = 0;
	int r = 0;

	while (r == 0 && i < before->n_announced) {
		int order = j < after->n_announced
				    ? prefix_compare(&before->announced[i], &after->announced[j])
				    : -1;
		char text[PREFIX_TEXT];

		if (order < 0)
			r = add(flaps, BIRD_WITHDRAWS, prefix_print(&before->announced[i], text),
				"it is no longer ours, or its pool is not announced");
		i += order <= 0;
		j += order >= 0;
	}
	return r;
}

int bird_flaps(const struct bird_plan *before, const struct bird_plan *after,
	       struct bird_flaps *ret)
{
	struct bird_flaps flaps = { 0 };
	int r = compare_sessions(before, after, &flaps);

	if (r == 0)
		r = compare_blocks(before, after, &flaps);
	if (r < 0)
		bird_flaps_done(&flaps);
	else
		*ret = flaps;
	return r;
}

void bird_flaps_done(struct bird_flaps *flaps)
{
	free(flaps->v);
	*flaps = (struct bird_flaps){ 0 };
}
