/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start: what this boot has left behind. Attachment and block files, the
 * records of etcd, and the kernel's routes of ours; everything found is in use.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>

#include "agent/addresses/ipam_state.h"
#include "agent/kernel/kernel_view.h"
#include "ipam/attachments/attachment_file.h"
#include "lib/base/route_protocol.h"
#include "lib/netlink/request.h"

#define MEND_MS 200
/* As long as a restarted agent may take to read etcd before STATUS reports that it does not serve.
 */
#define RESUMING_NS (60 * INT64_C(1000000000))

/* --- files ---------------------------------------------------------------------------------- */

static int restore_attachment(struct attachment *a, void *arg)
{
	struct ipam *m = arg;
	struct err err = { "" };
	int r = allocator_restore(m->allocator, a, &err);

	if (r > 0)
		health_set(m->o.health, "files", LOG_LEVEL_ERROR, "%s", err.text);
	if (r < 0) {
		attachment_free(a);
		return r == -EEXIST ? 0 : r;
	}
	return ipam_wants_keys(m, a, true);
}

static int restore_block(const struct block_copy *copy, void *arg)
{
	struct ipam *m = arg;
	struct err err = { "" };
	struct owned *o = ipam_owned_add(m, copy->network, copy->pool, &copy->block, &copy->cidr);
	int r;

	if (!o)
		return -ENOMEM;
	o->copy = *copy;
	r = allocator_block_set(m->allocator, copy->network, copy->pool, &copy->block,
				copy->lost ? BLOCK_LOST : BLOCK_OWNED, ipam_now(), &err);
	if (r == -EEXIST) {
		health_set(m->o.health, "files", LOG_LEVEL_ERROR, "%s", err.text);
		return 0;
	}
	return r;
}

static void tell_damaged(const char *file, const char *why, void *arg)
{
	struct ipam *m = arg;
	char part[HEALTH_PART];

	m->damaged = m->damaged || strncmp(file, "attachments/", 12) == 0;
	snprintf(part, sizeof(part), "file %s", file);
	health_set(m->o.health, part, LOG_LEVEL_ERROR,
		   "%s/%s is damaged and ignored (%s); its addresses count as in use only if a "
		   "route or etcd says so",
		   m->o.run_dir, file, why);
}

/* Files that were removed under us: the memory is right. */
static void on_tampered(void *arg)
{
	struct ipam *m = arg;
	const struct attachments *all = allocator_attachments(m->allocator);
	size_t missing = 0;
	int r = local_copy_reopen(m->copy);

	r = r ?: ipam_released_open(m);
	for (size_t i = 0; r == 0 && i < all->n; i++) {
		struct attachment_key key = attachment_key(all->v[i]);

		if (attachment_is_mark(all->v[i]) || local_copy_has_attachment(m->copy, &key))
			continue;
		r = local_copy_put_attachment(m->copy, all->v[i]);
		missing++;
	}
	for (size_t i = 0; r == 0 && i < m->owned.n; i++)
		if ((m->owned.v[i]->revision || m->owned.v[i]->copy.lost) && !m->owned.v[i]->call)
			r = local_copy_put_block(m->copy, &m->owned.v[i]->copy);
	if (missing)
		log_warning(
			"ipam",
			"%zu files in %s/attachments were removed by another program; they are %s",
			missing, m->o.run_dir, r < 0 ? "still missing" : "written again");
	/* Whoever removes them may not be done yet. */
	if (r < 0)
		timer_set(m->o.timers, &m->mend, MEND_MS, MEND_MS);
	m->unsaved = true;
	pass_mark(m->pass);
}

/* --- kernel routes -------------------------------------------------------------------------- */

static int mark_route(const struct nlmsghdr *hdr, void *arg)
{
	struct ipam *m = arg;
	char name[IF_NAMESIZE];
	struct kroute route;
	int r;

	if (hdr->nlmsg_type != RTM_NEWROUTE || kroute_read(hdr, &route) < 0 ||
	    route.protocol != route_protocol || route.type != RTN_UNICAST ||
	    route.dst.length != address_bits(&route.dst.address))
		return 0;
	/* The way to another node, of the overlay. */
	if (kroute_has_gateway(&route) ||
	    (if_indextoname(route.hop.oif, name) && tunnel_of_name(name) >= 0))
		return 0;
	r = allocator_mark(m->allocator, "", &route.dst.address, NULL, ipam_now());
	return r < 0 ? r : 0;
}

static int mark_routes(struct ipam *m, struct err *err)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	int r = netlink_open(NETLINK_ROUTE, &k);

	if (r < 0)
		return err_set(err, r, "netlink: %s", strerror(-r));
	for (int i = 0; i < 2 && r == 0; i++) {
		/* A mark set twice is one: nothing to take back when the dump starts again. */
		r = netlink_dump(k, ask_routes(i ? AF_INET6 : AF_INET, 0, 0, 0), NULL, mark_route,
				 m, err);
	}
	return r;
}

int ipam_start(struct ipam *m, struct err *err)
{
	static const struct local_copy_taker taker = { .attachment = restore_attachment,
						       .block = restore_block,
						       .damaged = tell_damaged };
	int r = local_copy_open(m->o.run_dir, m->o.event, on_tampered, m, &m->copy, err);

	if (r < 0)
		return r;
	r = ipam_released_open(m);
	if (r < 0)
		return err_set(err, r, "%s/released: %s", m->o.run_dir, strerror(-r));
	m->mend = (struct timer){ .fn = on_tampered, .arg = m };
	r = ipam_records_load(m);
	m->local = r == 0;
	m->resuming = m->local ? ipam_now() + RESUMING_NS : 0;
	if (r < 0 && r != -ENOENT)
		return err_set(err, r, "%s/records: %s", m->o.run_dir, strerror(-r));
	r = ipam_configure(m);
	r = r ?: local_copy_read(m->copy, &taker, m);
	r = r ?: mark_routes(m, err);
	return r ?: ipam_spool_start(m);
}
