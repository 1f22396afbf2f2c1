/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/ipam/ipam_local.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>

#include "agent/kernel/kernel_view.h"
#include "agent/node/lock.h"
#include "ipam/attachments/local_copy.h"
#include "ipam/attachments/sighting.h"
#include "lib/base/array.h"
#include "lib/cni/pod_link.h"
#include "lib/json/json.h"
#include "lib/netlink/request.h"

/* What the kernel of this node holds that looks like ours. */
struct kernel_link {
	char name[IF_NAME_TEXT];
	uint32_t index;
};
struct kernel_route {
	struct prefix dst;
	char link[IF_NAME_TEXT]; /* "": it leads nowhere */
};
struct ipam_kernel {
	ARRAY(struct kernel_link) links; /* but those that are being destroyed */
	ARRAY(struct kernel_route) routes;
};

struct ipam_local {
	struct audit_local audit;
	struct json_object *status, *list;
	struct attachment *attachments; /* texts in list */
	struct sighting *sightings;
	size_t n_attachments;
	ARRAY(struct attachment *) files;
	ARRAY(struct block_copy) block_files;
	struct audit_block *blocks;
	struct ipam_kernel kernel;
	struct audit_link *links;
	struct audit_route *routes;
};

void ipam_local_free(struct ipam_local *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n_attachments; i++)
		free(l->attachments[i].addresses.v);
	for (size_t i = 0; i < l->files.n; i++)
		attachment_free(l->files.v[i]);
	free(l->attachments);
	free(l->sightings);
	array_done(&l->files);
	array_done(&l->block_files);
	free(l->blocks);
	array_done(&l->kernel.links);
	array_done(&l->kernel.routes);
	free(l->links);
	free(l->routes);
	json_object_put(l->status);
	json_object_put(l->list);
	free(l);
}

const struct audit_local *ipam_local_audit(const struct ipam_local *l)
{
	return l ? &l->audit : NULL;
}

/* --- the agent's list ----------------------------------------------------------------------- */

static int take_addresses(struct json_object *array, struct attachment *a)
{
	size_t n = json_object_array_length(array);

	a->addresses.v = calloc(n ?: 1, sizeof(*a->addresses.v));
	if (!a->addresses.v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct json_object *o = json_object_array_get_idx(array, i);
		struct held_address *held = &a->addresses.v[a->addresses.n];

		*held = (struct held_address){ .pool = out_text(o, "pool"),
					       .network = out_text(o, "network") };
		if (address_parse(out_text(o, "address"), &held->address) == 0)
			a->addresses.n++;
	}
	return 0;
}

static enum attachment_state state_of(const char *name)
{
	for (int i = ATTACHMENT_ASSIGNED; i <= ATTACHMENT_RELEASING; i++)
		if (strcmp(attachment_state_name(i), name) == 0)
			return i;
	return ATTACHMENT_ASSIGNED;
}

static uint64_t inode_of(const struct ipam_local *l, const struct attachment *a)
{
	for (size_t i = 0; i < l->files.n; i++)
		if (strcmp(l->files.v[i]->container, a->container) == 0 &&
		    strcmp(l->files.v[i]->interface, a->interface) == 0 &&
		    strcmp(l->files.v[i]->network, a->network) == 0)
			return l->files.v[i]->netns_inode;
	return 0;
}

static int take_attachment(struct ipam_local *l, struct json_object *o)
{
	struct attachment *a = &l->attachments[l->n_attachments];
	struct json_object *addresses = out_at(o, "addresses");

	*a = (struct attachment){
		.network = out_text(o, "network"),
		.container = out_text(o, "container"),
		.interface = out_text(o, "interface"),
		.namespace = out_text(o, "namespace"),
		.pod = out_text(o, "pod"),
		.uid = "",
		.netns = out_text(o, "netns"),
		.link = out_text(o, "link"),
		.ipam = "",
		.state = state_of(out_text(o, "state")),
	};
	a->netns_inode = inode_of(l, a);
	l->n_attachments++;
	return addresses ? take_addresses(addresses, a) : 0;
}

static int take_attachments(struct ipam_local *l)
{
	struct json_object *array = out_at(l->list, "attachments");
	size_t n = array ? json_object_array_length(array) : 0;
	int r = 0;

	l->attachments = calloc(n ?: 1, sizeof(*l->attachments));
	l->sightings = calloc(n ?: 1, sizeof(*l->sightings));
	if (!l->attachments || !l->sightings)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = take_attachment(l, json_object_array_get_idx(array, i));
	for (size_t i = 0; i < l->n_attachments; i++) {
		l->sightings[i] = sighting_of(&l->attachments[i]);
		if (!l->audit.kernel)
			l->sightings[i].link = SEEN_UNKNOWN;
	}
	l->audit.sightings = l->sightings;
	l->audit.n_sightings = l->n_attachments;
	return r;
}

/* --- blocks: the agent's and the files' ----------------------------------------------------- */

static struct audit_block *find_block(struct ipam_local *l, const char *network,
				      const struct prefix *block)
{
	for (size_t i = 0; i < l->audit.n_blocks; i++)
		if (prefix_compare(&l->blocks[i].block, block) == 0 &&
		    strcmp(l->blocks[i].network, network) == 0)
			return &l->blocks[i];
	return NULL;
}

static void merge_file(struct ipam_local *l, const struct block_copy *copy)
{
	struct audit_block *b = find_block(l, copy->network, &copy->block);

	if (!b) {
		b = &l->blocks[l->audit.n_blocks++];
		*b = (struct audit_block){
			copy->network, copy->pool, "", copy->block, false, true
		};
	}
	b->file = true;
}

static int take_blocks(struct ipam_local *l)
{
	struct json_object *array = out_at(l->list, "blocks");
	size_t n = array ? json_object_array_length(array) : 0;

	l->blocks = calloc(n + l->block_files.n + 1, sizeof(*l->blocks));
	l->audit.n_blocks = 0;
	if (!l->blocks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct json_object *o = json_object_array_get_idx(array, i);
		struct audit_block *b = &l->blocks[l->audit.n_blocks];

		*b = (struct audit_block){ .network = out_text(o, "network"),
					   .pool = out_text(o, "pool"),
					   .state = out_text(o, "state"),
					   .held = true };
		if (prefix_parse(out_text(o, "block"), &b->block) == 0)
			l->audit.n_blocks++;
	}
	for (size_t i = 0; i < l->block_files.n; i++)
		merge_file(l, &l->block_files.v[i]);
	l->audit.blocks = l->blocks;
	return 0;
}

/* --- files ---------------------------------------------------------------------------------- */

static int take_attachment_file(struct attachment *a, void *arg)
{
	struct ipam_local *l = arg;
	int r = array_append(&l->files, a);

	if (r < 0)
		attachment_free(a);
	return r;
}

static int take_block_file(const struct block_copy *block, void *arg)
{
	struct ipam_local *l = arg;

	return array_append(&l->block_files, *block);
}

static void damaged_file(const char *file, const char *why, void *arg)
{
	fprintf(stderr, "roostctl: note: %s: %s\n", file, why);
}

static int read_files(struct ctl *ctl, struct ipam_local *l, struct err *err)
{
	static const struct local_copy_taker taker = { take_attachment_file, take_block_file,
						       damaged_file };
	AUTO(local_copy_close) struct local_copy *copy = NULL;
	int r = ctl->event ? 0 : sd_event_default(&ctl->event);

	r = r < 0 ? r : local_copy_open(ctl->settings->run_dir, ctl->event, NULL, NULL, &copy, err);
	r = r < 0 ? r : local_copy_read(copy, &taker, l);
	return r < 0 && !err->text[0]
		       ? err_set(err, r, "%s: %s", ctl->settings->run_dir, strerror(-r))
		       : r;
}

/* --- the kernel ----------------------------------------------------------------------------- */

static void forget_links(void *arg)
{
	((struct ipam_kernel *)arg)->links.n = 0;
}

static int take_link(const struct nlmsghdr *hdr, void *arg)
{
	struct ipam_kernel *k = arg;
	struct kernel_link *new;
	struct klink link;

	if (klink_read(hdr, &link) < 0 || !link.veth || !pod_link_is_ours(link.name) ||
	    pod_link_is_doomed(link.group))
		return 0;
	new = array_add(&k->links);
	if (!new)
		return -ENOMEM;
	new->index = link.index;
	memcpy(new->name, link.name, sizeof(new->name));
	return 0;
}

static int take_route(const struct nlmsghdr *hdr, void *arg)
{
	struct ipam_kernel *k = arg;
	struct kernel_route new;
	struct kroute r;

	if (kroute_read(hdr, &r) < 0 || r.protocol != route_protocol)
		return 0;
	new = (struct kernel_route){ .dst = r.dst };
	/*
	 * A link that is gone by now took its routes along. What leads to other nodes is none of a
	 * pod or a block here.
	 */
	if (r.hop.oif && (kroute_has_gateway(&r) || !if_indextoname(r.hop.oif, new.link) ||
			  tunnel_of_name(new.link) >= 0))
		return 0;
	return array_append(&k->routes, new);
}

static int read_all(struct netlink *k, struct ipam_kernel *ret, struct err *err)
{
	int r = netlink_dump(k, ask_link(0, NULL), forget_links, take_link, ret, err);

	/* IPv4's come once; an IPv6 one that comes twice is found twice, and kept once. */
	if (r == 0)
		r = netlink_dump(k, ask_routes(AF_INET, route_protocol, 0, 0), NULL, take_route,
				 ret, err);
	return r
		       ?: netlink_dump(k, ask_routes(AF_INET6, route_protocol, 0, 0), NULL,
				       take_route, ret, err);
}

static int open_kernel(struct netlink **ret, struct err *err)
{
	int r = netlink_open(NETLINK_ROUTE, ret);

	return r < 0 ? err_set(err, r, "netlink: %s", strerror(-r)) : 0;
}

static int ipam_kernel_read(const char *run_dir, struct ipam_kernel *ret, struct err *err)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	int r;

	if (!lock_is_held_here(run_dir))
		return err_set(err, -ENXIO, "no agent runs in this network namespace");
	r = open_kernel(&k, err);
	return r ?: read_all(k, ret, err);
}

/* Not the kernel's own, which every IPv6 link has. */
static int take_use(const struct nlmsghdr *hdr, void *arg)
{
	struct kroute r;

	if (kroute_read(hdr, &r) == 0 && r.protocol != RTPROT_KERNEL)
		*(bool *)arg = true;
	return 0;
}

static bool ipam_kernel_is_used(uint32_t link)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	bool used = false;

	/* What cannot be read counts as a use. */
	if (open_kernel(&k, NULL) < 0 ||
	    netlink_dump(k, ask_routes(AF_INET, 0, 0, link), NULL, take_use, &used, NULL) < 0 ||
	    netlink_dump(k, ask_routes(AF_INET6, 0, 0, link), NULL, take_use, &used, NULL) < 0)
		return true;
	return used;
}

int ipam_local_delete_link(uint32_t link, struct err *err)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	int r = open_kernel(&k, err);

	return r ?: netlink_request(k, request_link_delete(link, NULL), err);
}

/* --- all of it ------------------------------------------------------------------------------ */

static bool has_attachment(const struct ipam_local *l, const char *link)
{
	for (size_t i = 0; i < l->n_attachments; i++)
		if (strcmp(l->attachments[i].link, link) == 0)
			return true;
	return false;
}

static int take_kernel(struct ipam_local *l)
{
	const struct ipam_kernel *k = &l->kernel;

	l->links = calloc(k->links.n + 1, sizeof(*l->links));
	l->routes = calloc(k->routes.n + 1, sizeof(*l->routes));
	if (!l->links || !l->routes)
		return -ENOMEM;
	for (size_t i = 0; i < k->links.n; i++)
		/* Only of those that may be strays it matters. */
		l->links[i] = (struct audit_link){ k->links.v[i].name, k->links.v[i].index,
						   has_attachment(l, k->links.v[i].name) ||
							   ipam_kernel_is_used(
								   k->links.v[i].index) };
	for (size_t i = 0; i < k->routes.n; i++)
		l->routes[i] = (struct audit_route){ k->routes.v[i].dst, k->routes.v[i].link };
	l->audit.links = l->links;
	l->audit.n_links = k->links.n;
	l->audit.routes = l->routes;
	l->audit.n_routes = k->routes.n;
	return 0;
}

/* 0, or 1 and why: no agent, or one that has nothing to say yet. */
static int ask_agent(struct ctl *ctl, struct ipam_local *l, struct err *why)
{
	unsigned status = 0;

	if (ctl_agent(ctl, "GET", "/v1/status", NULL, &status, &l->status, why) < 0)
		return 1;
	l->audit.node = out_text(l->status, "node");
	if (status != 200) {
		err_set(why, 0, "the agent does not serve yet: %s", out_text(l->status, "reason"));
		return 1;
	}
	return ctl_agent(ctl, "GET", "/v1/ipam/list", NULL, NULL, &l->list, why) < 0;
}

static int read_node(struct ctl *ctl, struct ipam_local *l, struct err *why, struct err *err)
{
	int r = ipam_kernel_read(ctl->settings->run_dir, &l->kernel, why);

	if (r == -ENOMEM)
		return r;
	if (r < 0)
		err_wrap(why, 0, "links and routes");
	l->audit.kernel = r == 0;
	if (ask_agent(ctl, l, why) != 0)
		return 1;
	r = read_files(ctl, l, err);
	r = r < 0 ? r : take_attachments(l);
	r = r < 0 ? r : take_blocks(l);
	if (r == 0 && l->audit.kernel)
		r = take_kernel(l);
	return r;
}

int ipam_local_read(struct ctl *ctl, struct ipam_local **ret, struct err *why, struct err *err)
{
	AUTO(ipam_local_free) struct ipam_local *l = calloc(1, sizeof(*l));
	int r = l ? read_node(ctl, l, why, err) : -ENOMEM;

	*ret = NULL;
	if (r < 0)
		return r;
	if (r == 0)
		*ret = TAKE(l);
	return 0;
}
