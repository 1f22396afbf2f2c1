/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overlay's devices: made if they are not there, changed in place where the kernel allows it,
 * else removed, so that the next step makes them anew. What is on a device of ours is ours.
 */
#include <stdio.h>
#include <string.h>

#include "agent/kernel/delta_kernel_parts.h"

static unsigned differing(const struct ktunnel *want, const struct held_link *l)
{
	const struct kvxlan *is = &l->link.tunnel;
	unsigned set = 0;

	if (address_compare(&is->local, &want->vxlan.local) != 0)
		set |= TUNNEL_LOCAL;
	if (is->learning)
		set |= TUNNEL_LEARNING;
	if (is->ttl)
		set |= TUNNEL_TTL;
	if (want->mtu && l->link.mtu != want->mtu)
		set |= TUNNEL_MTU;
	if (memcmp(&l->link.mac, &want->mac, sizeof(want->mac)) != 0)
		set |= TUNNEL_MAC;
	if (!l->offload_stale && l->offload != want->offload)
		set |= TUNNEL_OFFLOAD;
	return set;
}

static bool is_repair(const struct kernel_view *view, int which, const struct desired_tunnel *t)
{
	const struct held_tunnel *held = &view->tunnels[which];

	return held->h.confirmed && ktunnel_same(&held->was, &t->is);
}

/* --- what is missing ------------------------------------------------------------------------ */

static int missing_tunnel(int which, const struct desired_tunnel *t, const struct kernel_view *view,
			  uint64_t now, struct changes *ret)
{
	const struct held_link *l = t->index ? kernel_view_link(view, t->index) : NULL;
	struct change c = { .kind = CHANGE_TUNNEL,
			    .tunnel = which,
			    .want = t,
			    .set = TUNNEL_ALL,
			    .repair = is_repair(view, which, t) };

	if (t->stranger || t->outdated)
		return 0;
	if (l)
		c.set = differing(&t->is, l);
	if (!c.set || put_off(&view->tunnels[which].h, now, ret))
		return 0;
	return add_change(ret, &c);
}

int missing_tunnels(const struct desired *d, const struct kernel_view *view, uint64_t now,
		    struct changes *ret)
{
	int err = 0;

	for (int i = 0; err == 0 && i < (int)ARRAY_SIZE(d->tunnels); i++)
		if (d->tunnels[i].wanted)
			err = missing_tunnel(i, &d->tunnels[i], view, now, ret);
	return err;
}

static struct node_address host_address(uint32_t link, const struct address *a)
{
	return (struct node_address){ .link = link,
				      .local = *a,
				      .subnet = prefix_of(a, (uint8_t)address_bits(a)) };
}

int missing_addresses(const struct desired *d, const struct kernel_view *view, uint64_t now,
		      struct changes *ret)
{
	int err = 0;

	for (int i = 0; i < (int)ARRAY_SIZE(d->tunnels); i++) {
		const struct desired_tunnel *t = &d->tunnels[i];

		for (size_t j = 0; err == 0 && t->index && j < t->is.n_addresses; j++) {
			struct change c = { .kind = CHANGE_ADDRESS,
					    .tunnel = i,
					    .repair = is_repair(view, i, t),
					    .address = host_address(t->index,
								    &t->is.addresses[j]) };

			if (!kernel_view_address(view, &c.address) &&
			    !put_off(&view->tunnels[i].h, now, ret))
				err = add_change(ret, &c);
		}
	}
	return err;
}

/* --- what is too much ----------------------------------------------------------------------- */

bool tunnel_goes(const struct desired *d, const struct held_link *l)
{
	const struct desired_tunnel *t;

	if (!l || !l->tunnel)
		return false;
	t = &d->tunnels[tunnel_of_name(l->link.name)];
	return !t->wanted || t->outdated;
}

/* The kernel's own link-local address stays. */
static bool is_wanted(const struct desired_tunnel *t, const struct node_address *a)
{
	struct node_address own;

	if (a->local.family == AF_INET6 && a->local.bytes[0] == 0xfe &&
	    (a->local.bytes[1] & 0xc0) == 0x80)
		return true;
	for (size_t i = 0; i < t->is.n_addresses; i++) {
		own = host_address(a->link, &t->is.addresses[i]);
		if (address_compare(&own.local, &a->local) == 0 &&
		    prefix_compare(&own.subnet, &a->subnet) == 0)
			return true;
	}
	return false;
}

static int surplus_addresses(const struct desired *d, const struct kernel_view *view,
			     struct changes *ret)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < view->n_addresses; i++) {
		const struct node_address *a = &view->addresses[i];
		const struct held_link *l = kernel_view_link(view, a->link);
		struct change c = { .kind = CHANGE_ADDRESS_GONE, .address = *a };

		if (!l || !l->tunnel || tunnel_goes(d, l))
			continue;
		c.tunnel = tunnel_of_name(l->link.name);
		if (!is_wanted(&d->tunnels[c.tunnel], a))
			err = add_change(ret, &c);
	}
	return err;
}

int surplus_tunnels(const struct desired *d, const struct kernel_view *view, struct changes *ret)
{
	int err = surplus_addresses(d, view, ret);

	for (int i = 0; err == 0 && i < (int)ARRAY_SIZE(d->tunnels); i++) {
		const struct held_link *l = kernel_view_link_named(view, tunnel_name(i));
		struct change c = { .kind = CHANGE_TUNNEL_GONE,
				    .tunnel = i,
				    .want = &d->tunnels[i] };

		if (!tunnel_goes(d, l))
			continue;
		c.index = l->link.index;
		err = add_change(ret, &c);
	}
	return err;
}

/* --- marks and words ------------------------------------------------------------------------ */

static bool is_right(const struct desired_tunnel *t, const struct kernel_view *view)
{
	const struct held_link *l = t->index ? kernel_view_link(view, t->index) : NULL;

	if (!l || differing(&t->is, l))
		return false;
	for (size_t i = 0; i < t->is.n_addresses; i++) {
		const struct node_address a = host_address(t->index, &t->is.addresses[i]);

		if (!kernel_view_address(view, &a))
			return false;
	}
	return true;
}

void confirm_tunnels(const struct desired *d, struct kernel_view *view)
{
	for (size_t i = 0; i < ARRAY_SIZE(d->tunnels); i++) {
		if (!is_right(&d->tunnels[i], view))
			continue;
		view->tunnels[i].h.confirmed = true;
		view->tunnels[i].was = d->tunnels[i].is;
	}
}

static size_t print_set(const struct change *c, char *text, size_t size)
{
	static const char *const names[] = { "local", "learning", "ttl",
					     "mtu",   "mac",      "checksum offload" };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && n < size; i++)
		if (c->set & (1u << i))
			n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", names[i]);
	return n;
}

void print_tunnel(const struct change *c, char text[CHANGE_TEXT])
{
	const char *name = tunnel_name(c->tunnel);
	char address[PREFIX_TEXT], what[64] = "";

	if (c->kind == CHANGE_ADDRESS || c->kind == CHANGE_ADDRESS_GONE) {
		snprintf(text, CHANGE_TEXT, "address %s of %s",
			 address_print(&c->address.local, address), name);
		return;
	}
	if (c->kind == CHANGE_TUNNEL && c->want->index)
		print_set(c, what, sizeof(what));
	snprintf(text, CHANGE_TEXT, "device %s%s%s", name, what[0] ? ": " : "", what);
}
