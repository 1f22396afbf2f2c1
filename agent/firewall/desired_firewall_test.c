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
	"\tcomment \"kept by roostd; changes are undone\"\n"
#define SOURCES                                                                                    \
	"\tchain pod_sources {\n"                                                                  \
	"\t\ttype filter hook prerouting priority raw; policy accept;\n"                           \
	"\t\tiifname \"roost*\" meta iifkind \"veth\" ip6 saddr != { ::, fe80::/10 } "             \
	"fib saddr . iif oif missing drop\n"                                                       \
	"\t}\n"
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

static void expect(const char *nat, const char *pools, bool check, const char *text)
{
	struct prefix rooms[2][ROOM];
	struct firewall_wants wants = { prefixes(nat, rooms[0]), prefixes(pools, rooms[1]), check };
	char *made = NULL;

	assert_int_equal(desired_firewall(&wants, firewall_parts(&wants), &made), 0);
	assert_string_equal(made, text);
	free(made);
}

static void what_leaves_all_pools_is_masqueraded(void **state)
{
	expect("10.1.0.0/16", "10.2.0.0/16 fd00:1::/64", false,
	       HEAD SET("nat4", "ipv4_addr", "10.1.0.0/16")
		       SET("pools4", "ipv4_addr", "10.1.0.0/16, 10.2.0.0/16") CHAIN RULE4
	       "\t}\n}\n");
	expect("fd00:1::/64", "10.2.0.0/16", false,
	       HEAD SET("nat6", "ipv6_addr", "fd00:1::/64")
		       SET("pools6", "ipv6_addr", "fd00:1::/64") CHAIN RULE6 "\t}\n}\n");
}

static void both_families_and_the_check_of_sources(void **state)
{
	expect("fd00:1::/64 10.1.0.0/16", "", true,
	       HEAD SET("nat4", "ipv4_addr", "10.1.0.0/16")
		       SET("pools4", "ipv4_addr", "10.1.0.0/16")
			       SET("nat6", "ipv6_addr", "fd00:1::/64")
				       SET("pools6", "ipv6_addr", "fd00:1::/64") CHAIN RULE4 RULE6
	       "\t}\n" SOURCES "}\n");
	expect("", "fd00:1::/64", true, HEAD SOURCES "}\n");
}

/* An interval set refuses prefixes that overlap; pools of different networks may. */
static void what_lies_in_another_is_told_once_and_order_does_not_matter(void **state)
{
	const char *text = HEAD SET("nat4", "ipv4_addr", "10.0.0.0/15, 10.2.0.0/24")
		SET("pools4", "ipv4_addr", "10.0.0.0/15, 10.2.0.0/24, 10.2.1.0/24") CHAIN RULE4
		"\t}\n}\n";

	expect("10.0.0.0/15 10.1.0.0/16 10.2.0.0/24 10.0.0.0/15", "10.2.1.0/24 10.2.0.64/26", false,
	       text);
	expect("10.2.0.0/24 10.1.0.0/16 10.0.0.0/15", "10.2.0.64/26 10.2.1.0/24 10.0.0.0/16", false,
	       text);
}

static void without_a_wish_no_part_is_wanted(void **state)
{
	struct prefix room[ROOM];
	struct firewall_wants wants = { .pools = prefixes("10.1.0.0/16", room) };

	assert_int_equal(firewall_parts(&wants), 0);
	wants.check_sources = true;
	assert_int_equal(firewall_parts(&wants), FIREWALL_SOURCES);
	wants.nat = wants.pools;
	assert_int_equal(firewall_parts(&wants), FIREWALL_NAT | FIREWALL_SOURCES);
	wants.pools = prefixes("10.2.0.0/16 10.1.0.0/24 10.1.0.0/16 fd00::/64 10.1.0.0/16", room);
	wants.nat.n = 0;
	firewall_wants_sort(&wants);
	assert_int_equal(wants.pools.n, 3);
	assert_int_equal(wants.pools.v[0].length, 16);
	assert_int_equal(wants.pools.v[2].address.family, AF_INET6);
	assert_string_equal(firewall_part_name(FIREWALL_NAT), "natOutgoing");
	assert_string_equal(firewall_part_name(FIREWALL_SOURCES), "ipv6-source-check");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_leaves_all_pools_is_masqueraded),
		cmocka_unit_test(both_families_and_the_check_of_sources),
		cmocka_unit_test(what_lies_in_another_is_told_once_and_order_does_not_matter),
		cmocka_unit_test(without_a_wish_no_part_is_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
