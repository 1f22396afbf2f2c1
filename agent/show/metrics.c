/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/show/metrics.h"

void metrics_kernel(struct metrics *m, const struct kernel_stats *stats,
		    const struct reaper_stats *reaped)
{
	metrics_one(m, "roost_kernel_links", METRIC_GAUGE, "Pods' links in the kernel.",
		    (double)stats->links);
	metrics_one(m, "roost_kernel_routes", METRIC_GAUGE, "Routes of ours in the kernel.",
		    (double)stats->routes);
	metrics_one(m, "roost_kernel_neighbours", METRIC_GAUGE,
		    "Permanent neighbours of ours in the kernel.", (double)stats->neighbours);
	metrics_one(m, "roost_kernel_fdb_entries", METRIC_GAUGE,
		    "Entries in the tables (FDB) of the overlay's devices.", (double)stats->fdb);
	metrics_one(m, "roost_kernel_conflicts", METRIC_GAUGE,
		    "Routes of ours that cannot be set because of foreign routes.",
		    (double)stats->conflicts);
	metrics_family(m, "roost_kernel_repairs_total", METRIC_COUNTER,
		       "Changes and removals by other programs that were reverted, by kind.");
	for (unsigned k = 0; k < KERNEL_THINGS; k++)
		metrics_count(m, LABELS({ "kind", kernel_thing_name(k) }), stats->repaired[k]);
	metrics_family(m, "roost_kernel_failures_total", METRIC_COUNTER,
		       "Changes that the kernel refused.");
	metrics_count(m, NULL, stats->failures);
	metrics_family(m, "roost_kernel_compares_total", METRIC_COUNTER,
		       "Times that everything was read from the kernel and compared.");
	metrics_count(m, NULL, stats->compares);
	metrics_family(m, "roost_links_destroyed_total", METRIC_COUNTER,
		       "Links of released pods that were destroyed.");
	metrics_count(m, NULL, reaped->destroyed);
}

void metrics_firewall(struct metrics *m, struct firewall_stats stats, struct firewall_drops drops)
{
	static const enum firewall_part parts[] = { FIREWALL_NAT, FIREWALL_SOURCES,
						    FIREWALL_PROTECTION };

	metrics_family(m, "roost_firewall_wanted", METRIC_GAUGE,
		       "1 for each part of the table inet roost that is wanted on this node.");
	for (unsigned i = 0; i < FIREWALL_PARTS; i++)
		metrics_count(m, LABELS({ "part", firewall_part_name(parts[i]) }),
			      !!(stats.wanted & parts[i]));
	metrics_family(m, "roost_firewall_set", METRIC_GAUGE,
		       "1 for each part of the table inet roost that the kernel has.");
	for (unsigned i = 0; i < FIREWALL_PARTS; i++)
		metrics_count(m, LABELS({ "part", firewall_part_name(parts[i]) }),
			      !!(stats.held & parts[i]));
	metrics_family(m, "roost_firewall_repairs_total", METRIC_COUNTER,
		       "Times that the table was set again after a change by another program.");
	metrics_count(m, NULL, stats.repairs);
	metrics_family(m, "roost_firewall_drops_total", METRIC_COUNTER,
		       "Packets that the table dropped, by why.");
	for (enum firewall_drop d = 0; d < FIREWALL_DROPS; d++)
		metrics_count(m, LABELS({ "reason", firewall_drop_name(d) }), drops.packets[d]);
	metrics_family(m, "roost_firewall_failures_total", METRIC_COUNTER,
		       "Times that the table could not be set.");
	metrics_count(m, NULL, stats.failures);
}

void metrics_health(struct metrics *m, const struct health *health, const struct readiness *ready)
{
	metrics_problems(m, health);
	metrics_one(m, "roost_ready", METRIC_GAUGE,
		    "1 when a pod could be started here and would be reached.",
		    readiness_is_ready(ready, NULL));
	metrics_family(m, "roost_input_ready", METRIC_GAUGE,
		       "1 for each input that is complete and in sync.");
	for (size_t i = 0; i < ready->n; i++)
		metrics_count(m, LABELS({ "input", ready->v[i].name }),
			      !ready->v[i].reason.text[0]);
}
