/* SPDX-License-Identifier: Apache-2.0 */
/* Is it still the same etcd? Every reply's header is asked. */
#include "lib/etcd_client.h"

static void start_new_era(struct etcd *e, const struct etcd_header *h)
{
	e->era++;
	e->cluster_id = h->cluster_id;
	e->revision = h->revision;
	etcd_stream_restart(e);
}

void etcd_check_header(struct etcd *e, const struct etcd_header *h, int64_t floor, unsigned era)
{
	if (!h->cluster_id || era != e->era)
		return;
	if (e->cluster_id && h->cluster_id != e->cluster_id) {
		uint64_t before = e->cluster_id;

		start_new_era(e, h);
		store_notify(&e->base, STORE_CLUSTER_CHANGED,
			     "another etcd cluster answers: id %016llx, before %016llx",
			     (unsigned long long)h->cluster_id, (unsigned long long)before);
		return;
	}
	e->cluster_id = h->cluster_id;
	if (h->revision && h->revision < floor) {
		start_new_era(e, h);
		store_notify(&e->base, STORE_REVISION_WENT_BACK,
			     "etcd went back from revision %lld to %lld: restored from a backup?",
			     (long long)floor, (long long)h->revision);
		return;
	}
	if (h->revision > e->revision)
		e->revision = h->revision;
}
