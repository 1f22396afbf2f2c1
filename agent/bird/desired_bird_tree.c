/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan as the data tree that templates/ render.
 *
 * Every name that a template asks for is always there: false, or an empty list,
 * where it does not apply, because rendering is strict. Where 0 is a value the
 * number lies in an object of its own. docs/ROUTING.md lists the names for those
 * who write templates.
 */
#include <errno.h>
#include <string.h>

#include "agent/bird/desired_bird_parts.h"

/* --- sessions ------------------------------------------------------------------------------- */

static void put_channel(struct json_tree *t, struct json_object *list, const struct bird_making *m,
			const struct bird_options *opt, bool four)
{
	struct json_object *o = json_tree_append_object(t, list);

	json_tree_text(t, o, "channel", four ? "ipv4" : "ipv6");
	json_tree_text(t, o, "digit", four ? "4" : "6");
	json_tree_text(t, o, "import", m->filters[opt->import].name);
	json_tree_text(t, o, "export", m->filters[opt->export].name);
	json_tree_flag(t, o, "nextHopSelf", opt->next_hop == BIRD_NEXT_HOP_SELF);
	json_tree_flag(t, o, "nextHopSelfEbgp", opt->next_hop == BIRD_NEXT_HOP_SELF_EBGP);
	json_tree_flag(t, o, "nextHopKeep", opt->next_hop == BIRD_NEXT_HOP_KEEP);
	json_tree_flag(t, o, "gatewayRecursive", opt->gateway_recursive);
	json_tree_flag(t, o, "extendedNextHop", four && opt->extended_next_hop);
}

static struct json_object *put_group(struct json_tree *t, struct json_object *groups, size_t number,
				     const struct bird_making *m, const struct bird_options *opt)
{
	struct json_object *o = json_tree_append_object(t, groups), *channels;
	struct address cluster_id = { .family = AF_INET };
	char name[32];

	snprintf(name, sizeof(name), "group%zu", number);
	json_tree_text(t, o, "group", name);
	json_tree_one(t, o, "multihop", opt->multihop, "hops", opt->multihop);
	json_tree_number(t, o, "holdTime", opt->hold_time);
	json_tree_one(t, o, "keepaliveTime", opt->keepalive_time, "seconds", opt->keepalive_time);
	json_tree_number(t, o, "connectRetryTime", opt->connect_retry_time);
	json_tree_flag(t, o, "gracefulRestart", opt->graceful_restart);
	json_tree_number(t, o, "gracefulRestartTime", opt->graceful_restart_time);
	json_tree_flag(t, o, "useBfd", opt->bfd);
	json_tree_flag(t, o, "ttlSecurity", opt->ttl_security);
	json_tree_one(t, o, "allowLocalAs", opt->allow_local_as, "times", opt->allow_local_as);
	json_tree_flag(t, o, "reflectorClient", opt->rr_client);
	memcpy(cluster_id.bytes, opt->cluster_id, sizeof(opt->cluster_id));
	if (!address_is_unspecified(&cluster_id))
		json_tree_address(t, o, "clusterId", &cluster_id);
	else
		json_tree_flag(t, o, "clusterId", false);
	channels = json_tree_list(t, o, "channels");
	if (opt->ipv4)
		put_channel(t, channels, m, opt, true);
	if (opt->ipv6)
		put_channel(t, channels, m, opt, false);
	return json_tree_list(t, o, "sessions");
}

static void put_session(struct json_tree *t, struct json_object *list, const struct bird_session *s)
{
	struct json_object *o = json_tree_append_object(t, list);
	char address[ADDRESS_TEXT], text[ADDRESS_TEXT + IF_NAME_TEXT + 4];

	json_tree_text(t, o, "name", s->name);
	if (s->neighbour.zone[0])
		snprintf(text, sizeof(text), "%s%%'%s'",
			 address_print(&s->neighbour.address, address), s->neighbour.zone);
	else
		address_print(&s->neighbour.address, text);
	json_tree_text(t, o, "neighbour", text);
	json_tree_number(t, o, "asn", s->asn);
	json_tree_one(t, o, "port", s->port != 179, "number", s->port);
	if (s->local.family)
		json_tree_address(t, o, "local", &s->local);
	else
		json_tree_flag(t, o, "local", false);
	json_tree_one(t, o, "localPort", s->local_port != 179, "number", s->local_port);
	json_tree_number(t, o, "localAsn", s->options.local_asn);
	json_tree_flag(t, o, "passive", s->passive);
	json_tree_text_or(t, o, "password", s->password);
	json_tree_text_or(t, o, "description", s->description);
}

/* Groups come in the order of their first session, so they follow from the records alone. */
static void put_groups(struct json_tree *t, const struct bird_making *m, struct json_object *root)
{
	const struct bird_plan *plan = &m->plan;
	struct json_object *groups = json_tree_list(t, root, "groups");
	const struct bird_options **options = calloc(plan->n_sessions ?: 1, sizeof(*options));
	struct json_object **lists = calloc(plan->n_sessions ?: 1, sizeof(struct json_object *));
	size_t n = 0;

	t->failed |= !options || !lists;
	for (size_t i = 0; i < plan->n_sessions && !t->failed; i++) {
		const struct bird_session *s = &plan->sessions[i];
		size_t g = 0;

		while (g < n && memcmp(options[g], &s->options, sizeof(s->options)) != 0)
			g++;
		if (g == n) {
			options[n] = &s->options;
			lists[n] = put_group(t, groups, n + 1, m, &s->options);
			n++;
		}
		put_session(t, lists[g], s);
	}
	free(options);
	free(lists);
}

/* --- the rest ------------------------------------------------------------------------------- */

static void put_bfd(struct json_tree *t, const struct bird_making *m, struct json_object *root)
{
	const struct config_bfd *c = &m->in->config->bfd;
	struct json_object *o;
	bool any = false;

	for (size_t i = 0; i < m->plan.n_sessions; i++)
		any |= m->plan.sessions[i].options.bfd;
	o = json_tree_object(t, root, "bfd", any);
	if (!o)
		return;
	json_tree_number(t, o, "minRx", c->min_rx);
	json_tree_number(t, o, "minTx", c->min_tx);
	json_tree_number(t, o, "multiplier", c->multiplier);
}

static void put_interfaces(struct json_tree *t, struct json_object *o, const struct texts *from)
{
	struct json_object *list = json_tree_list(t, o, "interfaces");

	for (size_t i = 0; i < from->n; i++) {
		struct json_object *interface = json_tree_append_object(t, list);

		json_tree_text(t, interface, "pattern", from->v[i]);
		json_tree_flag(t, interface, "more", i + 1 < from->n);
	}
	json_tree_flag(t, o, "allInterfaces", from->n == 0);
}

static void put_ospf(struct json_tree *t, const struct bird_making *m, struct json_object *root)
{
	const struct config_ospf *c = &m->in->config->ospf;
	struct json_object *o = json_tree_object(t, root, "ospf", m->ospf);

	if (!o)
		return;
	json_tree_flag(t, o, "ipv4", m->in->ipv4.address.family);
	json_tree_flag(t, o, "ipv6", m->in->ipv6.address.family);
	json_tree_address(t, o, "area", &c->area);
	put_interfaces(t, o, &c->interfaces);
	json_tree_number(t, o, "cost", c->cost);
	json_tree_number(t, o, "hello", c->hello);
	json_tree_number(t, o, "dead", c->dead);
	json_tree_text(t, o, "type", c->type == OSPF_PTP ? "ptp" : "broadcast");
	json_tree_text_or(t, o, "password", m->ospf_password);
}

static void put_rip(struct json_tree *t, const struct bird_making *m, struct json_object *root)
{
	const struct config_rip *c = &m->in->config->rip;
	struct json_object *o = json_tree_object(t, root, "rip", m->rip);

	if (!o)
		return;
	json_tree_flag(t, o, "ipv4", m->in->ipv4.address.family);
	json_tree_flag(t, o, "ipv6", m->in->ipv6.address.family && !m->rip_password);
	put_interfaces(t, o, &c->interfaces);
	json_tree_number(t, o, "updateTime", c->update_time);
	json_tree_number(t, o, "timeoutTime", c->timeout_time);
	json_tree_text_or(t, o, "password", m->rip_password);
}

int bird_tree(struct bird_making *m)
{
	AUTO(json_put) struct json_object *root = json_object_new_object();
	const struct bird_input *in = m->in;
	struct json_object *own;
	struct json_tree t = { 0 };

	if (!root)
		return -ENOMEM;
	json_tree_address(&t, root, "routerId", &in->router_id);
	json_tree_number(&t, root, "kernelProtocol", in->kernel_protocol);
	json_tree_number(&t, root, "ecmp", in->config->bgp.ecmp);
	json_tree_flag(&t, root, "announceStatic", in->config->announce == ANNOUNCE_STATIC);
	json_tree_flag(&t, root, "transit", m->transit);
	json_tree_flag(&t, root, "authenticationOption", in->version >= BIRD_AUTH_OPTION);
	own = json_tree_object(&t, root, "ownCommunities", in->config->bgp.communities.n);
	if (own)
		bird_tree_communities(&t, own, &in->config->bgp.communities);
	json_tree_one(&t, root, "exportTable", in->config->export_table, "table",
		      in->config->export_table);
	bird_tree_families(&t, m, root);
	put_groups(&t, m, root);
	put_bfd(&t, m, root);
	put_ospf(&t, m, root);
	put_rip(&t, m, root);
	json_tree_text_or(&t, root, "snippets", in->snippets);
	if (t.failed)
		return -ENOMEM;
	m->plan.tree = TAKE(root);
	return 0;
}
