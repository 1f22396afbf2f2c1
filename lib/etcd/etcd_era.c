/* SPDX-License-Identifier: Apache-2.0 */
/* Is it still the same etcd? Every reply's header is asked, and every list. */
#include "lib/etcd/etcd_client.h"

struct etcd_known etcd_known(const struct etcd *e, size_t endpoint)
{
	const struct etcd_endpoint *ep = &e->endpoints[endpoint];

	return (struct etcd_known){ e->era, e->revision, ep->member_id, ep->term };
}

static void start_new_era(struct etcd *e)
{
	e->era++;
	e->revision = 0;
	for (size_t i = 0; i < e->n_endpoints; i++)
		e->endpoints[i].term = 0;
	etcd_stream_restart(e);
}

static void learn(struct etcd *e, struct etcd_endpoint *ep, const struct etcd_header *h)
{
	e->cluster_id = h->cluster_id;
	if (h->revision > e->revision)
		e->revision = h->revision;
	if (h->raft_term > ep->term || h->member_id != ep->member_id)
		ep->term = h->raft_term;
	ep->member_id = h->member_id;
}

/*
 * Terms are compared per member: one that caught up by a snapshot of its leader reports its former
 * term until it applies the next entry, whatever its peers report. A member's own term never falls,
 * but a restored one keeps its id and begins at a low term.
 */
void etcd_check_header(struct etcd *e, size_t endpoint, const struct etcd_header *h,
		       const struct etcd_known *known)
{
	struct etcd_endpoint *ep = &e->endpoints[endpoint];
	uint64_t before = e->cluster_id;

	if (!h->cluster_id || known->era != e->era)
		return;
	if (before && h->cluster_id != before) {
		start_new_era(e);
		learn(e, ep, h);
		store_notify(&e->base, STORE_CLUSTER_CHANGED,
			     "another etcd cluster answers: id %016llx, before %016llx",
			     (unsigned long long)h->cluster_id, (unsigned long long)before);
	} else if (h->revision && h->revision < known->revision) {
		start_new_era(e);
		learn(e, ep, h);
		store_notify(&e->base, STORE_REVISION_WENT_BACK,
			     "etcd went back from revision %lld to %lld: restored from a backup?",
			     (long long)known->revision, (long long)h->revision);
	} else if (h->raft_term && h->raft_term < known->term && h->member_id == known->member_id) {
		start_new_era(e);
		learn(e, ep, h);
		store_notify(&e->base, STORE_REVISION_WENT_BACK,
			     "etcd member %016llx went back from raft term %llu to %llu: restored "
			     "from a backup?",
			     (unsigned long long)h->member_id, (unsigned long long)known->term,
			     (unsigned long long)h->raft_term);
	} else {
		learn(e, ep, h);
	}
}

void etcd_key_went_back(struct etcd *e, const char *key)
{
	start_new_era(e);
	store_notify(&e->base, STORE_REVISION_WENT_BACK,
		     "etcd lists %.200s at an older revision than before: restored from a backup?",
		     key);
}
