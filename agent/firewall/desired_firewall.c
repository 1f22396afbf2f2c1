/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/firewall/desired_firewall.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/auto.h"

const char *firewall_part_name(enum firewall_part part)
{
	return part == FIREWALL_NAT ? "natOutgoing" : "ipv6-source-check";
}

unsigned firewall_parts(const struct firewall_wants *wants)
{
	return (wants->nat.n ? FIREWALL_NAT : 0U) | (wants->check_sources ? FIREWALL_SOURCES : 0U);
}

/* --- sets ----------------------------------------------------------------------------------- */

static int order(const void *a, const void *b)
{
	return prefix_compare(a, b);
}

/* Sorted, so that what contains others stands before them. */
static void drop_covered(struct prefixes *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n; i++)
		p->v[i] = prefix_mask(&p->v[i]);
	qsort(p->v, p->n, sizeof(*p->v), order);
	for (size_t i = 0; i < p->n; i++)
		if (!kept || !prefix_contains_prefix(&p->v[kept - 1], &p->v[i]))
			p->v[kept++] = p->v[i];
	p->n = kept;
}

void firewall_wants_sort(struct firewall_wants *wants)
{
	drop_covered(&wants->nat);
	drop_covered(&wants->pools);
}

static int join(const struct prefixes *a, const struct prefixes *b, struct prefixes *ret)
{
	struct prefix *v = calloc(a->n + b->n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < a->n; i++)
		v[i] = a->v[i];
	for (size_t i = 0; i < b->n; i++)
		v[a->n + i] = b->v[i];
	*ret = (struct prefixes){ v, a->n + b->n };
	drop_covered(ret);
	return 0;
}

static bool has_family(const struct prefixes *p, sa_family_t family)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].address.family == family)
			return true;
	return false;
}

/* --- the text ------------------------------------------------------------------------------- */

struct family {
	sa_family_t family;
	const char *digit, *type, *protocol, *multicast;
};
static const struct family families[] = {
	{ AF_INET, "4", "ipv4_addr", "ip", "224.0.0.0/4" },
	{ AF_INET6, "6", "ipv6_addr", "ip6", "ff00::/8" },
};
#define N_FAMILIES (sizeof(families) / sizeof(families[0]))

static void put_set(FILE *out, const char *name, const struct prefixes *p, const struct family *f)
{
	const char *between = "";
	char text[PREFIX_TEXT];

	fprintf(out, "\tset %s%s {\n\t\ttype %s\n\t\tflags interval\n\t\telements = {", name,
		f->digit, f->type);
	for (size_t i = 0; i < p->n; i++) {
		if (p->v[i].address.family != f->family)
			continue;
		fprintf(out, "%s %s", between, prefix_print(&p->v[i], text));
		between = ",";
	}
	fputs(" }\n\t}\n", out);
}

/*
 * Multicast is left alone: its receivers would see a source that nobody can answer to. The
 * ports are chosen at random: two pods that choose the same one at the same moment would
 * otherwise lose a packet to each other.
 */
static void put_nat(FILE *out, const struct prefixes *nat, const struct prefixes *pools)
{
	for (size_t i = 0; i < N_FAMILIES; i++)
		if (has_family(nat, families[i].family)) {
			put_set(out, "nat", nat, &families[i]);
			put_set(out, "pools", pools, &families[i]);
		}
	fputs("\tchain nat_outgoing {\n"
	      "\t\ttype nat hook postrouting priority srcnat; policy accept;\n",
	      out);
	for (size_t i = 0; i < N_FAMILIES; i++) {
		const struct family *f = &families[i];

		if (has_family(nat, f->family))
			fprintf(out,
				"\t\t%s saddr @nat%s %s daddr != @pools%s %s daddr != %s "
				"masquerade fully-random\n",
				f->protocol, f->digit, f->protocol, f->digit, f->protocol,
				f->multicast);
	}
	fputs("\t}\n", out);
}

/*
 * Pod links as lib/cni/pod_link knows them: kind veth, and the name, as far as a pattern can say it.
 * Link-local addresses and the one of duplicate detection go nowhere beyond the link.
 */
static void put_sources(FILE *out)
{
	fputs("\tchain pod_sources {\n"
	      "\t\ttype filter hook prerouting priority raw; policy accept;\n"
	      "\t\tiifname \"roost*\" meta iifkind \"veth\" ip6 saddr != { ::, fe80::/10 } "
	      "fib saddr . iif oif missing drop\n"
	      "\t}\n",
	      out);
}

static void put_table(FILE *out, const struct prefixes *nat, const struct prefixes *pools,
		      unsigned parts)
{
	/* Made first, so that there is one to delete. */
	fputs("table inet " FIREWALL_TABLE "\ndelete table inet " FIREWALL_TABLE "\n"
	      "table inet " FIREWALL_TABLE " {\n"
	      "\tcomment \"kept by roostd; changes are undone\"\n",
	      out);
	if (parts & FIREWALL_NAT)
		put_nat(out, nat, pools);
	if (parts & FIREWALL_SOURCES)
		put_sources(out);
	fputs("}\n", out);
}

int desired_firewall(const struct firewall_wants *wants, unsigned parts, char **ret)
{
	struct prefixes nat = { 0 }, pools = { 0 };
	AUTO(free) char *text = NULL;
	FILE *out = NULL;
	size_t len;
	int r = join(&wants->nat, &(struct prefixes){ 0 }, &nat);

	r = r ?: join(&wants->pools, &wants->nat, &pools);
	if (r == 0)
		out = open_memstream(&text, &len);
	if (out) {
		put_table(out, &nat, &pools, parts);
		r = ferror(out) ? -ENOMEM : 0;
		if (fclose(out) != 0)
			r = -ENOMEM;
	} else {
		r = -ENOMEM;
	}
	free(nat.v);
	free(pools.v);
	if (r == 0)
		*ret = TAKE(text);
	return r;
}
