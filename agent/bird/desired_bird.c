/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bird/desired_bird.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "agent/bird/desired_bird_parts.h"
#include "lib/base/secret.h"
#include "lib/json/json.h"

/* --- small things --------------------------------------------------------------------------- */

void *bird_grow(void *v, size_t n, size_t size)
{
	return n & (n - 1) ? v : reallocarray(v, n ? 2 * n : 1, size);
}

int bird_problem(struct bird_making *m, enum bird_level level, const char *kind, const char *name,
		 const char *fmt, ...)
{
	struct bird_plan *plan = &m->plan;
	struct bird_problem p = { .level = level };
	struct bird_problem *v;
	va_list ap;
	int n;

	v = bird_grow(plan->problems, plan->n_problems, sizeof(*v));
	if (!v)
		return -ENOMEM;
	plan->problems = v;
	va_start(ap, fmt);
	n = vasprintf(&p.text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	if (asprintf(&p.record, "%s%s", kind, name) < 0) {
		free(p.text);
		return -ENOMEM;
	}
	plan->problems[plan->n_problems++] = p;
	return 0;
}

static int problem_order(const void *a, const void *b)
{
	const struct bird_problem *x = a, *y = b;
	int r = strcmp(x->record, y->record);

	return r ?: strcmp(x->text, y->text);
}

/* The same word may come from the mesh of a selector a thousand times. */
static void drop_repeated(struct bird_plan *plan)
{
	size_t kept = 0;

	for (size_t i = 0; i < plan->n_problems; i++) {
		struct bird_problem *p = &plan->problems[i];

		if (kept && problem_order(&plan->problems[kept - 1], p) == 0) {
			free(p->record);
			free(p->text);
		} else {
			plan->problems[kept++] = *p;
		}
	}
	plan->n_problems = kept;
}

static int keep_secret(struct bird_plan *plan, const char *text, const char **ret)
{
	const char **v;

	for (size_t i = plan->secrets.n; i-- > 0;)
		if (strcmp(plan->secrets.v[i], text) == 0) {
			*ret = plan->secrets.v[i];
			return 0;
		}
	v = bird_grow(plan->secrets.v, plan->secrets.n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	plan->secrets.v = v;
	*ret = strdup(text);
	if (!*ret)
		return -ENOMEM;
	v[plan->secrets.n++] = *ret;
	return 0;
}

static const struct bird_password *find_password(const struct bird_input *in, const char *path)
{
	for (size_t i = 0; i < in->n_passwords; i++)
		if (strcmp(in->passwords[i].path, path) == 0)
			return &in->passwords[i];
	return NULL;
}

int bird_secret(struct bird_making *m, const char *kind, const char *name, const char *field,
		const char *path, const char **ret)
{
	const struct bird_password *found;
	const char *text = NULL;
	struct err why;
	int r;

	*ret = NULL;
	if (!path || !path[0])
		return 1;
	found = find_password(m->in, path);
	if (!found || !found->text)
		r = bird_problem(m, BIRD_PROBLEM, kind, name,
				 "field \"%s\": %s; left out until it can be read", field,
				 found && found->reason ? found->reason : "was not read");
	else if (password_check(found->text, &why) < 0)
		r = bird_problem(m, BIRD_PROBLEM, kind, name, "field \"%s\": %s: %s; left out",
				 field, path, why.text);
	else
		r = keep_secret(&m->plan, found->text, &text) ?: 1;
	*ret = text;
	return r;
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

/* --- OSPF and RIP --------------------------------------------------------------------------- */

static int plan_ospf(struct bird_making *m)
{
	const struct config_ospf *c = &m->in->config->ospf;
	int r = bird_secret(m, "config", "", "ospf.passwordFile", c->password_file,
			    &m->ospf_password);

	m->ospf = r > 0;
	return r < 0 ? r : 0;
}

static int plan_rip(struct bird_making *m)
{
	const struct config_rip *c = &m->in->config->rip;
	int r = bird_secret(m, "config", "", "rip.passwordFile", c->password_file,
			    &m->rip_password);

	m->rip = r > 0;
	if (r > 0 && m->rip_password && m->in->ipv6.address.family)
		r = bird_problem(
			m, BIRD_PROBLEM, "config", "",
			"field \"rip.passwordFile\": RIPng has no authentication; left out "
			"for IPv6");
	return r < 0 ? r : 0;
}

static int peers_without_effect(struct bird_making *m)
{
	static const char *const names[] = { "bgp", "ospf", "rip", "none" };

	for (size_t i = 0; i < m->in->n_peers; i++) {
		if (m->peers[i]->disabled)
			continue;
		if (bird_problem(m, BIRD_NOTICE, "peer/", m->peers[i]->name,
				 "has no effect while config has protocol \"%s\"",
				 names[m->in->config->protocol]) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int plan_protocol(struct bird_making *m)
{
	struct bird_options unused = { 0 };
	int r = bird_filters(m, NULL, false, &unused); /* the built-in ones are always there */

	if (r >= 0 && m->in->config->protocol != PROTOCOL_BGP)
		r = peers_without_effect(m);
	if (r < 0)
		return r;
	switch (m->in->config->protocol) {
	case PROTOCOL_BGP:
		return bird_sessions(m);
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

/* --- the whole ------------------------------------------------------------------------------ */

static int peer_order(const void *a, const void *b)
{
	return strcmp((*(const struct peer *const *)a)->name,
		      (*(const struct peer *const *)b)->name);
}

static int sort_peers(struct bird_making *m)
{
	m->peers = calloc(m->in->n_peers ?: 1, sizeof(struct peer *));
	if (!m->peers)
		return -ENOMEM;
	for (size_t i = 0; i < m->in->n_peers; i++)
		m->peers[i] = m->in->peers[i];
	qsort(m->peers, m->in->n_peers, sizeof(*m->peers), peer_order);
	return 0;
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
	if (r == 0 && m->plan.n_problems) {
		qsort(m->plan.problems, m->plan.n_problems, sizeof(*m->plan.problems),
		      problem_order);
		drop_repeated(&m->plan);
	}
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
	r = make(&m);
	free(m.peers);
	free(m.filters);
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
	for (size_t i = 0; i < plan->n_problems; i++) {
		free(plan->problems[i].record);
		free(plan->problems[i].text);
	}
	free(plan->problems);
	free(plan->announced);
	for (size_t i = 0; i < plan->secrets.n; i++)
		secret_free((char *)(uintptr_t)plan->secrets.v[i]);
	free(plan->secrets.v);
	*plan = (struct bird_plan){ 0 };
}
