/* SPDX-License-Identifier: Apache-2.0 */
/* The pass: what should be against what is, the difference applied, and what came of it told. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/kernel/kernel_private.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/netlink/request.h"

/* So many are named; the rest is counted. */
#define NAMED_AT_ONCE 10
/* A tunnel goes, is made again, and gets what should be on it. */
#define STEPS 3

/* --- repairs: what another program did ------------------------------------------------------- */

static enum kernel_thing thing_of(const struct change *c)
{
	static const enum kernel_thing things[] = {
		[CHANGE_HOST] = KERNEL_HOST,           [CHANGE_TUNNEL] = KERNEL_TUNNEL,
		[CHANGE_LINK] = KERNEL_LINK,           [CHANGE_ADDRESS] = KERNEL_TUNNEL,
		[CHANGE_NEIGHBOUR] = KERNEL_NEIGHBOUR, [CHANGE_ROUTE] = KERNEL_ROUTE,
	};

	return c->kind == CHANGE_NEIGHBOUR && c->neighbour.fdb ? KERNEL_FDB : things[c->kind];
}

static void report_repairs(struct kernel *k, const struct changes *changes)
{
	static struct log_limit limit = { .interval_ms = 30000 };
	size_t named = 0;

	for (size_t i = 0; i < changes->n; i++) {
		const struct change *c = &changes->v[i];
		const struct presence *h = change_presence(c, &k->view);
		bool changed = c->kind == CHANGE_LINK || c->kind == CHANGE_HOST ||
			       (c->kind == CHANGE_TUNNEL && c->want->index);
		char text[CHANGE_TEXT];

		if (!c->repair || !c->done)
			continue;
		k->stats.repairs++;
		k->stats.repaired[thing_of(c)]++;
		if (h && h->fight.repairs > FIGHT_LOGGED)
			log_limited(&limit, LOG_LEVEL_WARNING, "kernel",
				    "%s was removed or changed by another program again and "
				    "again; restored each time",
				    change_print(c, &k->view, text));
		else if (named++ < NAMED_AT_ONCE)
			log_warning("kernel", "%s was %s by another program; restored",
				    change_print(c, &k->view, text),
				    changed ? "changed" : "removed");
		if (k->options.restored && c->kind == CHANGE_ROUTE &&
		    c->route.protocol == static_route_protocol)
			k->options.restored(&c->route, k->options.arg);
	}
	if (named > NAMED_AT_ONCE)
		log_warning("kernel", "%zu more were removed by another program; restored",
			    named - NAMED_AT_ONCE);
}

/* --- health --------------------------------------------------------------------------------- */

static void report_conflict(struct kernel *k, const struct held_route *r)
{
	char part[HEALTH_PART], dst[PREFIX_TEXT], ours[KROUTE_TEXT], theirs[KROUTE_TEXT], name[12];

	snprintf(part, sizeof(part), "route/%s", prefix_print(&r->route.dst, dst));
	health_set(k->options.health, part, LOG_LEVEL_WARNING,
		   "route %s cannot be added: foreign route %s of protocol %s has the same "
		   "destination; remove it if nothing needs it, or %s",
		   kroute_print(&r->route, kernel_view_link_name(&k->view, r->route.hop.oif), ours),
		   kroute_print(r->foreign, kernel_view_link_name(&k->view, r->foreign->hop.oif),
				theirs),
		   route_protocol_name(r->foreign->protocol, name),
		   r->route.protocol == static_route_protocol ? "delete the static route"
							      : "keep the pools out of its range");
}

static void report_conflicts(struct kernel *k)
{
	size_t n = 0;

	for (size_t i = 0; k->view.n_conflicts && i < k->view.routes.n; i++)
		if (k->view.routes.v[i]->foreign && n++ < NAMED_AT_ONCE)
			report_conflict(k, k->view.routes.v[i]);
	if (n > NAMED_AT_ONCE)
		health_set(k->options.health, "route/others", LOG_LEVEL_WARNING,
			   "%zu more routes cannot be added because of foreign routes",
			   n - NAMED_AT_ONCE);
	health_sweep(k->options.health, "route/");
	k->stats.conflicts = k->view.n_conflicts;
}

static void report_refused(struct kernel *k, const struct desired_kernel *d)
{
	size_t remote = 0;

	for (size_t i = 0; i < d->refused.n; i++) {
		const struct refused_block *r = &d->refused.v[i];
		char part[HEALTH_PART], block[PREFIX_TEXT];

		if (r->remote && remote++ >= NAMED_AT_ONCE)
			continue;
		prefix_print(&r->block, block);
		snprintf(part, sizeof(part), "%s/%s", r->remote ? "overlay-route" : "blackhole",
			 block);
		if (r->remote)
			health_set(k->options.health, part, LOG_LEVEL_ERROR,
				   "no route to block %s of another node: %s", block, r->why);
		else
			health_set(k->options.health, part, LOG_LEVEL_ERROR,
				   "no blackhole for block %s: it would cover %s", block, r->why);
	}
	if (remote > NAMED_AT_ONCE)
		health_set(k->options.health, "overlay-route/others", LOG_LEVEL_ERROR,
			   "no routes to %zu more blocks of other nodes", remote - NAMED_AT_ONCE);
	health_sweep(k->options.health, "blackhole/");
	health_sweep(k->options.health, "overlay-route/");
}

static void report_tunnels(struct kernel *k, const struct desired_kernel *d)
{
	char part[HEALTH_PART];

	for (int i = 0; i < TUNNELS; i++) {
		if (!d->tunnels[i].foreign)
			continue;
		snprintf(part, sizeof(part), "tunnel-device/%s", tunnel_name(i));
		health_set(k->options.health, part, LOG_LEVEL_ERROR,
			   "device %s cannot be created: a device of that name exists and is not "
			   "of kind "
			   "vxlan; remove or rename it",
			   tunnel_name(i));
	}
	health_sweep(k->options.health, "tunnel-device/");
}

/*
 * A loose rp_filter (2) of the whole host is no trouble: without an IPv4 address a pod's link is
 * strict with it, too, and the firewall checks sources anyway.
 */
static void report_host(struct kernel *k, const struct changes *changes)
{
	for (size_t i = 0; i < changes->n; i++) {
		const struct change *c = &changes->v[i];

		if (c->kind != CHANGE_HOST || !c->done || c->repair)
			continue;
		log_info("kernel", "%s was 0; set to 1",
			 c->family == AF_INET ? "net.ipv4.ip_forward"
					      : "net.ipv6.conf.all.forwarding");
		if (k->options.forwards)
			k->options.forwards(c->family, k->options.arg);
	}
}

static void report_failures(struct kernel *k, const struct applied *a)
{
	k->trouble = a->why;
	k->stats.failures += a->failed;
	if (a->failed > 1)
		health_set(k->options.health, "kernel", LOG_LEVEL_ERROR,
			   "%zu changes failed, the first: %s", a->failed, a->why.text);
	else if (a->failed)
		health_set(k->options.health, "kernel", LOG_LEVEL_ERROR, "%s", a->why.text);
	else
		health_clear(k->options.health, "kernel");
}

/* --- the pass ------------------------------------------------------------------------------- */

static int wanted(struct kernel *k, struct desired_kernel *ret)
{
	struct kernel_wants state = { 0 };
	struct prefixes protect = { 0 };
	int r = k->options.desire(&state, k->options.arg);

	if (r == 0 && k->options.protect)
		r = k->options.protect(&protect, k->options.arg);
	if (r == 0)
		r = desired_kernel(&state, &k->view, &protect, ret);
	if (r == 0)
		k->export_table = state.export_table;
	free(state.pods);
	free(state.blocks);
	free(state.tunnels);
	free(state.remotes);
	free(state.remote_blocks);
	free(state.routes);
	free(protect.v);
	return r;
}

/* What should be against what is, the difference applied, and the reports of it. */
static int step(struct kernel *k, bool *ret_again)
{
	uint64_t now = timers_now(k->options.timers);
	AUTO_DONE(desired_kernel_done) struct desired_kernel d = { 0 };
	AUTO_DONE(changes_done) struct changes changes = { 0 };
	struct applied applied = { 0 };
	int r = wanted(k, &d);

	r = r ?: delta_missing(&d, &k->view, now, &changes);
	if (r == 0 && k->open)
		r = delta_surplus(&d, &k->view, &changes);
	if (r < 0)
		return r;
	r = apply_kernel(k->netlink, &k->view, &changes, now, &applied);
	delta_confirm(&d, &k->view);
	report_repairs(k, &changes);
	report_host(k, &changes);
	report_conflicts(k);
	report_refused(k, &d);
	report_tunnels(k, &d);
	report_failures(k, &applied);
	if (changes.next)
		timer_set(k->options.timers, &k->later_timer, changes.next - now, 100);
	else
		timer_clear(k->options.timers, &k->later_timer);
	if (k->options.passed)
		k->options.passed(k->options.arg);
	*ret_again = applied.again;
	return r ?: applied.failed ? -EIO : 0;
}

static int read_and_work(struct kernel *k, struct err *err)
{
	bool again = true;
	int r = 0;

	kernel_drain(k);
	if (k->reread) {
		r = kernel_reread(k, err);
		if (r == 0)
			kernel_view_retry_conflicts(&k->view);
		k->whole = r == 0;
	}
	if (r == 0 && k->view.gateways_stale)
		r = kernel_read_gateways(k);
	for (int i = 0; r == 0 && again && i < STEPS; i++) {
		kernel_drain(k);
		k->view.news = again = false;
		r = step(k, &again);
	}
	return r;
}

int kernel_pass(void *arg)
{
	struct kernel *k = arg;
	struct kernel_stats before = k->stats;
	uint64_t began = clock_monotonic_us();
	struct err err = { 0 };
	int r;

	k->whole = false;
	k->working = true;
	r = read_and_work(k, &err);
	k->working = false;
	k->stats.passes++;
	k->stats.compares += k->whole;
	k->stats.last_pass_us = clock_monotonic_us() - began;
	if (r == 0) {
		k->compared = true;
		k->trouble.text[0] = '\0';
	} else if (r != -EIO || err.text[0]) {
		/* A change that failed has been reported above. */
		if (!err.text[0])
			err_set(&err, r, "the kernel's state: %s", strerrordesc_np(-r));
		k->trouble = err;
		health_set(k->options.health, "kernel", LOG_LEVEL_ERROR, "%s", err.text);
	}
	if (k->options.changed && (before.repairs != k->stats.repairs || k->whole ||
				   before.conflicts != k->stats.conflicts))
		k->options.changed(k->options.arg);
	return r;
}

/* --- the end -------------------------------------------------------------------------------- */

static int clear_pod_links(struct kernel *k, struct err *err)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < k->view.links.n; i++) {
		if (!k->view.links.v[i]->pod)
			continue;
		n++;
		r = netlink_request(k->netlink,
				    request_link_delete(k->view.links.v[i]->link.index, NULL), err);
		/* It went with its pod's namespace. */
		if (r == -ENODEV)
			r = 0;
	}
	if (r == 0 && n)
		log_info("kernel", "removed %zu pod links", n);
	return r;
}

static int clear_rest(struct kernel *k, bool *ret_again, struct err *err)
{
	const struct desired_kernel none = { .statics_known = true };
	AUTO_DONE(changes_done) struct changes changes = { 0 };
	struct applied applied = { 0 };
	char text[CHANGE_TEXT];
	int r = delta_surplus(&none, &k->view, &changes);

	if (r < 0)
		return r;
	for (size_t i = 0; i < changes.n; i++)
		log_debug("kernel", "removing %s", change_print(&changes.v[i], &k->view, text));
	r = apply_kernel(k->netlink, &k->view, &changes, timers_now(k->options.timers), &applied);
	if (r == 0 && applied.failed)
		r = err_set(err, -EIO, "%s", applied.why.text);
	if (r == 0 && changes.n)
		log_info("kernel", "removed %zu routes, neighbours and tunnels", changes.n);
	*ret_again = changes.n > 0;
	return r;
}

int kernel_clear(struct kernel *k, struct err *err)
{
	bool again = true;
	int r = 0;

	/* Until a reading finds nothing. Links first: what leads to a pod that lives is kept. */
	for (int i = 0; r == 0 && again && i < STEPS; i++) {
		r = kernel_reread(k, err);
		r = r ?: clear_pod_links(k, err);
		r = r ?: kernel_reread(k, err);
		r = r ?: clear_rest(k, &again, err);
	}
	if (r == 0 && again)
		r = err_set(err, -EBUSY, "another program restores what is removed");
	return r;
}
