/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/allocator/choose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ipam/allocator/ranges.h"

bool pool_view_serves(const struct pool_view *v)
{
	return v->pool && !v->wrong.text[0] && !v->pool->disabled && v->selected;
}

int pool_view_check(const struct pool_view *v, struct err *err)
{
	if (v->wrong.text[0])
		return err_set(err, -EPERM, "pool %s is not used: %s", v->name, v->wrong.text);
	if (v->pool->disabled)
		return err_set(err, -EPERM, "pool %s is disabled", v->name);
	if (!v->selected)
		return err_set(err, -EPERM, "pool %s is not for this node: nodeSelector is %s",
			       v->name, v->pool->node_selector.text);
	return 0;
}

/* "18446744073709551616" has 20 digits; more is told as a power of two. */
static void print_count(const struct prefix *cidr, char *text, size_t room)
{
	unsigned bits = address_bits(&cidr->address) - cidr->length;

	if (bits < 64)
		snprintf(text, room, "%llu address%s", 1ULL << bits, bits ? "es" : "");
	else
		snprintf(text, room, "2^%u addresses", bits);
}

const char *pool_view_show(const struct pool_view *v, char *text)
{
	char cidr[PREFIX_TEXT], count[48];

	print_count(&v->cidr, count, sizeof(count));
	snprintf(text, POOL_SHOW_TEXT, "pool %s (%s, %s)", v->name, prefix_print(&v->cidr, cidr),
		 count);
	return text;
}

/* --- the choice ----------------------------------------------------------------------------- */

void choices_done(struct choices *c)
{
	free(c->ipv4.v);
	free(c->ipv6.v);
	*c = (struct choices){ 0 };
}

static struct choice *choice_of(struct choices *c, const struct pool_view *v)
{
	return v->cidr.address.family == AF_INET ? &c->ipv4 : &c->ipv6;
}

static bool matches(const struct texts *patterns, const char *namespace)
{
	for (size_t i = 0; i < patterns->n; i++) {
		const char *pattern = patterns->v[i];
		size_t len = strlen(pattern);

		if (len && pattern[len - 1] == '*' ? strncmp(pattern, namespace, len - 1) == 0
						   : strcmp(pattern, namespace) == 0)
			return true;
	}
	return false;
}

static int choose_named(const struct pool_views *views, const struct texts *named,
			struct choices *ret, struct err *err)
{
	for (size_t i = 0; i < named->n; i++) {
		const struct pool_view *v = pool_views_find(views, named->v[i]);
		struct choice *c;
		int r;

		if (!v)
			return err_set(err, -ENOENT, "there is no pool %s", named->v[i]);
		r = pool_view_check(v, err);
		if (r < 0)
			return -ENOENT;
		c = choice_of(ret, v);
		c->v[c->n++] = v;
	}
	return 0;
}

/* Pools of secondary networks are only for those who ask for them. */
static bool is_usual(const struct pool_view *v)
{
	return pool_view_serves(v) && strcmp(v->network, "default") == 0 &&
	       strcmp(v->pool->origin, RANGE_ORIGIN) != 0;
}

/* One family: those whose namespaces match, or else those that name none. */
static void choose_usual(const struct pool_views *views, const char *namespace, sa_family_t family,
			 struct choice *ret)
{
	for (int preferred = 1; preferred >= 0 && ret->n == 0; preferred--)
		for (size_t i = 0; i < views->n; i++) {
			const struct pool_view *v = &views->v[i];

			if (!is_usual(v) || v->cidr.address.family != family)
				continue;
			if (preferred ? matches(&v->pool->namespaces, namespace)
				      : v->pool->namespaces.n == 0)
				ret->v[ret->n++] = v;
		}
}

/* Why not: the reason itself when there is but one pool. */
static int none_fits(const struct pool_views *views, const char *namespace, struct err *err)
{
	struct err why;

	if (views->n == 0)
		return err_set(err, -ENOENT, "there is no pool");
	if (views->n == 1 && pool_view_check(&views->v[0], &why) < 0)
		return err_set(err, -ENOENT, "no pool fits: %s", why.text);
	return err_set(err, -ENOENT,
		       "no pool fits: none of %zu is enabled, valid, for this node, on network "
		       "default and for namespace \"%s\"",
		       views->n, namespace);
}

int choose_pools(const struct pool_views *views, const struct texts *named, const char *namespace,
		 struct choices *ret, struct err *err)
{
	const size_t most = (named->n > views->n ? named->n : views->n) + 1;
	struct choices c = { { calloc(most, sizeof(void *)), 0 },
			     { calloc(most, sizeof(void *)), 0 } };
	int r = c.ipv4.v && c.ipv6.v ? 0 : -ENOMEM;

	if (r == 0 && named->n) {
		r = choose_named(views, named, &c, err);
	} else if (r == 0) {
		choose_usual(views, namespace, AF_INET, &c.ipv4);
		choose_usual(views, namespace, AF_INET6, &c.ipv6);
		if (c.ipv4.n + c.ipv6.n == 0)
			r = none_fits(views, namespace, err);
	}
	if (r < 0) {
		choices_done(&c);
		return r;
	}
	*ret = c;
	return 0;
}
