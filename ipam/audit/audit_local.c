/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent of a node, its files and its kernel hold, against each other and against etcd.
 * The agent repairs nearly all of it by itself; what lasts is reported.
 */
#include <errno.h>
#include <string.h>

#include "ipam/audit/audit_state.h"
#include "lib/cni/pod_link.h"

#define ATTACHMENT_TEXT 512

/* "pod prod/web-1" where that is known, else its container. */
static const char *pod_of(const struct attachment *x, char *text)
{
	if (x->pod[0])
		snprintf(text, ATTACHMENT_TEXT, "pod %s/%s", x->namespace, x->pod);
	else
		snprintf(text, ATTACHMENT_TEXT, "container %s", x->container);
	return text;
}

/* --- attachments ---------------------------------------------------------------------------- */

static void leak(struct audit *a, const struct attachment *x, const struct leak *l)
{
	char name[ATTACHMENT_TEXT], pod[ATTACHMENT_TEXT], text[ADDRESS_TEXT] = "-";

	if (x->addresses.n)
		address_print(&x->addresses.v[0].address, text);
	snprintf(name, sizeof(name), "%s/%s/%s", x->network, x->container, x->interface);
	finding_new(a, FINDING_LEAK, SEVERITY_WARNING, name, "%s still holds %s, but %s",
		    pod_of(x, pod), text, l->reason);
}

static void leaks(struct audit *a, const struct audit_local *l)
{
	AUTO(free) struct leak *v = calloc(l->n_sightings ?: 1, sizeof(*v));

	if (!v || leaks_judge(l->sightings, l->n_sightings, 1, v) < 0) {
		a->failed = true;
		return;
	}
	for (size_t i = 0; i < l->n_sightings; i++)
		if (v[i].verdict != LEAK_KEEP)
			leak(a, l->sightings[i].attachment, &v[i]);
}

static void without_key(struct audit *a, const struct audit_local *l, const struct attachment *x,
			const struct held_address *held)
{
	char key[KEY_TEXT], pod[ATTACHMENT_TEXT], text[ADDRESS_TEXT];

	/* Another plugin's, or known by its route alone: there is no such key. */
	if (!held->network[0] || x->state == ATTACHMENT_RELEASING ||
	    audit_address(a, l->node, held->network, &held->address) ||
	    key_address(key, l->node, held->network, &held->address) < 0)
		return;
	finding_new(a, FINDING_ATTACHMENT_WITHOUT_KEY, SEVERITY_WARNING, key,
		    "%s holds %s, but etcd has no key of it", pod_of(x, pod),
		    address_print(&held->address, text));
	finding_from_absent(a, key);
}

static bool is_held(const struct audit_local *l, const char *network, const struct address *address)
{
	for (size_t i = 0; i < l->n_sightings; i++) {
		const struct held_addresses *held = &l->sightings[i].attachment->addresses;

		for (size_t j = 0; j < held->n; j++)
			if ((!network || networks_meet(held->v[j].network, network)) &&
			    address_compare(&held->v[j].address, address) == 0)
				return true;
	}
	return false;
}

static void without_attachment(struct audit *a, const struct seen_address *s)
{
	char text[ADDRESS_TEXT];

	finding_new(a, FINDING_KEY_WITHOUT_ATTACHMENT, SEVERITY_WARNING, s->kv->key,
		    "etcd says that this node uses %s, but its agent knows nothing of it",
		    address_print(&s->address, text));
	finding_from(a, s->kv);
}

static void keys(struct audit *a, const struct audit_local *l, const struct seen_node *self)
{
	for (size_t i = 0; i < l->n_sightings; i++) {
		const struct attachment *x = l->sightings[i].attachment;

		for (size_t j = 0; j < x->addresses.n; j++)
			without_key(a, l, x, &x->addresses.v[j]);
	}
	for (size_t i = 0; i < a->addresses.n; i++) {
		const struct seen_address *s = &a->addresses.v[i];

		if (s->node == self && !s->damaged && !s->reserved && self->record.boot &&
		    strcmp(s->boot, self->record.boot) == 0 && !is_held(l, s->network, &s->address))
			without_attachment(a, s);
	}
}

/* --- the kernel ----------------------------------------------------------------------------- */

static bool has_attachment(const struct audit_local *l, const char *link)
{
	for (size_t i = 0; i < l->n_sightings; i++) {
		const struct attachment *x = l->sightings[i].attachment;
		char name[IF_NAME_TEXT];

		if (strcmp(x->link, link) == 0 ||
		    strcmp(pod_link_name(x->container, x->interface, name), link) == 0)
			return true;
	}
	return false;
}

static void stray_link(struct audit *a, const struct audit_link *link)
{
	finding_new(a, FINDING_STRAY_LINK, SEVERITY_WARNING, link->name,
		    "link %s has the name of a pod's link, but no attachment belongs to it",
		    link->name);
	if (link->used) {
		finding_todo(a, "see ip route show dev %s", link->name);
		finding_left(a, "a route leads to it");
		return;
	}
	finding_todo(a, "deletes the link, if it is still so after 12 s: no ADD takes longer");
	finding_unlinks(a, link->index);
}

static bool is_of_block(const struct audit_local *l, const struct prefix *dst)
{
	for (size_t i = 0; i < l->n_blocks; i++)
		if (prefix_compare(&l->blocks[i].block, dst) == 0)
			return true;
	return false;
}

static void stray_route(struct audit *a, const struct audit_route *r)
{
	char text[PREFIX_TEXT], route[PREFIX_TEXT + IF_NAME_TEXT + 16];

	prefix_print(&r->dst, text);
	snprintf(route, sizeof(route), "%s%s%s%s", r->link[0] ? "" : "blackhole ", text,
		 r->link[0] ? " dev " : "", r->link);
	finding_new(a, FINDING_STRAY_ROUTE, SEVERITY_WARNING, route,
		    "route %s has our protocol number, but no %s belongs to it", route,
		    r->link[0] ? "attachment" : "block");
}

static void kernel(struct audit *a, const struct audit_local *l)
{
	for (size_t i = 0; i < l->n_links; i++)
		if (!has_attachment(l, l->links[i].name))
			stray_link(a, &l->links[i]);
	for (size_t i = 0; i < l->n_routes; i++) {
		const struct audit_route *r = &l->routes[i];

		if (r->link[0] ? !is_held(l, NULL, &r->dst.address) : !is_of_block(l, &r->dst))
			stray_route(a, r);
	}
}

/* --- blocks --------------------------------------------------------------------------------- */

static const struct audit_block *local_block(const struct audit_local *l,
					     const struct seen_block *b)
{
	for (size_t i = 0; i < l->n_blocks; i++)
		if (strcmp(l->blocks[i].network, b->network) == 0 &&
		    prefix_compare(&l->blocks[i].block, &b->block) == 0)
			return &l->blocks[i];
	return NULL;
}

static void lost_block(struct audit *a, const struct audit_block *b, const struct seen_block *seen,
		       const char *key)
{
	char text[PREFIX_TEXT];

	finding_new(a, FINDING_LOST_BLOCK, SEVERITY_ERROR, key,
		    "pods of this node use block %s, which belongs to node %s now",
		    prefix_print(&b->block, text),
		    seen && seen->owner ? seen->owner->name : "(unknown)");
	finding_from(a, seen ? seen->kv : NULL);
}

static void file_without_block(struct audit *a, const struct audit_block *b,
			       const struct seen_block *seen, const char *key)
{
	char text[PREFIX_TEXT];

	finding_new(a, FINDING_FILE_WITHOUT_BLOCK, SEVERITY_WARNING, key,
		    "this node holds block %s, but in etcd it %s%s", prefix_print(&b->block, text),
		    seen ? "belongs to node " : "is gone", seen ? seen->owner->name : "");
	if (seen)
		finding_from(a, seen->kv);
	else
		finding_from_absent(a, key);
}

static void held_block(struct audit *a, const struct audit_block *b, const struct seen_node *self)
{
	const struct seen_block *seen = audit_block(a, b->network, &b->block);
	char key[KEY_TEXT];

	if (key_block(key, b->network, &b->block) < 0)
		return;
	if (strcmp(b->state, "lost") == 0)
		lost_block(a, b, seen, key);
	/* One that is damaged is reported already; one on its way to us or back is no news. */
	else if ((!b->held || strcmp(b->state, "owned") == 0) &&
		 (!seen || (seen->owner && seen->owner != self)))
		file_without_block(a, b, seen, key);
}

static void block_without_file(struct audit *a, const struct seen_block *b)
{
	char text[PREFIX_TEXT];

	finding_new(a, FINDING_BLOCK_WITHOUT_FILE, SEVERITY_WARNING, b->kv->key,
		    "block %s belongs to this node, but its run directory has no file of it",
		    prefix_print(&b->block, text));
	finding_from(a, b->kv);
}

void audit_local(struct audit *a)
{
	const struct audit_local *l = a->in->local;
	const struct seen_node *self = audit_node(a, l->node);

	leaks(a, l);
	if (l->kernel)
		kernel(a, l);
	for (size_t i = 0; i < l->n_blocks; i++)
		held_block(a, &l->blocks[i], self);
	/* Without a record of its own nothing in etcd is known to be of this boot. */
	if (!self || !self->kv)
		return;
	keys(a, l, self);
	for (size_t i = 0; i < a->blocks.n; i++) {
		const struct seen_block *b = &a->blocks.v[i];
		const struct audit_block *own = b->owner == self ? local_block(l, b) : NULL;

		if (b->owner == self && (!own || !own->file))
			block_without_file(a, b);
	}
}
