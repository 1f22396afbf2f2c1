/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attachments and their links: attach, detach and check of the local API, and how an address stays
 * in use until its link is really gone.
 *
 *   assigned --attach--> attached --release--> releasing --link gone--> free
 *
 * An attach writes the file first and then has the kernel make routes and neighbours. A release
 * takes the link out of routing and leaves its destruction to the reaper. Where neither a DEL nor
 * the kernel's event comes, every minute a look at the namespaces of all attachments finds what is
 * gone (ipam/attachments/leaks decides).
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/addresses/ipam_state.h"
#include "ipam/attachments/sighting.h"

#define OWN_IPAM        "roost-ipam"
#define UNPLUG_AGAIN_MS 1000

/* --- attach, check -------------------------------------------------------------------------- */

uint64_t ipam_netns_inode(const char *path)
{
	struct stat st;

	/* Other callers' paths may mean nothing here, and one under /proc another thing later. */
	if (!path[0] || strncmp(path, "/proc/", 6) == 0 || stat(path, &st) < 0)
		return 0;
	return st.st_ino;
}

/* Another plugin gave the addresses: they are recorded, and nobody else's here. 0, or answered. */
static int record_foreign(struct ipam *m, const struct attach_request *q,
			  struct serve_request *request)
{
	AUTO(free) struct held_address *held = calloc(q->addresses.n, sizeof(*held));
	struct attachment like = {
		.network = q->network,
		.container = q->container,
		.interface = q->interface,
		.namespace = q->namespace,
		.pod = q->pod,
		.uid = q->uid,
		.ipam = q->ipam,
		.assigned = (uint64_t)ipam_now(),
		.addresses = { held, q->addresses.n },
	};
	struct attachment *a = NULL;
	char text[ADDRESS_TEXT];

	for (size_t i = 0; held && i < q->addresses.n; i++) {
		const struct holding *h = attachments_holder(allocator_attachments(m->allocator),
							     "", &q->addresses.v[i]);

		held[i] = (struct held_address){ .address = q->addresses.v[i],
						 .length = address_bits(&q->addresses.v[i]) };
		if (!h)
			continue;
		ipam_refuse(m, request, REFUSED_POD(q), CNI_CODE_ADDRESS_IN_USE, false,
			    "%s, which %s gave, is in use by container %s, interface %s",
			    address_print(&q->addresses.v[i], text), q->ipam,
			    h->attachment->container, h->attachment->interface);
		return -EADDRINUSE;
	}
	a = held ? attachment_copy(&like) : NULL;
	if (a && allocator_restore(m->allocator, a, NULL) >= 0)
		return 0;
	attachment_free(a);
	ipam_refuse(m, request, REFUSED_POD(q), CNI_CODE_IO, false, "out of memory");
	return -ENOMEM;
}

/* What it is attached for must be there: 0, or answered. */
static int find_or_record(struct ipam *m, const struct attach_request *q,
			  const struct attachment *a, struct serve_request *request)
{
	const bool foreign = strcmp(q->ipam, OWN_IPAM) != 0;
	struct err why = { "" };

	if (a && a->state == ATTACHMENT_RELEASING)
		ipam_refuse(m, request, REFUSED_POD(q), CNI_CODE_TRY_AGAIN, false,
			    "container %s, interface %s is being released", q->container,
			    q->interface);
	else if (a && attach_verdict(q, a, &why))
		ipam_refuse(m, request, REFUSED_POD(q), CNI_CODE_OTHER_ADDRESSES, false, "%s",
			    why.text);
	else if (a)
		return 0;
	else if (foreign && ipam_drained(m))
		ipam_refuse(m, request, REFUSED_POD(q), CNI_CODE_TRY_AGAIN, true, "%s",
			    ipam_drained_text(m, &why));
	else if (foreign)
		return record_foreign(m, q, request);
	else
		ipam_refuse(m, request, REFUSED_POD(q), CNI_CODE_UNKNOWN_CONTAINER, false,
			    "no addresses are held for container %s, interface %s on network %s",
			    q->container, q->interface, q->network);
	return -EINVAL;
}

static void attach_undo(struct ipam *m, const struct attachment_key *key)
{
	const struct attachment *a = allocator_find(m->allocator, key);

	if (!a)
		return;
	if (strcmp(a->ipam, OWN_IPAM) == 0) {
		allocator_set_state(m->allocator, key, ATTACHMENT_ASSIGNED);
		if (local_copy_put_attachment(m->copy, a) < 0)
			log_error("ipam", "the file of container %s cannot be written",
				  a->container);
		return;
	}
	local_copy_remove_attachment(m->copy, key);
	attachment_free(allocator_release(m->allocator, key, ipam_now()));
}

static struct kernel_pod pod_of(const struct attach_request *q)
{
	return (struct kernel_pod){
		.link = q->link,
		.mac = q->mac,
		.addresses = q->addresses.v,
		.n_addresses = q->addresses.n,
		.route_localnet = q->route_localnet,
	};
}

static void attach(struct ipam *m, const struct attach_request *q, struct serve_request *request)
{
	const struct attachment_key key = request_key(q);
	const struct attachment *a = allocator_find(m->allocator, &key);
	/* A pod that is attached already stays so, whatever becomes of this call. */
	const bool again = a && a->state == ATTACHMENT_ATTACHED;
	const struct attached told = { .link = q->link,
				       .netns = q->netns,
				       .netns_inode = ipam_netns_inode(q->netns),
				       .mac = q->mac,
				       .route_localnet = q->route_localnet };
	const struct kernel_pod pod = pod_of(q);
	const char *refused = again ? NULL : m->o.refuses(q->route_localnet, m->o.arg);
	struct err err = { "" };
	int r;

	if (refused) {
		serve_reply_error(request, 503, CNI_CODE_TRY_AGAIN, NULL, "%s", refused);
		return;
	}
	r = find_or_record(m, q, a, request);
	if (r < 0)
		return;
	pass_mark(m->pass);
	/* The file first: after a crash the pod is there, and the pass makes what is missing. */
	if (allocator_set_attached(m->allocator, &key, &told) < 0) {
		attach_undo(m, &key);
		ipam_refuse(m, request, REFUSED_POD(q), CNI_CODE_IO, false, "out of memory");
		return;
	}
	a = allocator_find(m->allocator, &key);
	r = local_copy_put_attachment(m->copy, a);
	if (r < 0) {
		attach_undo(m, &key);
		ipam_refuse(m, request, REFUSED_POD(q), CNI_CODE_IO, false,
			    "writing the attachment's file: %s", strerror(-r));
		return;
	}
	if (ipam_wants_keys(m, a, true) < 0)
		log_warning("ipam", "out of memory: etcd gets no record of a pod's link");
	r = kernel_attach(m->o.kernel, &pod, &err);
	if (r == 0) {
		ipam_served(m, REFUSED_POD(q));
		serve_reply(request, 200, "{}");
		return;
	}
	if (!again)
		attach_undo(m, &key);
	ipam_refuse(m, request, REFUSED_POD(q), r == -EEXIST ? CNI_CODE_FOREIGN_ROUTE : CNI_CODE_IO,
		    false, "%s", err.text[0] ? err.text : strerror(-r));
}

void ipam_attach(struct ipam *m, struct serve_request *request)
{
	AUTO_DONE(attach_request_done) struct attach_request q = { 0 };

	if (ipam_take(request, attach_request_decode, &q) == 0)
		attach(m, &q, request);
	reaper_added(m->o.reaper);
}

void ipam_check_link(struct ipam *m, struct serve_request *request)
{
	AUTO_DONE(attach_request_done) struct attach_request q = { 0 };
	const struct attachment *a;
	struct attachment_key key;
	struct kernel_pod pod;
	struct err err = { "" };
	int r;

	if (ipam_take(request, attach_request_decode, &q) < 0)
		return;
	key = request_key(&q);
	a = allocator_find(m->allocator, &key);
	pod = pod_of(&q);
	if (!a) {
		serve_reply_error(request, 404, CNI_CODE_UNKNOWN_CONTAINER, NULL,
				  "container %s, interface %s is not attached to network %s",
				  q.container, q.interface, q.network);
		return;
	}
	if (attach_verdict(&q, a, &err)) {
		serve_reply_error(request, 409, CNI_CODE_OTHER_ADDRESSES, NULL, "%s", err.text);
		return;
	}
	r = kernel_check(m->o.kernel, &pod, &err);
	if (r == 0)
		serve_reply(request, 200, "{}");
	else
		serve_reply_error(request, r == -ENOENT ? 409 : 500,
				  r == -ENOENT ? CNI_CODE_OTHER_ADDRESSES : CNI_CODE_IO, NULL, "%s",
				  err.text[0] ? err.text : strerror(-r));
}

/* --- release -------------------------------------------------------------------------------- */

bool ipam_unplug(struct ipam *m, struct kernel_pod pod, const char *container,
		 const char *interface)
{
	char link[IF_NAME_TEXT];
	struct err err = { "" };
	int r;

	/* It follows from the key, also where no attach has told it yet. */
	pod.link = pod_link_name(container, interface, link);
	r = kernel_detach(m->o.kernel, &pod, &err);
	if (r == -ENODEV)
		return false;
	if (r < 0) {
		/* Whether the link is there is not known: then its address stays in use. */
		health_set(m->o.health, "links", LOG_LEVEL_ERROR,
			   "link %s cannot be removed from routing: %s; retrying", pod.link,
			   err.text[0] ? err.text : strerror(-r));
		timer_set(m->o.timers, &m->unplug, UNPLUG_AGAIN_MS, UNPLUG_AGAIN_MS);
	}
	reaper_kick(m->o.reaper);
	return true;
}

static bool unplug(struct ipam *m, const struct attachment *a)
{
	AUTO(free) struct address *room = calloc(a->addresses.n ?: 1, sizeof(*room));

	/* Without the addresses the routes go with the link. */
	return ipam_unplug(m, room ? ipam_kernel_pod(a, room) : (struct kernel_pod){ 0 },
			   a->container, a->interface);
}

bool ipam_held_by_link(struct ipam *m, const struct attachment *a)
{
	struct attachment_key key = attachment_key(a);

	/* Also before the attach: a plugin may have died between its link and telling us. */
	if (!unplug(m, a))
		return false;
	if (a->state == ATTACHMENT_RELEASING)
		return true;
	allocator_set_state(m->allocator, &key, ATTACHMENT_RELEASING);
	/* Without it a restart finds the pod attached, and that its link is gone. */
	if (local_copy_put_attachment(m->copy, a) < 0)
		log_warning("ipam", "the file of container %s cannot be written", a->container);
	m->o.routes_changed(false, m->o.arg);
	return true;
}

/* The first that is being released and, with a link, waits for that one. */
static const struct attachment *releasing(const struct ipam *m, const char *link)
{
	const struct attachments *all = allocator_attachments(m->allocator);

	for (size_t i = 0; i < all->n; i++) {
		const struct attachment *a = all->v[i];
		char name[IF_NAME_TEXT];

		if (a->state == ATTACHMENT_RELEASING &&
		    strcmp(pod_link_name(a->container, a->interface, name), link) == 0)
			return a;
	}
	return NULL;
}

bool ipam_link_doomed(const struct ipam *m, const char *container, const char *interface)
{
	char link[IF_NAME_TEXT];

	return releasing(m, pod_link_name(container, interface, link)) != NULL;
}

void ipam_link_gone(struct ipam *m, const char *link)
{
	const struct attachment *a = releasing(m, link);
	struct attachment_key key;
	struct err err = { "" };

	if (!a)
		return;
	key = attachment_key(a);
	if (ipam_free_addresses(m, &key, NULL, &err) < 0)
		log_error("ipam", "%s", err.text);
}

void ipam_unplug_again(struct ipam *m)
{
	const struct attachments *all = allocator_attachments(m->allocator);

	/* From the end: a release takes just that one out of the table. */
	for (size_t i = all->n; i > 0; i--) {
		const struct attachment *a = all->v[i - 1];
		char link[IF_NAME_TEXT];

		if (a->state != ATTACHMENT_RELEASING || unplug(m, a))
			continue;
		ipam_link_gone(m, pod_link_name(a->container, a->interface, link));
	}
}

/* --- leaks ---------------------------------------------------------------------------------- */

static void release_leak(struct ipam *m, const struct attachment *a, const char *reason)
{
	struct attachment_key key = attachment_key(a);
	struct err err = { "" };

	log_warning("ipam",
		    "leak: pod %s/%s, container %s, interface %s: %s; its addresses are released",
		    a->namespace, a->pod, a->container, a->interface, reason);
	if (ipam_drop(m, &key, NULL, &err) < 0)
		log_error("ipam", "the leaked addresses are not released: %s; retrying", err.text);
}

static int look_for_leaks(struct ipam *m)
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

static void on_leaks_time(void *arg)
{
	struct ipam *m = arg;

	if (look_for_leaks(m) < 0)
		log_error("ipam", "out of memory: leaks are not checked this time");
	timer_set(m->o.timers, &m->leaks, m->o.minute, m->o.minute / 4);
}

static void on_unplug(void *arg)
{
	struct ipam *m = arg;

	health_clear(m->o.health, "links");
	ipam_unplug_again(m);
}

void ipam_links_start(struct ipam *m)
{
	m->unplug = (struct timer){ .fn = on_unplug, .arg = m };
	m->leaks = (struct timer){ .fn = on_leaks_time, .arg = m };
	timer_set(m->o.timers, &m->leaks, m->o.minute, m->o.minute / 4);
}
