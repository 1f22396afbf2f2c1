/* SPDX-License-Identifier: Apache-2.0 */
/* The pure part: names, and the choice among what the gatherer found. */
#include "agent/node/identity.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define NO_LENGTH 0xff

void identity_candidates_done(struct identity_candidates *c)
{
	array_done(&c->sources);
	array_done(&c->locals);
	array_done(&c->defaults);
	*c = (struct identity_candidates){ 0 };
}

/* --- name ----------------------------------------------------------------------------------- */

static bool fits_in_lower_case(const char *text, char *ret)
{
	size_t n = strlen(text);

	if (n >= NODE_NAME_TEXT)
		return false;
	for (size_t i = 0; i <= n; i++)
		ret[i] = (char)tolower((unsigned char)text[i]);
	return node_name_check(ret, NULL) == 0;
}

int identity_name(const char *flag, const char *host_name, char *ret, struct err *err)
{
	bool given = flag && *flag;
	const char *name = given ? flag : host_name;
	char lower[NODE_NAME_TEXT];
	int r = node_name_check(name, err);

	if (r == 0) {
		memcpy(ret, name, strlen(name) + 1);
		return 0;
	}
	/* Not folded silently: Kubernetes and the operator must mean the same name as we do. */
	if (fits_in_lower_case(name, lower))
		return err_set(err, r,
			       "%s \"%s\" has upper-case letters, which a node name cannot have: "
			       "start with --node %s",
			       given ? "--node" : "the host name", name, lower);
	return err_wrap(err, r, given ? "--node" : "the host name, and --node is not given");
}

/* --- what is configured --------------------------------------------------------------------- */

static int configured_one(const char *text, struct prefix *ret, struct err *err)
{
	char shown[SHOW_TEXT];

	if (address_parse(text, &ret->address) == 0)
		ret->length = NO_LENGTH;
	else if (prefix_parse_host(text, ret) < 0)
		return err_set(err, -EINVAL, "\"%s\" is neither an address nor ADDRESS/LENGTH",
			       text_show(text, shown));
	if (address_is_loopback(&ret->address) || address_is_multicast(&ret->address) ||
	    address_is_link_local(&ret->address) || address_is_unspecified(&ret->address))
		return err_set(err, -EINVAL,
			       "\"%s\" cannot be a node's address: others could not "
			       "reach it",
			       text_show(text, shown));
	return 0;
}

int identity_configured(const char *text, struct identity_candidates *c, struct err *err)
{
	const char *comma = strchr(text, ',');
	char first[PREFIX_TEXT + 1];
	int r;

	c->n_configured = 0;
	if (!*text)
		return 0;
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(text, ","), text);
	r = configured_one(first, &c->configured[0], err);
	if (r == 0 && comma)
		r = configured_one(comma + 1, &c->configured[1], err);
	if (r < 0)
		return r;
	if (comma && c->configured[0].address.family == c->configured[1].address.family)
		return err_set(err, -EINVAL, "\"%s\": two addresses are one of each family", text);
	c->n_configured = comma ? 2 : 1;
	return 0;
}

/* --- the choice ----------------------------------------------------------------------------- */

struct choice {
	const struct identity_candidates *c;
	const struct prefix *pools;
	size_t n_pools;
	struct identity *id;
	char refused[REASON_TEXT]; /* "10.1.0.1 (towards etcd 10.0.0.9) lies in the
				      pool 10.1.0.0/16; ..." */
};

PRINTF_LIKE(2, 3)
static void append(char *text, const char *fmt, ...)
{
	size_t n = strlen(text), room = REASON_TEXT;
	va_list ap;

	if (n > 0 && n + 2 < room)
		n += (size_t)snprintf(text + n, room - n, "; ");
	va_start(ap, fmt);
	vsnprintf(text + n, room - n, fmt, ap);
	va_end(ap);
}

static const struct identity_local *local_of(const struct identity_candidates *c,
					     const struct address *a)
{
	for (size_t i = 0; i < c->locals.n; i++)
		if (address_compare(&c->locals.v[i].address.address, a) == 0)
			return &c->locals.v[i];
	return NULL;
}

static const struct prefix *pool_of(const struct choice *x, const struct address *a)
{
	for (size_t i = 0; i < x->n_pools; i++)
		if (prefix_contains(&x->pools[i], a))
			return &x->pools[i];
	return NULL;
}

/* NULL if the address can be a node's; else why not. */
static const char *unfit(const struct choice *x, const struct address *a, char *text)
{
	const struct prefix *pool = pool_of(x, a);
	char shown[PREFIX_TEXT];

	if (address_is_loopback(a))
		return "is a loopback address";
	if (address_is_link_local(a))
		return "is link-local";
	if (address_is_multicast(a) || address_is_unspecified(a))
		return "is no machine's address";
	if (!pool)
		return NULL;
	sprintf(text, "lies in the pool %s", prefix_print(pool, shown));
	return text;
}

static bool fits(struct choice *x, const struct address *a, const char *what, const char *which)
{
	char text[PREFIX_TEXT + 32], shown[ADDRESS_TEXT];
	const char *why = unfit(x, a, text);

	if (why)
		append(x->refused, "%s (%s%s) %s", address_print(a, shown), what, which, why);
	return !why;
}

static struct prefix *slot(struct identity *id, sa_family_t family)
{
	return family == AF_INET ? &id->ipv4 : &id->ipv6;
}

/* The interface's length, for what needs to know the neighbours' subnet. */
static void take(struct choice *x, const struct prefix *p, const char *what, const char *which)
{
	const struct identity_local *local = local_of(x->c, &p->address);
	struct prefix *at = slot(x->id, p->address.family);
	char shown[ADDRESS_TEXT];

	*at = *p;
	if (p->length == NO_LENGTH)
		at->length = local ? local->address.length : (uint8_t)address_bits(&p->address);
	append(x->id->reason, "%s: %s%s", address_print(&p->address, shown), what, which);
}

static void choose_configured(struct choice *x)
{
	for (size_t i = 0; i < x->c->n_configured; i++) {
		const struct prefix *p = &x->c->configured[i];

		take(x, p, "configured",
		     local_of(x->c, &p->address) ? "" : ", but on no interface of this machine");
	}
}

static const char *server_of(const struct choice *x)
{
	return x->c->server ?: "etcd";
}

static bool choose_source(struct choice *x, sa_family_t family)
{
	char towards[64], source[96];

	snprintf(towards, sizeof(towards), "towards %s ", server_of(x));
	snprintf(source, sizeof(source), "source address %s", towards);
	for (size_t i = 0; i < x->c->sources.n; i++) {
		const struct identity_source *s = &x->c->sources.v[i];
		struct prefix p = { .address = s->address, .length = NO_LENGTH };

		if (s->address.family != family || !fits(x, &s->address, towards, s->endpoint))
			continue;
		take(x, &p, source, s->endpoint);
		return true;
	}
	return false;
}

static const struct identity_default *best_default(const struct choice *x, sa_family_t family)
{
	const struct identity_default *best = NULL;

	for (size_t i = 0; i < x->c->defaults.n; i++) {
		const struct identity_default *d = &x->c->defaults.v[i];

		if (d->family == family && (!best || d->metric < best->metric))
			best = d;
	}
	return best;
}

/* First the route's own preference, then addresses of the first rank, then the others. */
static bool wanted(const struct identity_default *d, const struct identity_local *l, int round)
{
	if (l->link != d->link || l->address.address.family != d->family)
		return false;
	if (round == 0)
		return d->source.family && address_compare(&l->address.address, &d->source) == 0;
	return l->second_rate == (round == 2);
}

static bool choose_default(struct choice *x, sa_family_t family)
{
	const struct identity_default *d = best_default(x, family);

	for (int round = 0; d && round < 3; round++)
		for (size_t i = 0; i < x->c->locals.n; i++) {
			const struct identity_local *l = &x->c->locals.v[i];

			if (!wanted(d, l, round) ||
			    !fits(x, &l->address.address, "on ", l->link_name))
				continue;
			take(x, &l->address, "of the default route's interface ", l->link_name);
			return true;
		}
	return false;
}

/*
 * The family that neither etcd nor a default route shows: where the other one is. Never a temporary
 * or deprecated address. One that the kernel still checks is better than none: the choice is for
 * the whole boot, which may have begun a second ago.
 */
static bool choose_beside(struct choice *x, sa_family_t family)
{
	const struct prefix *other = slot(x->id, family == AF_INET ? AF_INET6 : AF_INET);
	const struct identity_local *at = other->address.family ? local_of(x->c, &other->address)
								: NULL;

	for (int round = 0; at && round < 2; round++)
		for (size_t i = 0; i < x->c->locals.n; i++) {
			const struct identity_local *l = &x->c->locals.v[i];

			if (l->link != at->link || l->address.address.family != family ||
			    l->second_rate || l->tentative != (round == 1) ||
			    !fits(x, &l->address.address, "on ", l->link_name))
				continue;
			take(x, &l->address, "beside the other family's on ", l->link_name);
			return true;
		}
	return false;
}

/* FNV-1a of the name: stable over boots, and what has no IPv4 address has to have some number. */
static struct address made_router_id(const char *name)
{
	struct address a = { .family = AF_INET };
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	h = h ?: 1;
	for (size_t i = 0; i < 4; i++)
		a.bytes[i] = (uint8_t)(h >> (24 - 8 * i));
	return a;
}

static int none_fits(const struct choice *x, struct err *err)
{
	if (x->refused[0])
		return err_set(
			err, -EADDRNOTAVAIL,
			"no address of this machine can be the node's (%s); start with --address",
			x->refused);
	return err_set(err, -EADDRNOTAVAIL,
		       "no address of this machine can be the node's (neither a source address "
		       "towards %s nor a default route); start with --address",
		       server_of(x));
}

int identity_choose(const struct identity_candidates *c, const struct prefix *pools, size_t n_pools,
		    struct identity *ret, struct err *err)
{
	static const sa_family_t families[] = { AF_INET, AF_INET6 };
	struct choice x = { .c = c, .pools = pools, .n_pools = n_pools, .id = ret };

	ret->ipv4 = ret->ipv6 = (struct prefix){ 0 };
	ret->reason[0] = '\0';
	if (c->n_configured) {
		choose_configured(&x);
	} else {
		for (size_t i = 0; i < ARRAY_SIZE(families); i++)
			if (!choose_source(&x, families[i]))
				choose_default(&x, families[i]);
		for (size_t i = 0; i < ARRAY_SIZE(families); i++)
			if (!slot(ret, families[i])->address.family)
				choose_beside(&x, families[i]);
	}
	if (!ret->ipv4.address.family && !ret->ipv6.address.family)
		return none_fits(&x, err);
	ret->router_id = ret->ipv4.address.family ? ret->ipv4.address : made_router_id(ret->name);
	return 0;
}

/* --- later ---------------------------------------------------------------------------------- */

static bool differs(struct err *ret, const char *what, const char *pinned, const char *now)
{
	if (strcmp(pinned, now) == 0)
		return false;
	err_set(ret, 0,
		"the %s would be %s now; %s was chosen on this boot and stays until the next one",
		what, *now ? now : "none", *pinned ? pinned : "none");
	return true;
}

static bool address_differs(struct err *ret, const char *what, const struct prefix *pinned,
			    const struct prefix *now)
{
	char a[ADDRESS_TEXT] = "", b[ADDRESS_TEXT] = "";

	if (pinned->address.family)
		address_print(&pinned->address, a);
	if (now->address.family)
		address_print(&now->address, b);
	return differs(ret, what, a, b);
}

bool identity_differs(const struct identity *pinned, const struct identity *now, struct err *ret)
{
	return differs(ret, "node name", pinned->name, now->name) ||
	       address_differs(ret, "IPv4 address", &pinned->ipv4, &now->ipv4) ||
	       address_differs(ret, "IPv6 address", &pinned->ipv6, &now->ipv6);
}
