/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/firewall/desired_firewall.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/auto.h"

const char *firewall_part_name(enum firewall_part part)
{
	switch (part) {
	case FIREWALL_NAT:
		return "natOutgoing";
	case FIREWALL_SOURCES:
		return "source-check";
	case FIREWALL_PROTECTION:
		return "protection";
	}
	return "?";
}

const char *firewall_drop_name(enum firewall_drop drop)
{
	static const char *const names[] = { "source", "loopback", "vxlan", "routing", "underlay" };

	_Static_assert(sizeof(names) / sizeof(names[0]) == FIREWALL_DROPS, "one name for each");
	return drop < FIREWALL_DROPS ? names[drop] : "?";
}

unsigned firewall_parts(const struct firewall_wants *wants)
{
	return FIREWALL_ALWAYS | (wants->nat.n ? FIREWALL_NAT : 0U);
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

	if (!p->n)
		return;
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
	drop_covered(&wants->nodes);
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

/* A set of elements that has none is written without the word. */
static void put_nodes(FILE *out, const struct prefixes *nodes, const struct family *f)
{
	const char *between = " elements = { ";
	char text[ADDRESS_TEXT];

	fprintf(out, "\tset nodes%s { type %s;", f->digit, f->type);
	for (size_t i = 0; i < nodes->n; i++) {
		if (nodes->v[i].address.family != f->family)
			continue;
		fprintf(out, "%s%s", between, address_print(&nodes->v[i].address, text));
		between = ", ";
	}
	fputs(*between == ',' ? " }; }\n" : " }\n", out);
}

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
 * It is checked once; the chains behind it hold the rules.
 */
#define FROM_PODS "iifname \"roost*\" meta iifkind \"veth\" "
#define DROP(why) "counter name drop_" why " drop\n"

/* Control packets of BFD: single hop, echo, multihop, on link aggregates. */
#define BFD_PORTS "3784, 3785, 4784, 6784"

static void put_routing(FILE *out, const char *to, uint16_t bgp_port)
{
	fprintf(out, "\t\t%stcp dport ", to);
	if (bgp_port == 179)
		fputs("179 ", out);
	else
		fprintf(out, "{ 179, %u } ", bgp_port);
	fprintf(out, DROP("routing") "\t\t%sudp dport { " BFD_PORTS " } " DROP("routing"), to);
}

/*
 * In raw, before connection tracking and before any translation: what a pod asks for itself is
 * dropped; a port that portmap or kube-proxy publishes is translated later and passes.
 */
static void put_pod_destinations(FILE *out, const struct firewall_wants *w)
{
	fputs("\tchain pod_destinations {\n", out);
	if (!w->pod_loopback)
		fputs("\t\tip daddr 127.0.0.0/8 " DROP("loopback") "\t\tip6 daddr ::1 " DROP(
			      "loopback"),
		      out);
	fprintf(out, "\t\tudp dport %u " DROP("vxlan"), w->vxlan_port);
	/* With NAT a pod would have this node's address there, which is a neighbour's. */
	if (!w->pod_routing && w->tunnel) {
		put_routing(out, "ip daddr @nodes4 ", w->bgp_port);
		put_routing(out, "ip6 daddr @nodes6 ", w->bgp_port);
	}
	fputs("\t}\n"
	      "\tchain pods_raw {\n"
	      "\t\ttype filter hook prerouting priority raw; policy accept;\n"
	      "\t\t" FROM_PODS "jump pod_destinations\n"
	      "\t}\n",
	      out);
}

/* Packets for this node itself. */
static void put_node_input(FILE *out, const struct firewall_wants *w)
{
	if (w->pod_routing && !w->tunnel)
		return;
	if (!w->pod_routing) {
		fputs("\tchain pod_input {\n", out);
		put_routing(out, "", w->bgp_port);
		fputs("\t}\n", out);
	}
	fputs("\tchain node_input {\n"
	      "\t\ttype filter hook input priority filter - 10; policy accept;\n",
	      out);
	if (!w->pod_routing)
		fputs("\t\t" FROM_PODS "jump pod_input\n", out);
	if (w->tunnel)
		fprintf(out,
			"\t\tudp dport %u ip saddr != @nodes4 " DROP(
				"underlay") "\t\tudp dport %u ip6 saddr != @nodes6 " DROP("underla"
											  "y"),
			w->vxlan_port, w->vxlan_port);
	fputs("\t}\n", out);
}

static void put_protection(FILE *out, const struct firewall_wants *w)
{
	for (size_t i = 0; w->tunnel && i < N_FAMILIES; i++)
		put_nodes(out, &w->nodes, &families[i]);
	put_pod_destinations(out, w);
	put_node_input(out, w);
}

/*
 * Link-local addresses and the one of duplicate detection go nowhere beyond the link. The fib
 * expression lets 0.0.0.0 pass to broadcast addresses, for DHCP, which no pod here needs. After the
 * destinations, so that these count what they drop.
 */
static void put_sources(FILE *out, const struct firewall_wants *w)
{
	fputs("\tchain pod_source {\n"
	      "\t\tip saddr 0.0.0.0 " DROP(
		      "source") "\t\tmeta nfproto ipv4 fib saddr . iif oif missing " DROP("source"),
	      out);
	if (w->ipv6_sources)
		fputs("\t\tip6 saddr != { ::, fe80::/10 } fib saddr . iif oif missing " DROP(
			      "source"),
		      out);
	fputs("\t}\n"
	      "\tchain pod_sources {\n"
	      "\t\ttype filter hook prerouting priority raw + 1; policy accept;\n"
	      "\t\t" FROM_PODS "jump pod_source\n"
	      "\t}\n",
	      out);
}

static void put_table(FILE *out, const struct firewall_wants *w, unsigned parts)
{
	/* Made first, so that there is one to delete. */
	fputs("table inet " FIREWALL_TABLE "\ndelete table inet " FIREWALL_TABLE "\n"
	      "table inet " FIREWALL_TABLE " {\n"
	      "\tcomment \"kept by roostd; changes are undone\"\n",
	      out);
	for (enum firewall_drop d = 0; d < FIREWALL_DROPS; d++)
		fprintf(out, "\tcounter drop_%s { }\n", firewall_drop_name(d));
	if (parts & FIREWALL_NAT)
		put_nat(out, &w->nat, &w->pools);
	if (parts & FIREWALL_PROTECTION)
		put_protection(out, w);
	if (parts & FIREWALL_SOURCES)
		put_sources(out, w);
	fputs("}\n", out);
}

int desired_firewall(const struct firewall_wants *wants, unsigned parts, char **ret)
{
	struct firewall_wants w = *wants;
	AUTO(free) char *text = NULL;
	FILE *out = NULL;
	size_t len;
	int r;

	w.nat = w.pools = w.nodes = (struct prefixes){ 0 };
	r = join(&wants->nat, &(struct prefixes){ 0 }, &w.nat);
	r = r ?: join(&wants->pools, &wants->nat, &w.pools);
	r = r ?: join(&wants->nodes, &(struct prefixes){ 0 }, &w.nodes);
	if (r == 0)
		out = open_memstream(&text, &len);
	if (out) {
		put_table(out, &w, parts);
		r = ferror(out) ? -ENOMEM : 0;
		if (fclose(out) != 0)
			r = -ENOMEM;
	} else {
		r = -ENOMEM;
	}
	free(w.nat.v);
	free(w.pools.v);
	free(w.nodes.v);
	if (r == 0)
		*ret = TAKE(text);
	return r;
}
