/* SPDX-License-Identifier: Apache-2.0 */
/* What a change would do, shown before it is written, and the question. */
#include <errno.h>
#include <string.h>

#include "ctl/records/effect.h"

void cluster_done(struct cluster *cluster)
{
	ctl_kvs_done(&cluster->config);
	ctl_kvs_done(&cluster->nodes);
	ctl_kvs_done(&cluster->specs);
	ctl_kvs_done(&cluster->blocks);
	ctl_kvs_done(&cluster->routes);
	ctl_kvs_done(&cluster->status);
}

static int cluster_read(struct ctl *ctl, struct cluster *ret, struct err *err)
{
	int r = ctl_read_one(ctl, "config", &ret->config, err);

	r = r < 0 ? r : ctl_read(ctl, KEYS_NODE, &ret->nodes, err);
	r = r < 0 ? r : ctl_read(ctl, KEYS_SPEC, &ret->specs, err);
	r = r < 0 ? r : ctl_read(ctl, KEYS_BLOCK, &ret->blocks, err);
	r = r < 0 ? r : ctl_read(ctl, KEYS_STATIC_ROUTE, &ret->routes, err);
	return r < 0 ? r : ctl_read(ctl, KEYS_STATUS_NODE, &ret->status, err);
}

int effect_consent(struct ctl *ctl, const struct change *changes, size_t n,
		   const struct world *world, const char *always, struct err *err)
{
	AUTO_DONE(cluster_done) struct cluster cluster = { .world = world };
	AUTO_DONE(world_done) struct world own = { 0 };
	AUTO_DONE(effects_done) struct effects effects = { 0 };
	AUTO(free) char *text = NULL;
	int r = cluster_read(ctl, &cluster, err);

	if (r == 0 && !world) {
		r = world_read(ctl, &own, err);
		cluster.world = &own;
	}
	if (r < 0)
		return r;
	if (effects_of(changes, n, &cluster, &effects) < 0)
		return -ENOMEM;
	text = effects_text(&effects);
	if (!text)
		return -ENOMEM;
	fputs(text, stderr);
	if (!effects.asks && !always)
		return 0;
	return ctl_ask(ctl, always ?: "Change it?", err);
}
