/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bird/desired_bird.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "agent/bird/bird_tree.h"
#include "lib/base/array.h"
#include "lib/base/secret.h"
#include "lib/base/sort.h"
#include "lib/json/json.h"
#include "lib/model/lease_holder.h"

struct bird_offer {
	struct bird_session session;
	const struct peer *peer; /* NULL: mesh */
	bool unfit, taken;       /* taken: its texts are the plan's */
};

struct bird_offers {
	struct bird_offer *v;
	size_t n, room;
};

/* Another node, as far as a session with it is concerned. */
struct bird_other {
	const struct bird_node *node;
	struct labels labels;
	uint32_t asn;
	struct address cluster_id;
};

/* --- problems and secrets ------------------------------------------------------------------- */

PRINTF_LIKE(5, 6)
static int problem(struct bird_making *m, enum bird_level level, const char *kind, const char *name,
		   const char *fmt, ...)
{
	struct bird_problem p = { .level = level };
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&p.text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	if (asprintf(&p.record, "%s%s", kind, name) < 0) {
		free(p.text);
		return -ENOMEM;
	}
	if (array_append(&m->plan.problems, p) < 0) {
		free(p.record);
		free(p.text);
		return -ENOMEM;
	}
	return 0;
}

static int problem_order(const void *a, const void *b)
{
	const struct bird_problem *x = a, *y = b;
	int r = strcmp(x->record, y->record);

	return r ?: strcmp(x->text, y->text);
}

/* The same word may come from the mesh of a selector a thousand times. */
static void sort_problems(struct bird_plan *plan)
{
	struct bird_problem *v = plan->problems.v;
	size_t kept = 0;

	if (plan->problems.n)
		qsort(v, plan->problems.n, sizeof(*v), problem_order);
	for (size_t i = 0; i < plan->problems.n; i++) {
		if (kept && problem_order(&v[kept - 1], &v[i]) == 0) {
			free(v[i].record);
			free(v[i].text);
		} else {
			v[kept++] = v[i];
		}
	}
	plan->problems.n = kept;
}

/* There is room for all of the input's passwords. NULL: no memory. */
static const char *keep_secret(struct bird_plan *plan, const char *text)
{
	for (size_t i = plan->secrets.n; i-- > 0;)
		if (strcmp(plan->secrets.v[i], text) == 0)
			return plan->secrets.v[i];
	text = strdup(text);
	if (text)
		plan->secrets.v[plan->secrets.n++] = text;
	return text;
}

static const struct bird_password *find_password(const struct bird_input *in, const char *path)
{
	for (size_t i = 0; i < in->n_passwords; i++)
		if (strcmp(in->passwords[i].path, path) == 0)
			return &in->passwords[i];
	return NULL;
}

/* 1 and *ret (NULL for no file), 0 when it cannot be had (reported as a problem), or -ENOMEM. */
static int secret(struct bird_making *m, const char *kind, const char *name, const char *field,
		  const char *path, const char **ret)
{
	const struct bird_password *found;
	struct err why;

	*ret = NULL;
	if (!path || !path[0])
		return 1;
	found = find_password(m->in, path);
	if (!found || !found->text)
		return problem(m, BIRD_PROBLEM, kind, name,
			       "field \"%s\": %s; left out until it can be read", field,
			       found && found->reason ? found->reason : "was not read");
	if (password_check(found->text, &why) < 0)
		return problem(m, BIRD_PROBLEM, kind, name, "field \"%s\": %s: %s; left out", field,
			       path, why.text);
	*ret = keep_secret(&m->plan, found->text);
	return *ret ? 1 : -ENOMEM;
}

/* --- blocks --------------------------------------------------------------------------------- */

bool bird_extent_announced(const struct bird_extent *e)
{
	if (!e->pool)
		return !e->silent && strcmp(e->extent->network, "default") == 0;
	/* Disabled means no new claims: what is held stays, and stays known. */
	return e->pool->routed && e->pool->announce;
}

static bool is_announced(const struct bird_input *in, const struct prefix *block)
{
	for (size_t i = 0; i < in->n_extents; i++) {
		const struct bird_extent *e = &in->extents[i];

		if (bird_extent_announced(e) && e->extent->block_size == block->length &&
		    prefix_contains_prefix(&e->extent->cidr, block))
			return true;
	}
	return false;
}

static int prefix_order(const void *a, const void *b)
{
	return prefix_compare(a, b);
}

static int announced_blocks(struct bird_making *m)
{
	const struct bird_input *in = m->in;
	struct bird_plan *plan = &m->plan;

	plan->announced = calloc(in->n_blocks ?: 1, sizeof(*plan->announced));
	if (!plan->announced)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_blocks; i++)
		if (is_announced(in, &in->blocks[i]))
			plan->announced[plan->n_announced++] = in->blocks[i];
	qsort(plan->announced, plan->n_announced, sizeof(*plan->announced), prefix_order);
	return 0;
}

/* --- names ---------------------------------------------------------------------------------- */

#define HASH_TEXT 9

/* FNV-1a; names that differ only in marks that BIRD does not take stay different. */
static const char *hash_text(const char *text, char *ret)
{
	uint32_t h = 2166136261U;

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 16777619U;
	snprintf(ret, HASH_TEXT, "%08x", h);
	return ret;
}

/* Letters and digits as they are, all else as '_'. */
static void plain(char *text)
{
	for (; *text; text++)
		if (!((*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'z') ||
		      (*text >= 'A' && *text <= 'Z')))
			*text = '_';
}

static bool is_plain(const char *text)
{
	char copy[BIRD_NAME_TEXT];

	snprintf(copy, sizeof(copy), "%s", text);
	plain(copy);
	return strcmp(copy, text) == 0;
}

/* n_192_0_2_1, n_fd00__2, n_fe80__1_eth0; an interface with other marks gets its hash too. */
static void protocol_name(const struct neighbour *n, char *ret)
{
	char address[ADDRESS_TEXT], hash[HASH_TEXT];
	bool zone = n->zone[0] != '\0';

	snprintf(ret, BIRD_NAME_TEXT, "n_%s%s%s", address_print(&n->address, address),
		 zone ? "_" : "", n->zone);
	plain(ret);
	if (zone && !is_plain(n->zone)) {
		size_t len = strlen(ret);

		snprintf(ret + len, BIRD_NAME_TEXT - len, "_%.5s", hash_text(n->zone, hash));
	}
}

/* in, out; in_tor; out_rack_7_0a1b2c3d where the record's name does not fit BIRD's. */
static void filter_name(struct bird_filter *f)
{
	const char *direction = f->verify_owner ? "in_owned" : f->import ? "in" : "out";
	char name[31], hash[HASH_TEXT], asn[16] = "";

	if (!f->record) {
		snprintf(f->name, sizeof(f->name), "%s", direction);
		return;
	}
	snprintf(name, sizeof(name), "%s", f->record->name);
	plain(name);
	if (f->prepend_asn)
		snprintf(asn, sizeof(asn), "_as%u", f->prepend_asn);
	if (strcmp(name, f->record->name) == 0)
		snprintf(f->name, sizeof(f->name), "%s_%s%s_", direction, name, asn);
	else
		snprintf(f->name, sizeof(f->name), "%s_%s_%s%s_", direction, name,
			 hash_text(f->record->name, hash), asn);
}

/* --- filters -------------------------------------------------------------------------------- */

static bool prepends(const struct filter *f)
{
	for (size_t i = 0; i < f->rules.n; i++)
		if (f->rules.v[i].set.prepend)
			return true;
	return false;
}

static int filter_number(struct bird_making *m, const struct bird_filter *want, uint32_t *ret)
{
	struct bird_filter *v;

	for (size_t i = 0; i < m->filters.n; i++)
		if (m->filters.v[i].record == want->record &&
		    m->filters.v[i].import == want->import &&
		    m->filters.v[i].verify_owner == want->verify_owner &&
		    m->filters.v[i].prepend_asn == want->prepend_asn) {
			*ret = (uint32_t)i;
			return 1;
		}
	v = array_add(&m->filters);
	if (!v)
		return -ENOMEM;
	*v = *want;
	filter_name(v);
	*ret = (uint32_t)m->filters.n - 1;
	return 1;
}

static int one_filter(struct bird_making *m, const struct peer *p, bool import, bool ebgp,
		      const struct bird_options *o, uint32_t *ret)
{
	struct bird_filter want = { .import = import, .verify_owner = import && o->verify_owner };
	struct err why;
	int r = p ? peer_filter(p, import, m->in->filters, m->in->n_filters, &want.record, &why)
		  : 0;

	if (r < 0) {
		r = problem(m, BIRD_PROBLEM, "peer/", p->name, "%s; left out", why.text);
		return r < 0 ? r : 0;
	}
	if (!want.record)
		return filter_number(m, &want, ret);
	/* Inside one AS the own number in the path would make the neighbour drop the route. */
	if (ebgp && prepends(want.record))
		want.prepend_asn = o->local_asn;
	return filter_number(m, &want, ret);
}

/* Chooses (and makes) the filters of a session: 1, 0 when one is absent, or -ENOMEM. */
static int choose_filters(struct bird_making *m, const struct peer *p, bool ebgp,
			  struct bird_options *o)
{
	int in = one_filter(m, p, true, ebgp, o, &o->import);
	int out = in < 0 ? in : one_filter(m, p, false, ebgp, o, &o->export);

	if (in < 0 || out < 0)
		return -ENOMEM;
	return in && out;
}

/* --- one offer of a session ----------------------------------------------------------------- */

/*
 * Who has a BGP session with whom.
 *
 *   peers by address, peers by selector, mesh -> offers -> one per neighbour -> sessions
 *
 * Every way to a session makes an offer; sorted by neighbour, the best of each
 * stays: a peer record before the mesh, peer records by name. An offer that
 * cannot be kept (no password, no filter) still stands for its neighbour, so
 * that nothing weaker takes its place, and falls out at the end.
 */

static const struct address *address_of(const struct node *node, sa_family_t family)
{
	return family == AF_INET ? &node->ipv4.address : &node->ipv6.address;
}

static const struct prefix *own_prefix(const struct bird_making *m, sa_family_t family)
{
	return family == AF_INET ? &m->in->ipv4 : &m->in->ipv6;
}

static bool is_own(const struct bird_making *m, const struct address *a)
{
	const struct prefix *own = own_prefix(m, a->family);

	return own->address.family && address_compare(&own->address, a) == 0;
}

static bool on_link(const struct bird_making *m, const struct address *a)
{
	const struct prefix *own = own_prefix(m, a->family);

	return own->address.family && prefix_contains(own, a);
}

static const struct bird_node *node_at(const struct bird_making *m, const struct address *a)
{
	for (size_t i = 0; i < m->in->n_nodes; i++) {
		const struct address *theirs = address_of(m->in->nodes[i].node, a->family);

		if (theirs->family && address_compare(theirs, a) == 0)
			return &m->in->nodes[i];
	}
	return NULL;
}

static struct bird_offer *add_offer(struct bird_offers *offers, const char *kind, const char *name)
{
	struct bird_offer *o = array_add(offers);

	if (o && asprintf(&o->session.record, "%s%s", kind, name) < 0) {
		offers->n--;
		o = NULL;
	}
	return o;
}

static void offers_done(struct bird_offers *offers)
{
	for (size_t i = 0; i < offers->n; i++) {
		if (offers->v[i].taken)
			continue;
		free(offers->v[i].session.record);
		free(offers->v[i].session.description);
	}
	free(offers->v);
}

static uint32_t number_or(uint32_t said, uint32_t usual)
{
	return said == UNSET ? usual : said;
}

static bool flag_or(enum maybe said, bool usual)
{
	return said == MAYBE_UNSET ? usual : said == MAYBE_YES;
}

/* The options that config gives, then what the record says otherwise. p is NULL for the mesh. */
static struct bird_options bird_options(const struct bird_making *m, const struct peer *p)
{
	const struct config_bgp *c = &m->in->config->bgp;
	struct bird_options o;

	memset(&o, 0, sizeof(o)); /* compared as bytes */
	o.local_asn = p && p->local_asn ? p->local_asn : m->asn;
	o.hold_time = p ? number_or(p->hold_time, c->hold_time) : c->hold_time;
	o.keepalive_time = p ? number_or(p->keepalive_time, c->keepalive_time) : c->keepalive_time;
	o.connect_retry_time = p ? number_or(p->connect_retry_time, c->connect_retry_time)
				 : c->connect_retry_time;
	o.graceful_restart_time = p ? number_or(p->graceful_restart_time, c->graceful_restart_time)
				    : c->graceful_restart_time;
	o.graceful_restart = p ? flag_or(p->graceful_restart, c->graceful_restart)
			       : c->graceful_restart;
	o.bfd = p ? flag_or(p->bfd, c->bfd) : c->bfd;
	o.ttl_security = c->ttl_security;
	if (p) {
		o.allow_local_as = p->allow_local_as;
		o.ttl_security = p->ttl_security;
	}
	return o;
}

/* Same address, same side: this node reflects for neighbours that are not of its own cluster. */
static bool is_client(const struct bird_making *m, const struct address *cluster_id)
{
	return m->cluster_id.family &&
	       !(cluster_id->family && address_compare(cluster_id, &m->cluster_id) == 0);
}

/*
 * Direct where the neighbour is known to be on our own link: then BIRD takes next hops as they
 * are. What is off-link in the same AS needs multihop, as BIRD does by itself; a neighbour in
 * another AS is taken to be on some link, as BIRD does too, unless the record says how far.
 */
static uint32_t hops_to(const struct bird_making *m, const struct peer *p,
			const struct neighbour *n, bool ebgp)
{
	if (p && p->multihop)
		return p->multihop;
	if (n->zone[0] || on_link(m, &n->address) || (ebgp && p && p->address.address.family))
		return 0;
	return 64;
}

/* What follows from the neighbour, its AS and its cluster. */
static void settle(const struct bird_making *m, struct bird_offer *o,
		   const struct address *cluster_id)
{
	struct bird_session *s = &o->session;
	struct bird_options *opt = &s->options;
	const struct peer *p = o->peer;
	bool ebgp = s->asn != opt->local_asn;

	protocol_name(&s->neighbour, s->name);
	opt->multihop = hops_to(m, p, &s->neighbour, ebgp);
	opt->rr_client = !ebgp && p && (p->reflector_client || is_client(m, cluster_id));
	if (opt->rr_client)
		memcpy(opt->cluster_id, m->cluster_id.bytes, sizeof(opt->cluster_id));
	/* Next hops that a reflector or a border router leaves as they are may be off our link. */
	opt->gateway_recursive = !ebgp && p && !opt->multihop && !s->neighbour.zone[0];
	if (p && p->next_hop_keep)
		opt->next_hop = BIRD_NEXT_HOP_KEEP;
	else if (p && !p->next_hop_self)
		opt->next_hop = BIRD_NEXT_HOP_PLAIN;
	else
		opt->next_hop = BIRD_NEXT_HOP_SELF;
	opt->extended_next_hop = opt->ipv4 && s->neighbour.address.family == AF_INET6;
}

/* What a record says in vain is told, and does no harm. */
static int note_useless_fields(struct bird_making *m, struct bird_offer *o)
{
	struct bird_options *opt = &o->session.options;
	const struct peer *p = o->peer;
	int r = 0;

	if (opt->keepalive_time && opt->keepalive_time >= opt->hold_time) {
		r = problem(m, BIRD_NOTICE, "peer/", p->name,
			    "field \"keepaliveTime\": %u is not less than the hold time %u; a "
			    "third of that is used",
			    opt->keepalive_time, opt->hold_time);
		opt->keepalive_time = 0;
	}
	if (r == 0 && p->reflector_client && !opt->rr_client)
		r = problem(
			m, BIRD_NOTICE, "peer/", p->name,
			"field \"reflectorClient\": has no effect on a neighbour in another AS");
	return r;
}

/* Password, filters, times: what may make an offer unfit. 0 or -ENOMEM. */
static int fit(struct bird_making *m, struct bird_offer *o)
{
	const struct peer *p = o->peer;
	int r = choose_filters(m, p, o->session.asn != o->session.options.local_asn,
			       &o->session.options);

	if (r < 0)
		return r;
	o->unfit = r == 0;
	r = p ? secret(m, "peer/", p->name, "passwordFile", p->password_file, &o->session.password)
	      : secret(m, "config", "", "bgp.passwordFile", m->in->config->bgp.password_file,
		       &o->session.password);
	if (r < 0)
		return r;
	o->unfit |= r == 0;
	if (!p)
		return 0;
	if (p->description && p->description[0]) {
		o->session.description = strdup(p->description);
		if (!o->session.description)
			return -ENOMEM;
	}
	return note_useless_fields(m, o);
}

static bool wants(const struct peer *p, enum family family)
{
	for (size_t i = 0; i < p->families.n; i++)
		if (p->families.v[i] == family)
			return true;
	return false;
}

/* A session carries its own family; IPv4 goes over IPv6 where there is no other way. */
static void channels_to(const struct bird_making *m, const struct peer *p, struct bird_options *opt)
{
	bool four = p->address.address.family == AF_INET;

	if (p->families.n) {
		opt->ipv4 = wants(p, FAMILY_IPV4);
		opt->ipv6 = wants(p, FAMILY_IPV6);
		return;
	}
	opt->ipv4 = four || p->address.zone[0] || !m->in->ipv4.address.family;
	opt->ipv6 = !four;
}

static int offer_address(struct bird_making *m, struct bird_offers *offers, const struct peer *p)
{
	const struct address *neighbour = &p->address.address, *none = &(struct address){ 0 };
	const struct bird_node *known;
	struct bird_offer *o;

	if (is_own(m, neighbour))
		return 0;
	o = add_offer(offers, "peer/", p->name);
	if (!o)
		return -ENOMEM;
	o->peer = p;
	o->session.options = bird_options(m, p);
	o->session.neighbour = p->address;
	o->session.asn = p->asn;
	o->session.port = p->port ?: 179;
	o->session.local_port = m->in->config->bgp.listen_port;
	o->session.passive = p->passive;
	channels_to(m, p, &o->session.options);
	known = node_at(m, neighbour);
	settle(m, o, known && known->spec ? &known->spec->route_reflector_cluster_id : none);
	if (p->source_address.family)
		o->session.local = p->source_address;
	else if (!p->address.zone[0] && (o->session.options.multihop || on_link(m, neighbour)))
		o->session.local = own_prefix(m, neighbour->family)->address;
	return fit(m, o);
}

/*
 * A neighbour that does not expect TTL security sends less than 255, and has no session: so only
 * where both ends come to the same result, from the subnets in both records.
 */
static int settle_mesh_ttl(struct bird_making *m, struct bird_offer *o, const struct node *node)
{
	sa_family_t over = o->session.neighbour.address.family;
	const struct prefix *theirs = over == AF_INET ? &node->ipv4 : &node->ipv6;

	if (!o->session.options.ttl_security ||
	    (!o->session.options.multihop && prefix_contains(theirs, &o->session.local)))
		return 0;
	o->session.options.ttl_security = false;
	return problem(
		m, BIRD_NOTICE, "config", "",
		"field \"bgp.ttlSecurity\": some nodes are not in a subnet of this node: their "
		"sessions have no TTL security");
}

/*
 * An earlier selector has this neighbour: the later one would lose in choose() anyway, and an offer of
 * each record to each node is what made many of both costly. One sentence for each record.
 */
static int is_twin(struct bird_making *m, const struct bird_offers *offers, const struct peer *p,
		   const struct address *neighbour)
{
	char text[ADDRESS_TEXT];

	for (size_t i = m->node_offers; p && i < offers->n; i++) {
		const struct bird_offer *o = &offers->v[i];

		if (!o->peer || o->peer == p ||
		    address_compare(&o->session.neighbour.address, neighbour) != 0)
			continue;
		if (m->twins[m->peer])
			return 1;
		m->twins[m->peer] = true;
		return problem(m, BIRD_PROBLEM, "peer/", p->name,
			       "has the same neighbour as %s, %s; left out", o->session.record,
			       address_print(neighbour, text)) < 0
			       ? -ENOMEM
			       : 1;
	}
	return 0;
}

/* One session with a node, over one family. p is NULL for the mesh. */
static int offer_node(struct bird_making *m, struct bird_offers *offers, const struct peer *p,
		      const struct bird_other *other, sa_family_t over, bool ipv4, bool passive)
{
	const struct node *node = other->node->node;
	int twin = is_twin(m, offers, p, address_of(node, over));
	struct bird_offer *o;

	if (twin)
		return twin < 0 ? twin : 0;
	o = p ? add_offer(offers, "peer/", p->name) : add_offer(offers, "node/", node->name);
	if (!o)
		return -ENOMEM;
	o->peer = p;
	o->session.options = bird_options(m, p);
	o->session.neighbour.address = *address_of(node, over);
	o->session.local = own_prefix(m, over)->address;
	o->session.asn = other->asn;
	o->session.port = p && p->port ? p->port : m->in->config->bgp.listen_port;
	o->session.local_port = o->session.port;
	o->session.passive = passive;
	/* A reflector passes on what others own, after it has verified its clients. */
	o->session.options.verify_owner = m->in->config->bgp.verify_owners &&
					  !other->cluster_id.family;
	o->session.options.ipv4 = ipv4;
	o->session.options.ipv6 = over == AF_INET6 &&
				  (!p || !p->families.n || wants(p, FAMILY_IPV6));
	settle(m, o, &other->cluster_id);
	if (!p && settle_mesh_ttl(m, o, node) < 0)
		return -ENOMEM;
	return fit(m, o);
}

/* Can there be a session over that family? Tells what a person should know. */
static int reachable(struct bird_making *m, const struct node *node, sa_family_t family)
{
	const struct address *a = address_of(node, family);

	if (!a->family || !own_prefix(m, family)->address.family)
		return 0;
	if (is_own(m, a))
		return problem(m, BIRD_PROBLEM, "node/", node->name,
			       "field \"%s\": is this node's own address; no session with it",
			       family == AF_INET ? "ipv4" : "ipv6");
	if (address_is_no_neighbour(a) || address_is_link_local(a))
		return problem(m, BIRD_PROBLEM, "node/", node->name,
			       "field \"%s\": is no address for a session; left out",
			       family == AF_INET ? "ipv4" : "ipv6");
	return 1;
}

/* The sessions with one node: one per family that both have. */
static int offer_pair(struct bird_making *m, struct bird_offers *offers, const struct peer *p,
		      const struct bird_other *other, bool passive)
{
	bool any = !p || !p->families.n;
	bool ipv4 = any || wants(p, FAMILY_IPV4), ipv6 = any || wants(p, FAMILY_IPV6);
	int four = reachable(m, other->node->node, AF_INET);
	int six = four < 0 ? four : reachable(m, other->node->node, AF_INET6);
	int r = six < 0 ? six : 0;

	if (r == 0 && four && ipv4)
		r = offer_node(m, offers, p, other, AF_INET, true, passive);
	if (r == 0 && six && (ipv6 || (ipv4 && !four)))
		r = offer_node(m, offers, p, other, AF_INET6, ipv4 && !four, passive);
	return r;
}

/* --- all offers ----------------------------------------------------------------------------- */

/* A node's labels with the implicit one; free() ret->v. */
static int labels_of(const char *name, const struct node_spec *spec, struct labels *ret)
{
	static const char hostname[] = "kubernetes.io/hostname";
	size_t n = spec ? spec->labels.n : 0, kept = 0;
	struct label *v = calloc(n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	/* Whatever the record says, the implicit label is the node's name. */
	v[kept++] = (struct label){ hostname, name };
	for (size_t i = 0; i < n; i++)
		if (strcmp(spec->labels.v[i].key, hostname) != 0)
			v[kept++] = spec->labels.v[i];
	*ret = (struct labels){ v, kept };
	return 0;
}

/* Is this node one of the peer's own end? */
static bool peer_has_node(const struct peer *p, const char *name, const struct labels *labels)
{
	if (!p->nodes.n)
		return selector_matches(p->node_selector.parsed, labels);
	for (size_t i = 0; i < p->nodes.n; i++)
		if (strcmp(p->nodes.v[i], name) == 0)
			return true;
	return false;
}

/* In a pair that a record names from both sides exactly one is passive: the lower address. */
static bool is_lower(const struct bird_making *m, const struct bird_other *other)
{
	sa_family_t family = m->in->ipv4.address.family && other->node->node->ipv4.address.family
				     ? AF_INET
				     : AF_INET6;

	return address_compare(&own_prefix(m, family)->address,
			       address_of(other->node->node, family)) < 0;
}

static int offer_selected(struct bird_making *m, struct bird_offers *offers, const struct peer *p,
			  const struct labels *own, const struct bird_other *other)
{
	const char *name = other->node->node->name;
	bool here = peer_has_node(p, m->in->self, own) &&
		    selector_matches(p->peer_selector.parsed, &other->labels);
	bool there = peer_has_node(p, name, &other->labels) &&
		     selector_matches(p->peer_selector.parsed, own);
	bool passive = p->passive && here && (!there || is_lower(m, other));

	return here || there ? offer_pair(m, offers, p, other, passive) : 0;
}

static int offer_one_node(struct bird_making *m, struct bird_offers *offers,
			  const struct labels *own, const struct bird_other *other)
{
	int r = 0;

	m->node_offers = offers->n;
	/* Neither end passive: after a restart the one that comes back connects at once. */
	if (m->in->config->mesh && !m->cluster_id.family && !other->cluster_id.family)
		r = offer_pair(m, offers, NULL, other, false);
	for (size_t i = 0; r == 0 && i < m->n_peers; i++) {
		m->peer = i;
		if (!m->peers[i]->disabled && !m->peers[i]->address.address.family)
			r = offer_selected(m, offers, m->peers[i], own, other);
	}
	return r;
}

static int offer_nodes(struct bird_making *m, struct bird_offers *offers, const struct labels *own)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->in->n_nodes; i++) {
		const struct bird_node *node = &m->in->nodes[i];
		struct bird_other other = { .node = node, .asn = m->in->config->asn };

		/* Who holds a lease has no agent, and nobody there speaks BGP. */
		if (strcmp(node->node->name, m->in->self) == 0 || node_is_lease(node->node))
			continue;
		if (node->spec && node->spec->asn)
			other.asn = node->spec->asn;
		if (node->spec)
			other.cluster_id = node->spec->route_reflector_cluster_id;
		r = labels_of(node->node->name, node->spec, &other.labels);
		if (r == 0)
			r = offer_one_node(m, offers, own, &other);
		free((void *)(uintptr_t)other.labels.v);
	}
	return r;
}

static int offer_addresses(struct bird_making *m, struct bird_offers *offers,
			   const struct labels *own)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->n_peers; i++) {
		const struct peer *p = m->peers[i];

		if (!p->disabled && p->address.address.family && peer_has_node(p, m->in->self, own))
			r = offer_address(m, offers, p);
	}
	return r;
}

/* --- one per neighbour ---------------------------------------------------------------------- */

static int neighbour_order(const struct neighbour *a, const struct neighbour *b)
{
	int r = address_compare(&a->address, &b->address);

	return r ?: strcmp(a->zone, b->zone);
}

static int offer_order(const void *a, const void *b)
{
	const struct bird_offer *x = a, *y = b;
	int r = neighbour_order(&x->session.neighbour, &y->session.neighbour);

	if (r)
		return r;
	if (!x->peer != !y->peer)
		return x->peer ? -1 : 1;
	return strcmp(x->session.record, y->session.record);
}

/* The mesh giving way to a record is what the record is for; two of a kind are a mistake. */
static int report_twin(struct bird_making *m, const struct bird_offer *kept,
		       const struct bird_offer *twin)
{
	char address[ADDRESS_TEXT];

	if ((kept->peer && !twin->peer) || strcmp(kept->session.record, twin->session.record) == 0)
		return 0;
	return problem(m, BIRD_PROBLEM, twin->session.record, "",
		       "has the same neighbour as %s, %s; left out", kept->session.record,
		       address_print(&twin->session.neighbour.address, address));
}

/* Both at once are allowed, and the operator should know what to expect. */
static int note_bfd(struct bird_making *m, const struct bird_offer *o)
{
	if (!o->session.options.bfd || !o->session.options.graceful_restart)
		return 0;
	return problem(m, BIRD_NOTICE, o->peer ? "peer/" : "config", o->peer ? o->peer->name : "",
		       "BFD and graceful restart are both on, and BFD takes precedence: it detects "
		       "a dead link at once, and a restart of BIRD too");
}

static int choose(struct bird_making *m, struct bird_offers *offers)
{
	struct bird_plan *plan = &m->plan;
	const struct bird_offer *kept = NULL;

	plan->sessions = calloc(offers->n ?: 1, sizeof(*plan->sessions));
	if (!plan->sessions)
		return -ENOMEM;
	if (offers->n)
		qsort(offers->v, offers->n, sizeof(*offers->v), offer_order);
	for (struct bird_offer *o = offers->v; o < offers->v + offers->n; o++) {
		if (kept && neighbour_order(&kept->session.neighbour, &o->session.neighbour) == 0) {
			if (report_twin(m, kept, o) < 0)
				return -ENOMEM;
			continue;
		}
		kept = o;
		if (o->unfit)
			continue;
		m->transit |= o->session.options.rr_client;
		plan->sessions[plan->n_sessions++] = o->session;
		o->taken = true;
		if (note_bfd(m, o) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* A reflector is no router for its clients: routes from inside the AS keep their next hops. */
static void keep_reflected(struct bird_making *m)
{
	for (size_t i = 0; m->transit && i < m->plan.n_sessions; i++) {
		struct bird_session *s = &m->plan.sessions[i];

		if (s->asn == s->options.local_asn && s->options.next_hop == BIRD_NEXT_HOP_SELF)
			s->options.next_hop = BIRD_NEXT_HOP_SELF_EBGP;
	}
}

static int plan_sessions(struct bird_making *m)
{
	struct bird_offers offers = { 0 };
	struct labels own = { 0 };
	int r = labels_of(m->in->self, m->in->spec, &own);

	m->transit = m->cluster_id.family != 0;
	if (r == 0)
		r = offer_addresses(m, &offers, &own);
	if (r == 0)
		r = offer_nodes(m, &offers, &own);
	if (r == 0)
		r = choose(m, &offers);
	keep_reflected(m);
	free((void *)(uintptr_t)own.v);
	offers_done(&offers);
	return r;
}

/* --- OSPF and RIP --------------------------------------------------------------------------- */

static int plan_ospf(struct bird_making *m)
{
	const struct config_ospf *c = &m->in->config->ospf;
	int r = secret(m, "config", "", "ospf.passwordFile", c->password_file, &m->ospf_password);

	m->ospf = r > 0;
	return r < 0 ? r : 0;
}

static int plan_rip(struct bird_making *m)
{
	const struct config_rip *c = &m->in->config->rip;
	int r = secret(m, "config", "", "rip.passwordFile", c->password_file, &m->rip_password);

	m->rip = r > 0;
	if (r > 0 && m->rip_password && m->in->ipv6.address.family)
		r = problem(m, BIRD_PROBLEM, "config", "",
			    "field \"rip.passwordFile\": RIPng has no authentication; left out "
			    "for IPv6");
	return r < 0 ? r : 0;
}

static int peers_without_effect(struct bird_making *m)
{
	static const char *const names[] = { "bgp", "ospf", "rip", "none" };

	for (size_t i = 0; i < m->n_peers; i++) {
		if (m->peers[i]->disabled)
			continue;
		if (problem(m, BIRD_NOTICE, "peer/", m->peers[i]->name,
			    "has no effect while config has protocol \"%s\"",
			    names[m->in->config->protocol]) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int plan_protocol(struct bird_making *m)
{
	struct bird_options unused = { 0 };
	int r = choose_filters(m, NULL, false, &unused); /* the built-in ones are always there */

	if (r >= 0 && m->in->config->protocol != PROTOCOL_BGP)
		r = peers_without_effect(m);
	if (r < 0)
		return r;
	switch (m->in->config->protocol) {
	case PROTOCOL_BGP:
		return plan_sessions(m);
	case PROTOCOL_OSPF:
		return plan_ospf(m);
	case PROTOCOL_RIP:
		return plan_rip(m);
	case PROTOCOL_NONE:
		break;
	}
	return 0;
}

/* --- the list of protocols ------------------------------------------------------------------ */

static struct bird_intent *add_protocol(struct bird_plan *plan, const char *name, const char *kind)
{
	struct bird_intent *p = &plan->protocols[plan->n_protocols++];

	snprintf(p->name, sizeof(p->name), "%s", name);
	p->kind = kind;
	return p;
}

static bool any_bfd(const struct bird_plan *plan)
{
	for (size_t i = 0; i < plan->n_sessions; i++)
		if (plan->sessions[i].options.bfd)
			return true;
	return false;
}

/* As templates/ name them. */
static int list_protocols(struct bird_making *m)
{
	const struct bird_input *in = m->in;
	struct bird_plan *plan = &m->plan;
	bool four = in->ipv4.address.family, six = in->ipv6.address.family;

	plan->protocols = calloc(plan->n_sessions + 16, sizeof(*plan->protocols));
	if (!plan->protocols)
		return -ENOMEM;
	add_protocol(plan, "device1", "Device");
	add_protocol(plan, "direct1", "Direct");
	add_protocol(plan, "kernel4", "Kernel");
	add_protocol(plan, "kernel6", "Kernel");
	if (in->config->announce == ANNOUNCE_STATIC) {
		add_protocol(plan, "blocks4", "Static");
		add_protocol(plan, "blocks6", "Static");
	}
	if (in->config->export_table) {
		add_protocol(plan, "table4", "Kernel");
		add_protocol(plan, "table6", "Kernel");
		add_protocol(plan, "pipe4", "Pipe");
		add_protocol(plan, "pipe6", "Pipe");
	}
	if (any_bfd(plan))
		add_protocol(plan, "bfd1", "BFD");
	if (m->ospf && four)
		add_protocol(plan, "ospf4", "OSPF");
	if (m->ospf && six)
		add_protocol(plan, "ospf6", "OSPF");
	if (m->rip && four)
		add_protocol(plan, "rip4", "RIP");
	if (m->rip && six && !m->rip_password)
		add_protocol(plan, "rip6", "RIP");
	for (size_t i = 0; i < plan->n_sessions; i++)
		add_protocol(plan, plan->sessions[i].name, "BGP")->session = &plan->sessions[i];
	return 0;
}

/* --- passwords ------------------------------------------------------------------------------ */

static int text_order(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_file(struct texts *files, const char *path)
{
	if (path && path[0])
		files->v[files->n++] = path;
}

int desired_bird_password_files(const struct bird_input *in, struct texts *ret)
{
	struct texts files = { .v = calloc(in->n_peers + 1, sizeof(char *)) };
	struct labels own = { 0 };
	int r = files.v ? labels_of(in->self, in->spec, &own) : -ENOMEM;

	if (r < 0) {
		free(files.v);
		return r;
	}
	for (size_t i = 0; in->config->protocol == PROTOCOL_BGP && i < in->n_peers; i++) {
		const struct peer *p = in->peers[i];

		if (!p->disabled && (peer_has_node(p, in->self, &own) ||
				     (!p->address.address.family &&
				      selector_matches(p->peer_selector.parsed, &own))))
			add_file(&files, p->password_file);
	}
	if (in->config->protocol == PROTOCOL_BGP && in->config->mesh &&
	    !(in->spec && in->spec->route_reflector_cluster_id.family))
		add_file(&files, in->config->bgp.password_file);
	if (in->config->protocol == PROTOCOL_OSPF)
		add_file(&files, in->config->ospf.password_file);
	if (in->config->protocol == PROTOCOL_RIP)
		add_file(&files, in->config->rip.password_file);
	free((void *)(uintptr_t)own.v);
	files.n = sort_unique(files.v, files.n, sizeof(*files.v), text_order, text_order);
	*ret = files;
	return 0;
}

/* --- the whole ------------------------------------------------------------------------------ */

static int peer_order(const void *a, const void *b)
{
	return strcmp((*(const struct peer *const *)a)->name,
		      (*(const struct peer *const *)b)->name);
}

static int sort_peers(struct bird_making *m)
{
	size_t selectors = 0, kept = 0;

	m->peers = calloc(m->in->n_peers ?: 1, sizeof(struct peer *));
	m->twins = calloc(m->in->n_peers ?: 1, sizeof(*m->twins));
	if (!m->peers || !m->twins)
		return -ENOMEM;
	for (size_t i = 0; i < m->in->n_peers; i++)
		m->peers[i] = m->in->peers[i];
	qsort(m->peers, m->in->n_peers, sizeof(*m->peers), peer_order);
	for (size_t i = 0; i < m->in->n_peers; i++) {
		const struct peer *p = m->peers[i];

		if (p->address.address.family || p->disabled || ++selectors <= BIRD_SELECTORS_MAX)
			m->peers[kept++] = p;
	}
	m->n_peers = kept;
	if (selectors <= BIRD_SELECTORS_MAX)
		return 0;
	return problem(
		m, BIRD_PROBLEM, "peer-limit", "",
		"there are %zu peer records with a peerSelector, and only the first %u by name "
		"are used; delete some, or let one selector name more nodes",
		selectors, BIRD_SELECTORS_MAX);
}

static int make(struct bird_making *m)
{
	int r = sort_peers(m);

	if (r == 0)
		r = announced_blocks(m);
	if (r == 0)
		r = plan_protocol(m);
	if (r == 0)
		r = list_protocols(m);
	if (r == 0)
		r = bird_tree(m);
	if (r == 0)
		sort_problems(&m->plan);
	return r;
}

int desired_bird(const struct bird_input *in, struct bird_plan *ret)
{
	struct bird_making m = { .in = in };
	int r;

	m.asn = in->spec && in->spec->asn ? in->spec->asn : in->config->asn;
	if (in->spec)
		m.cluster_id = in->spec->route_reflector_cluster_id;
	m.plan.router_id = in->router_id;
	m.plan.secrets.v = calloc(in->n_passwords ?: 1, sizeof(char *));
	r = m.plan.secrets.v ? make(&m) : -ENOMEM;
	free(m.peers);
	free(m.twins);
	free(m.filters.v);
	if (r < 0)
		bird_plan_done(&m.plan);
	else
		*ret = m.plan;
	return r;
}

void bird_plan_done(struct bird_plan *plan)
{
	json_object_put(plan->tree);
	for (size_t i = 0; i < plan->n_sessions; i++) {
		free(plan->sessions[i].record);
		free(plan->sessions[i].description);
	}
	free(plan->sessions);
	free(plan->protocols);
	for (size_t i = 0; i < plan->problems.n; i++) {
		free(plan->problems.v[i].record);
		free(plan->problems.v[i].text);
	}
	free(plan->problems.v);
	free(plan->announced);
	for (size_t i = 0; i < plan->secrets.n; i++)
		secret_free((char *)(uintptr_t)plan->secrets.v[i]);
	free(plan->secrets.v);
	*plan = (struct bird_plan){ 0 };
}

/* --- what a new plan does to what runs ------------------------------------------------------ */

/*
 * What a new plan does to what runs, as measured with BIRD 2.0, 2.17 and 3.1:
 * nearly every option of a session restarts it; filters, next hop self or keep
 * and BFD do not. Options of the kernel protocols would withdraw our own blocks
 * for an instant, so the templates keep them as they are: ECMP is always on, with
 * a limit, and the limit may change.
 */

#define FIELD_OF(member, why_)                                                                     \
	{                                                                                          \
		offsetof(struct bird_session, member), sizeof(((struct bird_session *)0)->member), \
			why_                                                                       \
	}

static const struct {
	size_t at, size;
	const char *why;
} restarting[] = {
	FIELD_OF(local, "its local address changes"),
	FIELD_OF(asn, "the neighbour's AS changes"),
	FIELD_OF(port, "its port changes"),
	FIELD_OF(local_port, "listenPort changes"),
	FIELD_OF(passive, "passive changes"),
	FIELD_OF(options.local_asn, "its own AS changes"),
	FIELD_OF(options.multihop, "multihop changes"),
	FIELD_OF(options.hold_time, "holdTime changes"),
	FIELD_OF(options.keepalive_time, "keepaliveTime changes"),
	FIELD_OF(options.connect_retry_time, "connectRetryTime changes"),
	FIELD_OF(options.graceful_restart, "gracefulRestart changes"),
	FIELD_OF(options.graceful_restart_time, "gracefulRestartTime changes"),
	FIELD_OF(options.allow_local_as, "allowLocalAs changes"),
	FIELD_OF(options.ttl_security, "ttlSecurity changes"),
	FIELD_OF(options.rr_client, "its role as a route reflector's client changes"),
	FIELD_OF(options.cluster_id, "routeReflectorClusterId changes"),
	FIELD_OF(options.ipv4, "its families change"),
	FIELD_OF(options.ipv6, "its families change"),
	FIELD_OF(options.extended_next_hop, "its families change"),
	FIELD_OF(options.gateway_recursive, "its next hops are resolved in another way"),
};

static int add_flap(struct bird_flaps *flaps, enum bird_flap_kind kind, const char *what,
		    const char *why)
{
	struct bird_flap *v = array_add(flaps);

	if (!v)
		return -ENOMEM;
	*v = (struct bird_flap){ .kind = kind, .why = why };
	snprintf(v->what, sizeof(v->what), "%s", what);
	return 0;
}

static const char *why_restart(const struct bird_plan *before, const struct bird_session *a,
			       const struct bird_plan *after, const struct bird_session *b)
{
	const char *old = a->password ?: "", *new = b->password ?: "";

	if (address_compare(&before->router_id, &after->router_id) != 0)
		return "the router id changes";
	if (strcmp(old, new) != 0)
		return "its password changes";
	for (size_t i = 0; i < ARRAY_SIZE(restarting); i++)
		if (memcmp((const char *)a + restarting[i].at, (const char *)b + restarting[i].at,
			   restarting[i].size) != 0)
			return restarting[i].why;
	return NULL;
}

static int session_order(const struct bird_session *a, const struct bird_session *b)
{
	int r = address_compare(&a->neighbour.address, &b->neighbour.address);

	return r ?: strcmp(a->neighbour.zone, b->neighbour.zone);
}

/* Both are sorted. */
static int compare_sessions(const struct bird_plan *before, const struct bird_plan *after,
			    struct bird_flaps *flaps)
{
	size_t i = 0, j = 0;
	int r = 0;

	while (r == 0 && i < before->n_sessions) {
		const struct bird_session *a = &before->sessions[i], *b = after->sessions + j;
		int order = j < after->n_sessions ? session_order(a, b) : -1;
		const char *why = order == 0 ? why_restart(before, a, after, b) : NULL;

		if (order < 0)
			r = add_flap(flaps, BIRD_REMOVED, a->name,
				     "no record requires it any more");
		else if (why)
			r = add_flap(flaps, BIRD_RESTARTS, a->name, why);
		i += order <= 0;
		j += order >= 0;
	}
	return r;
}

static int compare_blocks(const struct bird_plan *before, const struct bird_plan *after,
			  struct bird_flaps *flaps)
{
	size_t i = 0, j = 0;
	int r = 0;

	while (r == 0 && i < before->n_announced) {
		int order = j < after->n_announced
				    ? prefix_compare(&before->announced[i], &after->announced[j])
				    : -1;
		char text[PREFIX_TEXT];

		if (order < 0)
			r = add_flap(flaps, BIRD_WITHDRAWS,
				     prefix_print(&before->announced[i], text),
				     "it is no longer ours, or its pool is not announced");
		i += order <= 0;
		j += order >= 0;
	}
	return r;
}

int bird_flaps(const struct bird_plan *before, const struct bird_plan *after,
	       struct bird_flaps *ret)
{
	struct bird_flaps flaps = { 0 };
	int r = compare_sessions(before, after, &flaps);

	if (r == 0)
		r = compare_blocks(before, after, &flaps);
	if (r < 0)
		bird_flaps_done(&flaps);
	else
		*ret = flaps;
	return r;
}

void bird_flaps_done(struct bird_flaps *flaps)
{
	free(flaps->v);
	*flaps = (struct bird_flaps){ 0 };
}
