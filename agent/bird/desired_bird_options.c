/* SPDX-License-Identifier: Apache-2.0 */
/* What a session is like: options, filters, its name; and which passwords a node needs. */
#include <errno.h>
#include <string.h>

#include "agent/bird/desired_bird_parts.h"

/* --- options -------------------------------------------------------------------------------- */

static uint32_t number_or(uint32_t said, uint32_t usual)
{
	return said == UNSET ? usual : said;
}

static bool flag_or(enum maybe said, bool usual)
{
	return said == MAYBE_UNSET ? usual : said == MAYBE_YES;
}

struct bird_options bird_options(const struct bird_making *m, const struct peer *p)
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
	if (p) {
		o.allow_local_as = p->allow_local_as;
		o.ttl_security = p->ttl_security;
	}
	return o;
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
void bird_protocol_name(const struct neighbour *n, char *ret)
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
	const char *direction = f->import ? "in" : "out";
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

	for (size_t i = 0; i < m->n_filters; i++)
		if (m->filters[i].record == want->record && m->filters[i].import == want->import &&
		    m->filters[i].prepend_asn == want->prepend_asn) {
			*ret = (uint32_t)i;
			return 1;
		}
	v = bird_grow(m->filters, m->n_filters, sizeof(*v));
	if (!v)
		return -ENOMEM;
	m->filters = v;
	v[m->n_filters] = *want;
	filter_name(&v[m->n_filters]);
	*ret = (uint32_t)m->n_filters++;
	return 1;
}

static int one_filter(struct bird_making *m, const struct peer *p, bool import, bool ebgp,
		      const struct bird_options *o, uint32_t *ret)
{
	struct bird_filter want = { .import = import };
	struct err why;
	int r = p ? peer_filter(p, import, m->in->filters, m->in->n_filters, &want.record, &why)
		  : 0;

	if (r < 0) {
		r = bird_problem(m, BIRD_PROBLEM, "peer/", p->name, "%s; left out", why.text);
		return r < 0 ? r : 0;
	}
	if (!want.record)
		return filter_number(m, &want, ret);
	/* Inside one AS the own number in the path would make the neighbour drop the route. */
	if (ebgp && prepends(want.record))
		want.prepend_asn = o->local_asn;
	return filter_number(m, &want, ret);
}

int bird_filters(struct bird_making *m, const struct peer *p, bool ebgp, struct bird_options *o)
{
	int in = one_filter(m, p, true, ebgp, o, &o->import);
	int out = in < 0 ? in : one_filter(m, p, false, ebgp, o, &o->export);

	if (in < 0 || out < 0)
		return -ENOMEM;
	return in && out;
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

static void sort_files(struct texts *files)
{
	size_t kept = 0;

	qsort(files->v, files->n, sizeof(*files->v), text_order);
	for (size_t i = 0; i < files->n; i++)
		if (!kept || strcmp(files->v[kept - 1], files->v[i]) != 0)
			files->v[kept++] = files->v[i];
	files->n = kept;
}

int desired_bird_password_files(const struct bird_input *in, struct texts *ret)
{
	struct texts files = { .v = calloc(in->n_peers + 1, sizeof(char *)) };
	struct labels own = { 0 };
	int r = files.v ? bird_labels(in->self, in->spec, &own) : -ENOMEM;

	if (r < 0) {
		free(files.v);
		return r;
	}
	for (size_t i = 0; in->config->protocol == PROTOCOL_BGP && i < in->n_peers; i++) {
		const struct peer *p = in->peers[i];

		if (!p->disabled && (bird_peer_has_node(p, in->self, &own) ||
				     (!p->address.address.family &&
				      selector_matches(p->peer_selector.parsed, &own))))
			add_file(&files, p->password_file);
	}
	if (in->config->protocol == PROTOCOL_OSPF)
		add_file(&files, in->config->ospf.password_file);
	if (in->config->protocol == PROTOCOL_RIP)
		add_file(&files, in->config->rip.password_file);
	free((void *)(uintptr_t)own.v);
	sort_files(&files);
	*ret = files;
	return 0;
}
