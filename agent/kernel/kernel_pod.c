/* SPDX-License-Identifier: Apache-2.0 */
/* One pod, now: attach, detach and check, by the same steps as the pass takes for all. */
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/kernel/kernel_private.h"
#include "lib/netlink/request.h"

/* --- attach --------------------------------------------------------------------------------- */

/* fresh: read again, because some of its settings change without an event. */
static int find_link(struct kernel *k, const char *name, bool fresh, struct held_link **ret,
		     struct err *err)
{
	struct held_link *l;
	int r = 0;

	kernel_drain(k);
	/* The view has every link, unless events were lost. */
	if (fresh || !kernel_view_link_named(&k->view, name))
		r = kernel_read_link(k, &k->view, name, err);
	if (r < 0)
		return err_wrap(err, r, "link %s", name);
	l = kernel_view_link_named(&k->view, name);
	if (!l)
		return err_set(err, -ENODEV, "link %s does not exist", name);
	if (!l->pod)
		return err_set(err, -EINVAL, "%s is not a pod link", name);
	*ret = l;
	return 0;
}

static int wanted_for(const struct kernel_pod *pod, const struct kernel_view *view, bool fresh,
		      struct desired_kernel *ret)
{
	/* It is read alone. */
	struct kernel_wants wants = { .pods = (struct kernel_pod *)(uintptr_t)pod, .n_pods = 1 };
	int r = desired_kernel(&wants, view, NULL, ret);

	for (size_t i = 0; r == 0 && i < ret->n_links; i++)
		ret->links[i].fresh = fresh;
	return r;
}

/* Settings stay: without a route nothing comes by there, and the caller destroys the link. */
static void take_back(struct kernel *k, const struct changes *made)
{
	AUTO_DONE(changes_done) struct changes undo = { 0 };
	struct applied ignored;

	undo.v = calloc(made->n + 1, sizeof(*undo.v));
	for (size_t i = made->n; undo.v && i > 0; i--) {
		struct change c = made->v[i - 1];

		if (!c.done || (c.kind != CHANGE_ROUTE && c.kind != CHANGE_NEIGHBOUR))
			continue;
		c.kind = c.kind == CHANGE_ROUTE ? CHANGE_ROUTE_GONE : CHANGE_NEIGHBOUR_GONE;
		c.done = c.repair = false;
		undo.v[undo.n++] = c;
	}
	apply_kernel(k->netlink, &k->view, &undo, 0, &ignored);
}

static void conflict_error(struct kernel *k, const struct desired_kernel *d, struct err *err)
{
	for (size_t i = 0; i < d->n_routes; i++) {
		const struct held_route *r = kernel_view_route(&k->view, &d->routes[i]);
		char ours[PREFIX_TEXT], theirs[KROUTE_TEXT], protocol[12];

		if (!r || !r->foreign)
			continue;
		err_set(err, -EEXIST, "%s: a foreign route has the same destination: %s proto %s",
			prefix_print(&r->route.dst, ours),
			kroute_print(r->foreign,
				     kernel_view_link_name(&k->view, r->foreign->hop.oif), theirs),
			route_protocol_name(r->foreign->protocol, protocol));
		return;
	}
}

static int first_error(const struct changes *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].result < 0)
			return c->v[i].result;
	return 0;
}

static int attach(struct kernel *k, const struct desired_kernel *d, struct err *err)
{
	AUTO_DONE(changes_done) struct changes changes = { 0 };
	struct applied applied = { 0 };
	/* At the end of time: who attaches does not wait out a fight. */
	int r = delta_missing(d, &k->view, UINT64_MAX, &changes);

	if (r == 0)
		r = apply_kernel(k->netlink, &k->view, &changes, 0, &applied);
	r = r ?: first_error(&changes);
	if (r == -EEXIST)
		conflict_error(k, d, err);
	else if (r < 0)
		err_set(err, r, "%s", applied.failed ? applied.why.text : strerrordesc_np(-r));
	if (r < 0)
		take_back(k, &changes);
	else
		delta_confirm(d, &k->view);
	return r;
}

int kernel_attach(struct kernel *k, const struct kernel_pod *pod, struct err *err)
{
	AUTO_DONE(desired_kernel_done) struct desired_kernel d = { 0 };
	struct held_link *l = NULL;
	int r = find_link(k, pod->link, true, &l, err);

	if (r < 0)
		return r;
	if (!l || pod_link_is_doomed(l->link.group))
		return err_set(err, -EBUSY, "link %s is being destroyed", pod->link);
	/* Only the full compare reads it; setting it costs less than asking. */
	l->link.known |= CONF_BIT(CONF_PROXY_DELAY);
	l->link.conf[CONF_PROXY_DELAY] = -1;
	r = wanted_for(pod, &k->view, true, &d);
	/* An earlier conflict is checked again. */
	for (size_t i = 0; r == 0 && i < d.n_routes; i++) {
		const struct held_route *route = kernel_view_route(&k->view, &d.routes[i]);

		if (route && route->foreign)
			kernel_view_drop_route(&k->view, &d.routes[i]);
	}
	r = r ?: attach(k, &d, err);
	/* Blocks of one address go into the other table too, and only the pass knows which. */
	if (k->export_table)
		pass_mark(k->pass);
	return r;
}

/* --- detach --------------------------------------------------------------------------------- */

static int add_gone(struct changes *c, const struct desired_kernel *d, uint32_t export_table)
{
	c->v = calloc(2 * d->n_routes + d->n_neighbours + 1, sizeof(*c->v));
	if (!c->v)
		return -ENOMEM;
	/* Also what the view does not know of: the kernel says if it was not there. */
	for (size_t i = 0; i < d->n_routes; i++) {
		struct change gone = { .kind = CHANGE_ROUTE_GONE, .route = d->routes[i] };

		c->v[c->n++] = gone;
		gone.route.table = export_table;
		if (export_table)
			c->v[c->n++] = gone;
	}
	for (size_t i = 0; i < d->n_neighbours; i++)
		c->v[c->n++] = (struct change){ .kind = CHANGE_NEIGHBOUR_GONE,
						.neighbour = d->neighbours[i] };
	return 0;
}

static int doom(struct kernel *k, struct held_link *l, struct err *err)
{
	int r = netlink_request(k->netlink, request_link_group(l->link.index, DOOMED_GROUP), err);

	if (r < 0)
		return err_wrap(err, r, "link %s", l->link.name);
	l->link.group = DOOMED_GROUP;
	l->h.confirmed = false;
	return 0;
}

int kernel_detach(struct kernel *k, const struct kernel_pod *pod, struct err *err)
{
	AUTO_DONE(desired_kernel_done) struct desired_kernel d = { 0 };
	AUTO_DONE(changes_done) struct changes gone = { 0 };
	struct applied applied = { 0 };
	struct held_link *l = NULL;
	int r = find_link(k, pod->link, false, &l, err);

	if (r < 0)
		return r;
	r = wanted_for(pod, &k->view, false, &d);
	r = r ?: add_gone(&gone, &d, k->export_table);
	r = r ?: apply_kernel(k->netlink, &k->view, &gone, 0, &applied);
	if (r == 0 && applied.failed)
		r = err_set(err, first_error(&gone), "%s", applied.why.text);
	/* Out of routing or not: the link goes, and takes with it what is left. */
	if (l && !pod_link_is_doomed(l->link.group)) {
		int doomed = doom(k, l, r == 0 ? err : NULL);

		r = r ?: doomed;
	}
	return r;
}

/* --- check ---------------------------------------------------------------------------------- */

static void read_proxy_delay(struct held_link *l)
{
	char path[96], text[16] = "";

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/neigh/%s/proxy_delay", l->link.name);
	AUTO(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return;
	/* In ticks here; only none at all is right. */
	l->link.conf[CONF_PROXY_DELAY] = (int32_t)strtol(text, NULL, 10);
	l->link.known |= CONF_BIT(CONF_PROXY_DELAY);
}

int kernel_check(struct kernel *k, const struct kernel_pod *pod, struct err *err)
{
	AUTO_DONE(kernel_view_done) struct kernel_view fresh = { 0 };
	AUTO_DONE(desired_kernel_done) struct desired_kernel d = { 0 };
	AUTO_DONE(changes_done) struct changes changes = { 0 };
	struct held_link *l;
	char text[CHANGE_TEXT];
	int r = kernel_read_pod(k, pod->link, &fresh, err);

	if (r == -ENODEV)
		return err_set(err, -ENOENT, "link %s does not exist", pod->link);
	if (r < 0)
		return r;
	l = kernel_view_link_named(&fresh, pod->link);
	read_proxy_delay(l);
	/* Without detection it is so for an instant at most. */
	if (l->gateway6 == GATEWAY6_TENTATIVE && l->link.conf[CONF6_ACCEPT_DAD] == 0)
		l->gateway6 = GATEWAY6_READY;
	if (pod_link_is_doomed(l->link.group))
		return err_set(err, -ENOENT, "link %s is being destroyed", pod->link);
	r = wanted_for(pod, &fresh, false, &d);
	r = r ?: delta_missing(&d, &fresh, UINT64_MAX, &changes);
	if (r == 0 && d.n_links == 0)
		r = err_set(err, -ENOENT, "%s is not a pod link", pod->link);
	else if (r == 0 && changes.n > 0)
		r = err_set(err, -ENOENT, "missing or wrong: %s",
			    change_print(&changes.v[0], &fresh, text));
	return r;
}
