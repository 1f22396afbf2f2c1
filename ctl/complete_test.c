/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/complete.h"
#include "lib/model/keys.h"

#define WORDS(...)                                                                                 \
	(const char *const[]){ __VA_ARGS__ },                                                      \
		sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)

/* The candidates, without what they are, one blank between them. */
static char *candidates(const char *const *words, size_t n)
{
	struct completion c = complete_find(commands, words, n);
	char *text = NULL, *at, *to;
	bool about = false;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	complete_print(out, commands, &c);
	fclose(out);
	for (at = to = text; *at; at++) {
		about = *at == '\t' || (about && *at != '\n');
		if (!about)
			*to++ = *at == '\n' ? ' ' : *at;
	}
	*to = '\0';
	return text;
}

#define OFFERS(want, ...)                                                                          \
	do {                                                                                       \
		AUTO(free) char *got_ = candidates(WORDS(__VA_ARGS__));                            \
		assert_string_equal(got_, want);                                                   \
	} while (0)

#define KEYS(want, ...)                                                                            \
	do {                                                                                       \
		struct completion c_ = complete_find(commands, WORDS(__VA_ARGS__));                \
		const char *keys_ = complete_keys(&c_);                                            \
		assert_string_equal(keys_ ?: "none", want);                                        \
	} while (0)

static void nouns_then_verbs(void **unused)
{
	OFFERS("pool peer pod ", "p");
	OFFERS("show set ", "config", "s");
	OFFERS("", "frobnicate", "");
	OFFERS("version ", "--etcd", "http://x", "ver");
	OFFERS("drain delete ", "node", "-o", "json", "d");
}

static void flags_are_those_of_the_command(void **unused)
{
	OFFERS("--yes ", "pool", "delete", "web", "--y");
	OFFERS("", "pool", "show", "web", "--y");
	OFFERS("--watch ", "pool", "list", "--w");
	OFFERS("--output ", "--o");
	OFFERS("table wide json ", "pool", "list", "-o", "");
	OFFERS("json ", "--output", "j");
}

static void fields_come_from_the_record(void **unused)
{
	OFFERS("blockSize= ", "pool", "create", "web", "bl");
	OFFERS("disabled=true disabled=false ", "pool", "edit", "web", "cidr=x", "disabled=");
	OFFERS("bgp.holdTime= ", "config", "set", "bgp.ho");
	OFFERS("protocol=ospf ", "config", "set", "protocol=o");
	OFFERS("gateways= gateway= ", "route", "edit", "vpn", "gat");
}

static void names_come_from_etcd(void **unused)
{
	KEYS(KEYS_POOL, "pool", "show", "");
	KEYS("none", "pool", "show", "web", "");
	KEYS("none", "pool", "create", "");
	KEYS(KEYS_NODE, "block", "list", "n");
	KEYS(KEYS_HOST, "address", "show", "10.");
	KEYS(KEYS_PEER, "get", "peer", "");
	KEYS(KEYS_STATIC_ROUTE, "route", "delete", "");
	KEYS("config", "get", "config", "");
	KEYS("none", "get", "");
	OFFERS("pool peer ", "get", "p");
	OFFERS("bash zsh ", "completion", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nouns_then_verbs),
		cmocka_unit_test(flags_are_those_of_the_command),
		cmocka_unit_test(fields_come_from_the_record),
		cmocka_unit_test(names_come_from_etcd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
