/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attachments and their links: what an attach writes down, what the kernel should have
 * because of it, and how an address stays in use until its link is really gone.
 *
 *   assigned --attach--> attached --release--> releasing --link gone--> free
 */
#include "agent/addresses/ipam_parts.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define OWN_IPAM "roost-ipam"

/* --- attach --------------------------------------------------------------------------------- */

static int refuse(struct ipam_refusal *ret, unsigned status, enum cni_code code)
{
	ret->status = status;
	ret->code = code;
	return -EINVAL;
}

static int out_of_memory(struct ipam_refusal *ret)
{
	err_set(&ret->why, 0, "out of memory");
	return refuse(ret, 500, CNI_CODE_IO);
}

uint64_t ipam_netns_inode(const char *path)
{
	struct stat st;

	/* Other callers' paths may mean nothing here, and one under /proc another thing later. */
	if (!path[0] || strncmp(path, "/proc/", 6) == 0 || stat(path, &st) < 0)
		return 0;
	return st.st_ino;
}

/* Another plugin gave the addresses: they are recorded, and nobody else's here. */
static int record_foreign(struct ipam *m, const struct attach_request *q, struct ipam_refusal *ret)
{
	const struct attachments *all = allocator_attachments(m->allocator);
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
	struct attachment *a;
	char text[ADDRESS_TEXT];
	int r;

	if (!held)
		return out_of_memory(ret);
	for (size_t i = 0; i < q->addresses.n; i++) {
		const struct holding *h = attachments_holder(all, "", &q->addresses.v[i]);

		held[i] = (struct held_address){ .address = q->addresses.v[i],
						 .length = address_bits(&q->addresses.v[i]) };
		if (!h)
			continue;
		err_set(&ret->why, 0, "%s, which %s gave, is in use by container %s, interface %s",
			address_print(&q->addresses.v[i], text), q->ipam, h->attachment->container,
			h->attachment->interface);
		return refuse(ret, 409, CNI_CODE_ADDRESS_IN_USE);
	}
	a = attachment_copy(&like);
	r = a ? allocator_restore(m->allocator, a, &ret->why) : -ENOMEM;
	if (r < 0) {
		attachment_free(a);
		return out_of_memory(ret);
	}
	return 0;
}

static int find_or_record(struct ipam *m, const struct attach_request *q, struct ipam_refusal *ret)
{
	struct attachment_key key = attach_request_key(q);
	const struct attachment *a = allocator_find(m->allocator, &key);

	if (a && a->state == ATTACHMENT_RELEASING) {
		err_set(&ret->why, 0, "container %s, interface %s is being released", q->container,
			q->interface);
		return refuse(ret, 503, CNI_CODE_TRY_AGAIN);
	}
	if (a)
		return attach_verdict(q, a, &ret->why) ? refuse(ret, 409, CNI_CODE_OTHER_ADDRESSES)
						       : 0;
	if (strcmp(q->ipam, OWN_IPAM) != 0 && ipam_drained(m)) {
		ipam_drained_text(m, &ret->why);
		return refuse(ret, 503, CNI_CODE_TRY_AGAIN);
	}
	if (strcmp(q->ipam, OWN_IPAM) != 0)
		return record_foreign(m, q, ret);
	err_set(&ret->why, 0, "no addresses are held for container %s, interface %s on network %s",
		q->container, q->interface, q->network);
	return refuse(ret, 404, CNI_CODE_UNKNOWN_CONTAINER);
}

int ipam_attach(struct ipam *m, const struct attach_request *q, struct ipam_refusal *ret)
{
	struct attachment_key key = attach_request_key(q);
	const struct attached told = { q->link, q->netns, ipam_netns_inode(q->netns), q->mac,
				       q->route_localnet };
	int r = find_or_record(m, q, ret);

	if (r < 0)
		return r;
	if (allocator_set_attached(m->allocator, &key, &told) < 0)
		r = out_of_memory(ret);
	if (r == 0) {
		r = local_copy_put_attachment(m->copy, allocator_find(m->allocator, &key));
		if (r < 0) {
			err_set(&ret->why, 0, "writing the attachment's file: %s", strerror(-r));
			r = refuse(ret, 500, CNI_CODE_IO);
		}
	}
	if (r < 0)
		ipam_attach_undo(m, &key);
	else if (ipam_wants_keys(m, allocator_find(m->allocator, &key), true) < 0)
		log_warning("ipam", "out of memory: etcd is not told of a pod's link");
	pass_mark(m->pass);
	return r;
}

void ipam_attach_undo(struct ipam *m, const struct attachment_key *key)
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

const struct attachment *ipam_find(const struct ipam *m, const struct attachment_key *key)
{
	return allocator_find(m->allocator, key);
}

/* --- release -------------------------------------------------------------------------------- */

bool ipam_held_by_link(struct ipam *m, const struct attachment *a)
{
	struct attachment_key key = attachment_key(a);

	/* Also before the attach: a plugin may have died between its link and telling us. */
	if (!m->o.unplug(a, m->o.arg))
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

		if (a->state != ATTACHMENT_RELEASING || m->o.unplug(a, m->o.arg))
			continue;
		ipam_link_gone(m, pod_link_name(a->container, a->interface, link));
	}
}

/* --- what the kernel should have ------------------------------------------------------------ */

static int desire_pods(const struct attachments *all, struct kernel_wants *ret)
{
	size_t n = 0, n_addresses = 0;
	struct address *addresses;

	for (size_t i = 0; i < all->n; i++) {
		if (all->v[i]->state != ATTACHMENT_ATTACHED)
			continue;
		n++;
		n_addresses += all->v[i]->addresses.n;
	}
	/* One piece of memory: the addresses lie behind the pods. */
	ret->pods = calloc(1, n * sizeof(*ret->pods) + n_addresses * sizeof(*addresses) + 1);
	if (!ret->pods)
		return -ENOMEM;
	addresses = (struct address *)(ret->pods + n);
	for (size_t i = 0; i < all->n; i++) {
		const struct attachment *a = all->v[i];

		if (a->state != ATTACHMENT_ATTACHED)
			continue;
		ret->pods[ret->n_pods++] = kernel_pod_of(a, addresses);
		addresses += a->addresses.n;
	}
	return 0;
}

struct kernel_pod kernel_pod_of(const struct attachment *a, struct address *room)
{
	for (size_t i = 0; i < a->addresses.n; i++)
		room[i] = a->addresses.v[i].address;
	return (struct kernel_pod){
		.link = a->link,
		.mac = a->mac,
		.addresses = room,
		.n_addresses = a->addresses.n,
		.route_localnet = a->route_localnet,
	};
}

/*
 * A block that is being given back holds nobody and may be another's in a moment; one whose key
 * vanished stays until it is known to be lost.
 */
static bool is_routed(const struct ipam *m, const struct own_block *b)
{
	const struct owned *o = ipam_owned_find(m, b->network, &b->prefix);

	return (b->state == BLOCK_OWNED || b->state == BLOCK_CLAIMING) && o && !o->copy.unrouted;
}

static int desire_blocks(const struct ipam *m, struct kernel_wants *ret)
{
	const struct blocks *own = allocator_blocks(m->allocator);

	ret->blocks = calloc(own->n ?: 1, sizeof(*ret->blocks));
	if (!ret->blocks)
		return -ENOMEM;
	for (size_t i = 0; i < own->n; i++) {
		const struct own_block *b = own->v[i];

		if (!is_routed(m, b))
			continue;
		ret->ipv6 = ret->ipv6 || b->prefix.address.family == AF_INET6;
		ret->blocks[ret->n_blocks++] = (struct kernel_block){
			.block = b->prefix,
			.no_blackhole = b->prefix.length == address_bits(&b->prefix.address),
		};
	}
	return 0;
}

int ipam_routed_blocks(struct ipam *m, struct prefixes *ret)
{
	const struct blocks *own = allocator_blocks(m->allocator);
	struct prefix *v = calloc(own->n ?: 1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < own->n; i++)
		if (is_routed(m, own->v[i]))
			v[n++] = own->v[i]->prefix;
	*ret = (struct prefixes){ v, n };
	return 0;
}

int ipam_desire(struct ipam *m, struct kernel_wants *ret)
{
	int r = ipam_configure(m);

	*ret = (struct kernel_wants){ 0 };
	r = r ?: desire_pods(allocator_attachments(m->allocator), ret);
	r = r ?: desire_blocks(m, ret);
	if (r < 0) {
		free(TAKE(ret->pods));
		free(TAKE(ret->blocks));
		return r;
	}
	ret->export_table = m->inputs.export_table;
	return 0;
}
