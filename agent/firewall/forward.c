/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/firewall/forward.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netlink/attr.h>
#include <string.h>

#include "agent/firewall/desired_firewall.h"
#include "agent/firewall/firewall_netlink.h"
#include "lib/base/array.h"
#include "lib/netlink/request.h"

/* A chain of a chain of a chain: deeper ones are taken as not accepting. */
#define DEPTH_MAX  4
#define NAME_BYTES 128

struct chain {
	uint8_t family;
	char table[NAME_BYTES], name[NAME_BYTES];
	bool drops; /* by its policy */
};

struct forward {
	struct netlink *nl;
	bool known;
	uint32_t generation;
	ARRAY(struct prefix) pools; /* that it was judged for */
	bool drops;
	struct err chain;
};

/* What was accepted before the rule that is looked at. */
struct judge {
	const struct forward *f;
	bool from, to;
	struct err *err;
};

enum verdict { GOES_ON, ACCEPTS, DROPS, RETURNS, JUMPS };

/* A rule as far as it matters. */
struct rule {
	enum verdict verdict;
	char jump[NAME_BYTES];
	bool goes;         /* by goto: it does not come back */
	bool from, to;     /* for packets from pods' links or addresses, to them */
	unsigned narrowed; /* other conditions */
};

struct rules {
	struct rule *v;
	size_t n, room;
	const struct forward *f;
};

static void rules_done(struct rules *r)
{
	free(r->v);
}

int forward_new(struct forward **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void forward_free(struct forward *f)
{
	if (!f)
		return;
	netlink_close(f->nl);
	array_done(&f->pools);
	free(f);
}

/* --- messages ------------------------------------------------------------------------------- */

static const struct nlattr *within(const struct nlattr *nest, int type)
{
	return nest ? nla_find(nla_data(nest), nla_len(nest), type) : NULL;
}

static uint32_t number(const struct nlattr *a)
{
	return a && nla_len(a) >= (int)sizeof(uint32_t) ? ntohl(nla_get_u32(a)) : 0;
}

/* "" if it is missing, or too long to be one of a chain. */
static void text(const struct nlattr *a, char ret[NAME_BYTES])
{
	size_t n = a ? (size_t)nla_len(a) : 0;

	ret[0] = '\0';
	if (n < NAME_BYTES) {
		memcpy(ret, a ? nla_data(a) : "", n);
		ret[n] = '\0';
	}
}

static bool is_word(const struct nlattr *a, const char *word)
{
	char got[NAME_BYTES];

	text(a, got);
	return strcmp(got, word) == 0;
}

static struct nl_msg *question(int type, uint8_t family)
{
	const struct nfgenmsg body = { .nfgen_family = family, .version = NFNETLINK_V0 };

	return request_new((NFNL_SUBSYS_NFTABLES << 8) | type, 0, &body, sizeof(body));
}

static const struct nlattr *attribute(const struct nlmsghdr *hdr, int type)
{
	/* libnl's prototype lacks the const. */
	return nlmsg_find_attr((struct nlmsghdr *)(uintptr_t)hdr, sizeof(struct nfgenmsg), type);
}

static bool is_answer(const struct nlmsghdr *hdr, int type)
{
	return hdr->nlmsg_type == ((NFNL_SUBSYS_NFTABLES << 8) | type) &&
	       nlmsg_valid_hdr((struct nlmsghdr *)(uintptr_t)hdr, sizeof(struct nfgenmsg));
}

struct chains {
	struct chain *v;
	size_t n, room;
};

/* Base chains of the hook forward that are not ours. */
static int take_chain(const struct nlmsghdr *hdr, void *arg)
{
	const struct nlattr *hook = attribute(hdr, NFTA_CHAIN_HOOK);
	struct chains *all = arg;
	struct chain c = { 0 };

	if (!is_answer(hdr, NFT_MSG_NEWCHAIN) || !hook ||
	    number(within(hook, NFTA_HOOK_HOOKNUM)) != NF_INET_FORWARD)
		return 0;
	c.family = ((const struct nfgenmsg *)nlmsg_data(hdr))->nfgen_family;
	text(attribute(hdr, NFTA_CHAIN_TABLE), c.table);
	text(attribute(hdr, NFTA_CHAIN_NAME), c.name);
	c.drops = attribute(hdr, NFTA_CHAIN_POLICY) &&
		  number(attribute(hdr, NFTA_CHAIN_POLICY)) == NF_DROP;
	if ((c.family != NFPROTO_IPV4 && c.family != NFPROTO_IPV6 && c.family != NFPROTO_INET) ||
	    (c.family == NFPROTO_INET && strcmp(c.table, FIREWALL_TABLE) == 0))
		return 0;
	return array_append(all, c);
}

static void begin_chains(void *arg)
{
	((struct chains *)arg)->n = 0;
}

static void begin_rules(void *arg)
{
	((struct rules *)arg)->n = 0;
}

/* --- a rule --------------------------------------------------------------------------------- */

/* What the last expression loaded, for the comparison that follows. */
struct loaded {
	enum { OTHER, IN_NAME, OUT_NAME, FAMILY, ADDRESS } what;
	uint32_t offset;
	uint8_t mask[16];
};

static void load_meta(const struct nlattr *data, struct loaded *l)
{
	switch (number(within(data, NFTA_META_KEY))) {
	case NFT_META_IIFNAME:
		l->what = IN_NAME;
		break;
	case NFT_META_OIFNAME:
		l->what = OUT_NAME;
		break;
	case NFT_META_NFPROTO:
	case NFT_META_PROTOCOL:
		l->what = FAMILY;
		break;
	default:
		l->what = OTHER;
	}
}

static void load_payload(const struct nlattr *data, struct loaded *l)
{
	*l = (struct loaded){ .what = OTHER, .offset = number(within(data, NFTA_PAYLOAD_OFFSET)) };
	memset(l->mask, 0xff, sizeof(l->mask));
	if (number(within(data, NFTA_PAYLOAD_BASE)) == NFT_PAYLOAD_NETWORK_HEADER)
		l->what = ADDRESS;
}

static void mask(const struct nlattr *data, struct loaded *l)
{
	const struct nlattr *bits = within(within(data, NFTA_BITWISE_MASK), NFTA_DATA_VALUE);

	if (bits && nla_len(bits) <= (int)sizeof(l->mask))
		memcpy(l->mask, nla_data(bits), (size_t)nla_len(bits));
	else
		l->what = OTHER;
}

/* Whether all of the pool has these bytes there. */
static bool covers(const struct prefix *pool, const struct loaded *l, const uint8_t *value,
		   size_t n)
{
	const size_t bytes = address_bits(&pool->address) / 8;

	for (size_t i = 0; i < n; i++) {
		const size_t left = pool->length > i * 8 ? pool->length - i * 8 : 0;
		const uint8_t sure = left >= 8 ? 0xff : (uint8_t)(0xff00 >> left);

		if (i >= bytes || (l->mask[i] & ~sure) ||
		    ((pool->address.bytes[i] ^ value[i]) & l->mask[i]))
			return false;
	}
	return true;
}

static void compare_address(const struct forward *f, const struct loaded *l,
			    const struct nlattr *value, struct rule *r)
{
	for (size_t i = 0; i < f->pools.n; i++) {
		const struct prefix *p = &f->pools.v[i];
		const bool six = p->address.family == AF_INET6;
		/* Where source and destination lie in the header. */
		const uint32_t source = six ? 8 : 12, destination = six ? 24 : 16;

		if ((l->offset != source && l->offset != destination) ||
		    !covers(p, l, nla_data(value), (size_t)nla_len(value)))
			continue;
		*(l->offset == source ? &r->from : &r->to) = true;
		return;
	}
	r->narrowed++;
}

static void compare(const struct forward *f, const struct nlattr *data, const struct loaded *l,
		    struct rule *r)
{
	static const char stem[] = "roost";
	const struct nlattr *value = within(within(data, NFTA_CMP_DATA), NFTA_DATA_VALUE);
	bool equal = number(within(data, NFTA_CMP_OP)) == NFT_CMP_EQ;

	if (l->what == FAMILY)
		return;
	if (value && equal && l->what == ADDRESS && nla_len(value) <= 16)
		compare_address(f, l, value, r);
	/* All links of pods and no others begin so: "roost*", a whole name is one pod's. */
	else if (value && equal && (l->what == IN_NAME || l->what == OUT_NAME) &&
		 nla_len(value) == (int)strlen(stem) &&
		 memcmp(nla_data(value), stem, strlen(stem)) == 0)
		*(l->what == IN_NAME ? &r->from : &r->to) = true;
	else
		r->narrowed++;
}

static void judge_immediate(const struct nlattr *data, struct rule *r)
{
	const struct nlattr *verdict = within(within(data, NFTA_IMMEDIATE_DATA), NFTA_DATA_VERDICT);
	int code = (int)number(within(verdict, NFTA_VERDICT_CODE));

	if (!verdict)
		return;
	r->verdict = code == NF_ACCEPT                      ? ACCEPTS
		     : code == NF_DROP                      ? DROPS
		     : code == NFT_RETURN                   ? RETURNS
		     : code == NFT_JUMP || code == NFT_GOTO ? JUMPS
							    : GOES_ON;
	r->goes = code == NFT_GOTO;
	if (r->verdict == JUMPS)
		text(within(verdict, NFTA_VERDICT_CHAIN), r->jump);
}

static void read_expression(const struct forward *f, const struct nlattr *e, struct loaded *l,
			    struct rule *r)
{
	const struct nlattr *name = within(e, NFTA_EXPR_NAME), *data = within(e, NFTA_EXPR_DATA);

	if (is_word(name, "meta"))
		load_meta(data, l);
	else if (is_word(name, "payload"))
		load_payload(data, l);
	else if (is_word(name, "bitwise"))
		mask(data, l);
	else if (is_word(name, "cmp"))
		compare(f, data, l, r);
	else if (is_word(name, "immediate"))
		judge_immediate(data, r);
	else if (is_word(name, "reject"))
		r->verdict = DROPS;
	/* The rest narrows it down, or may; these do not. */
	else if (!is_word(name, "counter") && !is_word(name, "log") && !is_word(name, "notrack"))
		r->narrowed++;
}

static int take_rule(const struct nlmsghdr *hdr, void *arg)
{
	struct nlattr *list = (struct nlattr *)(uintptr_t)attribute(hdr, NFTA_RULE_EXPRESSIONS), *e;
	struct rules *all = arg;
	struct loaded loaded = { .what = OTHER };
	struct rule r = { .verdict = GOES_ON };
	int left;

	if (!is_answer(hdr, NFT_MSG_NEWRULE) || !list)
		return 0;
	nla_for_each_nested(e, list, left) read_expression(all->f, e, &loaded, &r);
	return r.verdict == GOES_ON ? 0 : array_append(all, r);
}

/* --- a chain -------------------------------------------------------------------------------- */

static int read_rules(const struct judge *j, const struct chain *c, struct rules *ret)
{
	struct nl_msg *msg = question(NFT_MSG_GETRULE, c->family);

	if (msg)
		msg = request_whole(msg, nla_put_string(msg, NFTA_RULE_TABLE, c->table)
						 ?: nla_put_string(msg, NFTA_RULE_CHAIN, c->name));
	return netlink_dump(j->f->nl, msg, begin_rules, take_rule, ret, j->err);
}

/* Where a packet from or to a pod is after these rules; or -errno. */
static int walk(struct judge *j, const struct chain *c, int depth)
{
	AUTO_DONE(rules_done) struct rules rules = { .f = j->f };
	int r = read_rules(j, c, &rules);

	for (size_t i = 0; r == 0 && i < rules.n; i++) {
		const struct rule *rule = &rules.v[i];
		const bool all = !rule->narrowed && !rule->from && !rule->to;
		struct chain next = *c;

		if (rule->verdict == ACCEPTS && !rule->narrowed && !(rule->from && rule->to)) {
			j->from = j->from || all || rule->from;
			j->to = j->to || all || rule->to;
		}
		if (j->from && j->to)
			return ACCEPTS;
		if (!all)
			continue;
		if (rule->verdict == DROPS || rule->verdict == RETURNS)
			return (int)rule->verdict;
		if (rule->verdict != JUMPS || depth == DEPTH_MAX)
			continue;
		snprintf(next.name, sizeof(next.name), "%s", rule->jump);
		r = walk(j, &next, depth + 1);
		if (r < 0 || r == ACCEPTS || r == DROPS || rule->goes)
			return r;
		r = 0;
	}
	return r < 0 ? r : GOES_ON;
}

/* 1: it drops. */
static int judge_chain(const struct forward *f, const struct chain *c, struct err *err)
{
	struct judge j = { .f = f, .err = err };
	int r = walk(&j, c, 0);

	/* Another program may have removed it meanwhile. */
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return r == DROPS || (r != ACCEPTS && c->drops);
}

static bool concerns(const struct forward *f, const struct chain *c)
{
	for (size_t i = 0; i < f->pools.n; i++)
		if (c->family == NFPROTO_INET ||
		    (c->family == NFPROTO_IPV6) == (f->pools.v[i].address.family == AF_INET6))
			return true;
	return false;
}

static int judge_all(struct forward *f, struct err *err)
{
	static const char *const families[] = {
		[NFPROTO_INET] = "inet", [NFPROTO_IPV4] = "ip", [NFPROTO_IPV6] = "ip6"
	};
	struct chains chains = { 0 };
	int r = netlink_dump(f->nl, question(NFT_MSG_GETCHAIN, NFPROTO_UNSPEC), begin_chains,
			     take_chain, &chains, err);

	for (size_t i = 0; r == 0 && i < chains.n; i++) {
		const struct chain *c = &chains.v[i];

		r = concerns(f, c) ? judge_chain(f, c, err) : 0;
		if (r > 0)
			err_set(&f->chain, 0, "%s of table %s %s", c->name, families[c->family],
				c->table);
	}
	array_done(&chains);
	return r;
}

/* --- asked ---------------------------------------------------------------------------------- */

static bool same_pools(const struct forward *f, const struct prefix *pools, size_t n)
{
	for (size_t i = 0; n == f->pools.n && i < n; i++)
		if (prefix_compare(&f->pools.v[i], &pools[i]) != 0)
			return false;
	return n == f->pools.n;
}

static int keep_pools(struct forward *f, const struct prefix *pools, size_t n)
{
	f->pools.n = 0;
	for (size_t i = 0; i < n; i++)
		if (array_append(&f->pools, pools[i]) < 0)
			return -ENOMEM;
	return 0;
}

int forward_drops(struct forward *f, const struct prefix *pools, size_t n_pools, struct err *chain,
		  struct err *err)
{
	uint32_t generation = 0;
	int r = f->nl ? 0 : netlink_open(NETLINK_NETFILTER, &f->nl);

	if (r < 0)
		return err_set(err, r, "%s", strerrordesc_np(-r));
	r = firewall_generation(f->nl, &generation, err);
	/* No nftables: nobody's chain drops. */
	if (r == -EINVAL || r == -EOPNOTSUPP || r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (!f->known || generation != f->generation || !same_pools(f, pools, n_pools)) {
		f->known = false;
		r = keep_pools(f, pools, n_pools);
		r = r ?: judge_all(f, err);
		if (r < 0)
			return r;
		f->known = true;
		f->generation = generation;
		f->drops = r > 0;
	}
	if (f->drops)
		*chain = f->chain;
	return f->drops;
}
