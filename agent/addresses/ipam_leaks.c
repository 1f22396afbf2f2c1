/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaks: every minute a look at the network namespaces of all attachments. What
 * the looks mean is decided by ipam/attachments/leaks; here they are taken.
 */
#include <errno.h>

#include "agent/addresses/ipam_parts.h"
#include "ipam/attachments/sighting.h"

static void release_leak(struct ipam *m, const struct attachment *a, const char *reason)
{
	struct attachment_key key = attachment_key(a);
	AUTO(json_put) struct json_object *released = NULL;
	struct err err = { "" };

	log_warning("ipam",
		    "leak: pod %s/%s, container %s, interface %s: %s; its addresses are released",
		    a->namespace, a->pod, a->container, a->interface, reason);
	released = ipam_drop(m, &key, &err);
	if (!released)
		log_error("ipam", "the leak stays for now: %s", err.text);
}

static int look(struct ipam *m)
{
	const struct attachments *all = allocator_attachments(m->allocator);
	AUTO(free) struct sighting *sightings = calloc(all->n ?: 1, sizeof(*sightings));
	AUTO(free) struct leak *leaks = calloc(all->n ?: 1, sizeof(*leaks));
	size_t n = all->n;
	int r;

	if (!sightings || !leaks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sightings[i] = sighting_of(all->v[i]);
	r = leaks_judge(sightings, n, ipam_now() / m->o.minute * 60000, leaks);
	if (r < 0)
		return r;
	/* The sightings keep the pointers: a release changes the table, not the others. */
	for (size_t i = 0; i < n; i++) {
		struct attachment_key key = attachment_key(sightings[i].attachment);

		if (leaks[i].verdict == LEAK_RELEASE)
			release_leak(m, sightings[i].attachment, leaks[i].reason);
		else
			allocator_set_suspected(m->allocator, &key, leaks[i].suspected_since);
	}
	return 0;
}

static void on_look(void *arg)
{
	struct ipam *m = arg;

	if (look(m) < 0)
		log_error("ipam", "out of memory: no look for leaks this time");
	timer_set(m->o.timers, &m->leaks, m->o.minute, m->o.minute / 4);
}

void ipam_leaks_start(struct ipam *m)
{
	m->leaks = (struct timer){ .fn = on_look, .arg = m };
	timer_set(m->o.timers, &m->leaks, m->o.minute, m->o.minute / 4);
}
