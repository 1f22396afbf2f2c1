/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/firewall/desired_firewall.h"

#define ROOM 8

#define HEAD                                                                                       \
	"table inet roost\n"                                                                       \
	"delete table inet roost\n"                                                                \
	"table inet roost {\n"                                                                     \
	"\tcomment \"kept by roostd; changes are undone\"\n"                                       \
	"\tcounter drop_source { }\n"                                                              \
	"\tcounter drop_loopback { }\n"                                                            \
	"\tcounter drop_vxlan { }\n"                                                               \
	"\tcounter drop_routing { }\n"                                                             \
	"\tcounter drop_underlay { }\n"
#define FROM_PODS "\t\tiifname \"roost*\" meta iifkind \"veth\" "
#define SOURCES4                                                                                   \
	"\tchain pod_source {\n"                                                                   \
	"\t\tip saddr 0.0.0.0 counter name drop_source drop\n"                                     \
	"\t\tmeta nfproto ipv4 fib saddr . iif oif missing counter name drop_source drop\n"
#define SOURCES6                                                                                   \
	"\t\tip6 saddr != { ::, fe80::/10 } fib saddr . iif oif missing counter name "             \
	"drop_source drop\n"
#define SOURCES_HOOK                                                                               \
	"\t}\n"                                                                                    \
	"\tchain pod_sources {\n"                                                                  \
	"\t\ttype filter hook prerouting priority raw + 1; policy accept;\n" FROM_PODS             \
	"jump pod_source\n"                                                                        \
	"\t}\n"
#define LOOPBACK                                                                                   \
	"\t\tip daddr 127.0.0.0/8 counter name drop_loopback drop\n"                               \
	"\t\tip6 daddr ::1 counter name drop_loopback drop\n"
#define VXLAN(port) "\t\tudp dport " port " counter name drop_vxlan drop\n"
#define ROUTING(to, bgp)                                                                           \
	"\t\t" to "tcp dport " bgp " counter name drop_routing drop\n"                             \
	"\t\t" to "udp dport { 3784, 3785, 4784, 6784 } counter name drop_routing drop\n"
#define POD_DESTINATIONS(rules)                                                                    \
	"\tchain pod_destinations {\n" rules "\t}\n"                                               \
	"\tchain pods_raw {\n"                                                                     \
	"\t\ttype filter hook prerouting priority raw; policy accept;\n" FROM_PODS                 \
	"jump pod_destinations\n"                                                                  \
	"\t}\n"
#define POD_INPUT(bgp) "\tchain pod_input {\n" ROUTING("", bgp) "\t}\n"
#define NODE_INPUT(rules)                                                                          \
	"\tchain node_input {\n"                                                                   \
	"\t\ttype filter hook input priority filter - 10; policy accept;\n" rules "\t}\n"
#define JUMP FROM_PODS "jump pod_input\n"
#define UNDERLAY(port)                                                                             \
	"\t\tudp dport " port " ip saddr != @nodes4 counter name drop_underlay drop\n"             \
	"\t\tudp dport " port " ip6 saddr != @nodes6 counter name drop_underlay drop\n"
/* As they are on a node without a tunnel. */
#define PROTECTION POD_DESTINATIONS(LOOPBACK VXLAN("4789")) POD_INPUT("179") NODE_INPUT(JUMP)
#define SET(name, type, elements)                                                                  \
	"\tset " name " {\n\t\ttype " type "\n\t\tflags interval\n\t\telements = { " elements      \
	" }\n\t}\n"
#define CHAIN                                                                                      \
	"\tchain nat_outgoing {\n"                                                                 \
	"\t\ttype nat hook postrouting priority srcnat; policy accept;\n"
#define RULE4                                                                                      \
	"\t\tip saddr @nat4 ip daddr != @pools4 ip daddr != 224.0.0.0/4 "                          \
	"masquerade fully-random\n"
#define RULE6                                                                                      \
	"\t\tip6 saddr @nat6 ip6 daddr != @pools6 ip6 daddr != ff00::/8 "                          \
	"masquerade fully-random\n"

/* Words with blanks between. */
static struct prefixes prefixes(const char *words, struct prefix *room)
{
	char copy[256], *rest = copy, *word;
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", words);
	while ((word = strsep(&rest, " ")))
		if (*word)
			assert_int_equal(prefix_parse(word, &room[n++]), 0);
	return (struct prefixes){ room, n };
}

static const struct firewall_wants plain = { .vxlan_port = 4789, .bgp_port = 179 };

static void expect_parts(const struct firewall_wants *wants, unsigned parts, const char *text)
{
	char *made = NULL;

	assert_int_equal(desired_firewall(wants, parts, &made), 0);
	assert_string_equal(made, text);
	free(made);
}

/* Of the part NAT. */
static void expect(const char *nat, const char *pools, const char *text)
{
	struct prefix rooms[2][ROOM];
	struct firewall_wants wants = plain;

	wants.nat = prefixes(nat, rooms[0]);
	wants.pools = prefixes(pools, rooms[1]);
	expect_parts(&wants, FIREWALL_NAT, text);
}

static void what_leaves_all_pools_is_masqueraded(void **state)
{
	expect("10.1.0.0/16", "10.2.0.0/16 fd00:1::/64",
	       HEAD SET("nat4", "ipv4_addr", "10.1.0.0/16")
		       SET("pools4", "ipv4_addr", "10.1.0.0/16, 10.2.0.0/16") CHAIN RULE4
	       "\t}\n}\n");
	expect("fd00:1::/64", "10.2.0.0/16",
	       HEAD SET("nat6", "ipv6_addr", "fd00:1::/64")
		       SET("pools6", "ipv6_addr", "fd00:1::/64") CHAIN RULE6 "\t}\n}\n");
}

static void all_parts_are_one_table(void **state)
{
	struct prefix rooms[2][ROOM];
	struct firewall_wants wants = plain;

	wants.nat = prefixes("fd00:1::/64 10.1.0.0/16", rooms[0]);
	wants.ipv6_sources = true;
	assert_int_equal(firewall_parts(&wants), FIREWALL_NAT | FIREWALL_ALWAYS);
	expect_parts(&wants, firewall_parts(&wants),
		     HEAD SET("nat4", "ipv4_addr", "10.1.0.0/16")
			     SET("pools4", "ipv4_addr", "10.1.0.0/16") SET("nat6", "ipv6_addr",
									   "fd00:1::/64")
				     SET("pools6", "ipv6_addr", "fd00:1::/64") CHAIN RULE4 RULE6
		     "\t}\n" PROTECTION SOURCES4 SOURCES6 SOURCES_HOOK "}\n");
}

static void every_node_protects_itself_and_checks_sources(void **state)
{
	struct firewall_wants wants = plain;

	assert_int_equal(firewall_parts(&wants), FIREWALL_SOURCES | FIREWALL_PROTECTION);
	expect_parts(&wants, FIREWALL_ALWAYS, HEAD PROTECTION SOURCES4 SOURCES_HOOK "}\n");
	expect_parts(&wants, FIREWALL_PROTECTION, HEAD PROTECTION "}\n");
	wants.ipv6_sources = true;
	expect_parts(&wants, FIREWALL_SOURCES, HEAD SOURCES4 SOURCES6 SOURCES_HOOK "}\n");
}

static void the_tunnel_takes_packets_of_nodes_only(void **state)
{
	struct prefix room[ROOM];
	struct firewall_wants wants = plain;

	wants.tunnel = true;
	wants.vxlan_port = 8472;
	wants.nodes = prefixes("192.0.2.2/32 192.0.2.1/32 192.0.2.2/32", room);
	expect_parts(&wants, FIREWALL_PROTECTION,
		     HEAD "\tset nodes4 { type ipv4_addr; elements = { 192.0.2.1, 192.0.2.2 }; }\n"
			  "\tset nodes6 { type ipv6_addr; }\n" POD_DESTINATIONS(
				  LOOPBACK VXLAN("8472") ROUTING("ip daddr @nodes4 ", "179")
					  ROUTING("ip6 daddr @nodes6 ", "179")) POD_INPUT("179")
				  NODE_INPUT(JUMP UNDERLAY("8472")) "}\n");
	/* None is known but this one: nobody may send. */
	wants.nodes.n = 0;
	wants.pod_routing = true;
	expect_parts(&wants, FIREWALL_PROTECTION,
		     HEAD
		     "\tset nodes4 { type ipv4_addr; }\n"
		     "\tset nodes6 { type ipv6_addr; }\n" POD_DESTINATIONS(LOOPBACK VXLAN("8472"))
			     NODE_INPUT(UNDERLAY("8472")) "}\n");
}

static void settings_open_loopback_and_routing_for_pods(void **state)
{
	struct firewall_wants wants = plain;

	wants.bgp_port = 1179;
	wants.pod_loopback = true;
	expect_parts(&wants, FIREWALL_PROTECTION,
		     HEAD POD_DESTINATIONS(VXLAN("4789")) POD_INPUT("{ 179, 1179 }")
			     NODE_INPUT(JUMP) "}\n");
	wants.pod_routing = true;
	expect_parts(&wants, FIREWALL_PROTECTION, HEAD POD_DESTINATIONS(VXLAN("4789")) "}\n");
}

/* An interval set refuses prefixes that overlap; pools of different networks may. */
static void what_lies_in_another_is_told_once_and_order_does_not_matter(void **state)
{
	const char *text = HEAD SET("nat4", "ipv4_addr", "10.0.0.0/15, 10.2.0.0/24")
		SET("pools4", "ipv4_addr", "10.0.0.0/15, 10.2.0.0/24, 10.2.1.0/24") CHAIN RULE4
		"\t}\n}\n";

	expect("10.0.0.0/15 10.1.0.0/16 10.2.0.0/24 10.0.0.0/15", "10.2.1.0/24 10.2.0.64/26", text);
	expect("10.2.0.0/24 10.1.0.0/16 10.0.0.0/15", "10.2.0.64/26 10.2.1.0/24 10.0.0.0/16", text);
}

static void names_and_order(void **state)
{
	struct prefix room[ROOM];
	struct firewall_wants wants = plain;

	wants.pools = prefixes("10.2.0.0/16 10.1.0.0/24 10.1.0.0/16 fd00::/64 10.1.0.0/16", room);
	firewall_wants_sort(&wants);
	assert_int_equal(wants.pools.n, 3);
	assert_int_equal(wants.pools.v[0].length, 16);
	assert_int_equal(wants.pools.v[2].address.family, AF_INET6);
	assert_string_equal(firewall_part_name(FIREWALL_NAT), "natOutgoing");
	assert_string_equal(firewall_part_name(FIREWALL_SOURCES), "source-check");
	assert_string_equal(firewall_part_name(FIREWALL_PROTECTION), "protection");
	assert_string_equal(firewall_drop_name(FIREWALL_DROP_UNDERLAY), "underlay");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_leaves_all_pools_is_masqueraded),
		cmocka_unit_test(all_parts_are_one_table),
		cmocka_unit_test(every_node_protects_itself_and_checks_sources),
		cmocka_unit_test(the_tunnel_takes_packets_of_nodes_only),
		cmocka_unit_test(settings_open_loopback_and_routing_for_pods),
		cmocka_unit_test(what_lies_in_another_is_told_once_and_order_does_not_matter),
		cmocka_unit_test(names_and_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
