/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/cni/cni_want.h"

#define CONF(fields) "{\"name\":\"pods\"" fields "}"
/* containerd sends annotations as a field of runtimeConfig. */
#define RUNTIME(fields)     ",\"runtimeConfig\":{" fields "}"
#define ANNOTATIONS(fields) RUNTIME("\"io.kubernetes.cri.pod-annotations\":{" fields "}")

static void put(char *text, const char *word)
{
	strcat(strcat(text, *text ? " " : ""), word);
}

/* "pool:web address:10.1.0.5 mac:02:00:00:00:00:05 server:10.0.0.1", as far as it is there. */
static void print(const struct cni_want *w, char *text)
{
	char address[ADDRESS_TEXT], word[256];
	const uint8_t *b = w->mac.bytes;

	*text = '\0';
	for (size_t i = 0; i < w->n_pools; i++) {
		snprintf(word, sizeof(word), "pool:%s", w->pools[i]);
		put(text, word);
	}
	for (size_t i = 0; i < w->n_addresses; i++) {
		snprintf(word, sizeof(word), "address:%s",
			 address_print(&w->addresses[i], address));
		put(text, word);
	}
	if (b[0] || b[5]) {
		snprintf(word, sizeof(word), "mac:%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2],
			 b[3], b[4], b[5]);
		put(text, word);
	}
	for (size_t i = 0; i < w->dns.nameservers.n; i++) {
		snprintf(word, sizeof(word), "server:%s", w->dns.nameservers.v[i]);
		put(text, word);
	}
	for (size_t i = 0; i < w->dns.search.n; i++) {
		snprintf(word, sizeof(word), "search:%s", w->dns.search.v[i]);
		put(text, word);
	}
}

static int read_want(const char *text, const char *ip, const char *mac, struct cni_want *ret,
		     struct cni_conf *conf, struct cni_error *e)
{
	struct cni_env env = { .args = { .ip = ip, .mac = mac } };

	assert_int_equal(cni_conf_read(text, strlen(text), CNI_ADD, conf, e), 0);
	return cni_want_read(conf, &env, ret, e);
}

static void expect(const char *text, const char *ip, const char *mac, const char *want)
{
	AUTO_DONE(cni_want_done) struct cni_want w = { 0 };
	AUTO_DONE(cni_conf_done) struct cni_conf conf = { 0 };
	struct cni_error e = { 0 };
	char got[2048];

	if (read_want(text, ip, mac, &w, &conf, &e) < 0)
		fail_msg("%s: %s", text, e.msg.text);
	print(&w, got);
	assert_string_equal(got, want);
}

static void fails(const char *text, const char *ip, const char *mac, unsigned code, const char *msg)
{
	AUTO_DONE(cni_conf_done) struct cni_conf conf = { 0 };
	struct cni_want w;
	struct cni_error e = { 0 };

	if (read_want(text, ip, mac, &w, &conf, &e) >= 0)
		fail_msg("taken: %s", text);
	assert_string_equal(e.msg.text, msg);
	assert_int_equal(e.code, code);
}

static void nothing_asked_is_nothing_wanted(void **unused)
{
	expect(CONF(""), "", "", "");
	expect(CONF(",\"ipam\":{\"pool\":\"\",\"pools\":[]}" RUNTIME("\"ips\":[],\"mac\":\"\"")),
	       "", "", "");
}

static void a_pool_is_named_inside_or_above(void **unused)
{
	expect(CONF(",\"pool\":\"web\""), "", "", "pool:web");
	expect(CONF(",\"pool\":\"web\",\"ipam\":{\"pool\":\"db\"}"), "", "", "pool:db");
	expect(CONF(",\"IPAM\":{\"Pools\":[\"db\",\"db6\"]}"), "", "", "pool:db pool:db6");
	expect(CONF(",\"ipam\":{\"pool\":[\"a\",\"b\"]}"), "", "", "pool:a pool:b");
	fails(CONF(",\"ipam\":{\"pool\":5}"), "", "", CNI_CODE_DECODE,
	      "field \"ipam.pool\": 5 is an integer, not a string");
	fails(CONF(",\"ipam\":{\"pool\":[5]}"), "", "", CNI_CODE_DECODE,
	      "field \"ipam.pool[0]\": 5 is an integer, not a string");
	fails(CONF(",\"pool\":\"a/b\""), "", "", CNI_CODE_CONFIG,
	      "field \"pool\": \"a/b\" is not a name: 1 to 63 of a-z, 0-9, '.', '-', with a letter "
	      "or digit at both ends");
}

static void the_pods_annotation_beats_the_configuration(void **unused)
{
	expect(CONF(",\"pool\":\"web\"" ANNOTATIONS("\"roost.io/pool\":\"db\"")), "", "",
	       "pool:db");
	expect(CONF(ANNOTATIONS("\"roost.io/pool\":\" db , db6 \"")), "", "", "pool:db pool:db6");
	expect(CONF(ANNOTATIONS("\"roost.io/pool\":\"[\\\"db\\\", \\\"db6\\\"]\"")), "", "",
	       "pool:db pool:db6");
	/* Empty says nothing; annotations are told apart by case. */
	expect(CONF(",\"pool\":\"web\"" ANNOTATIONS("\"roost.io/pool\":\" \"")), "", "",
	       "pool:web");
	expect(CONF(",\"pool\":\"web\"" ANNOTATIONS("\"roost.io/pool\":\"[]\"")), "", "",
	       "pool:web");
	expect(CONF(",\"pool\":\"web\"" ANNOTATIONS("\"Roost.io/Pool\":\"db\"")), "", "",
	       "pool:web");
	/* Unless the operator ignores them. */
	expect(CONF(",\"pool\":\"web\",\"podAnnotations\":false" ANNOTATIONS(
		       "\"roost.io/pool\":\"db\",\"roost.io/addresses\":\"10.1.0.5\"")),
	       "", "", "pool:web");
	expect(CONF(",\"podAnnotations\":true" ANNOTATIONS("\"roost.io/pool\":\"db\"")), "", "",
	       "pool:db");
	expect(CONF(",\"podAnnotations\":true,\"ipam\":{\"podAnnotations\":false}" ANNOTATIONS(
		       "\"roost.io/pool\":\"db\"")),
	       "", "", "");
	fails(CONF(",\"podAnnotations\":\"no\""), "", "", CNI_CODE_DECODE,
	      "field \"podAnnotations\": \"no\" is a string, not true or false");
	fails(CONF(ANNOTATIONS("\"roost.io/pool\":\"a,,b\"")), "", "", CNI_CODE_CONFIG,
	      "the pod's annotation roost.io/pool: \"\" is not a name: 1 to 63 of a-z, 0-9, '.', "
	      "'-', with a letter or digit at both ends");
}

static void annotations_come_under_a_name_of_any_case(void **unused)
{
	expect(CONF(",\"RuntimeConfig\":{\"IO.kubernetes.CRI.pod-annotations\":{\"x\":\"y\","
		    "\"roost.io/pool\":\"db\",\"roost.io/addresses\":\"10.1.0.5,fd00::5\"}}"),
	       "", "", "pool:db address:10.1.0.5 address:fd00::5");
}

static void addresses_have_four_sources_in_order(void **unused)
{
#define IPS  "\"IPs\":[\"10.1.0.1/24\",\"fd00::1\"]"
#define NOTE "\"io.kubernetes.cri.pod-annotations\":{\"roost.io/addresses\":\"[\\\"10.1.0.2\\\"]\"}"
#define ARGS ",\"args\":{\"CNI\":{\"ips\":[\"10.1.0.3/32\"],\"mac\":\"02:00:00:00:00:03\"}}"
	expect(CONF(RUNTIME(IPS "," NOTE) ARGS), "10.1.0.4", "",
	       "address:10.1.0.1 address:fd00::1 mac:02:00:00:00:00:03");
	expect(CONF(RUNTIME(NOTE) ARGS), "10.1.0.4", "", "address:10.1.0.2 mac:02:00:00:00:00:03");
	expect(CONF(ARGS), "10.1.0.4", "", "address:10.1.0.3 mac:02:00:00:00:00:03");
	expect(CONF(""), "10.1.0.4", "", "address:10.1.0.4");
	expect(CONF(""), "10.1.0.4/16,fd00::4", "", "address:10.1.0.4 address:fd00::4");
}

static void a_wrong_address_is_refused_where_somebody_asked_for_it(void **unused)
{
	fails(CONF(RUNTIME("\"ips\":[\"10.1.0\"]")), "", "", CNI_CODE_CONFIG,
	      "field \"runtimeConfig.ips[0]\": \"10.1.0\" is not an address such as \"10.1.0.5\"");
	fails(CONF(RUNTIME("\"ips\":[5]")), "", "", CNI_CODE_DECODE,
	      "field \"runtimeConfig.ips[0]\": 5 is an integer, not a string");
	fails(CONF(ANNOTATIONS("\"roost.io/addresses\":\"x\"")), "", "", CNI_CODE_CONFIG,
	      "the pod's annotation roost.io/addresses: \"x\" is not an address such as "
	      "\"10.1.0.5\"");
	fails(CONF(""), "10.1.0.256", "", CNI_CODE_ENVIRONMENT,
	      "invalid IP in CNI_ARGS: \"10.1.0.256\" is not an address such as \"10.1.0.5\"");
	fails(CONF(",\"runtimeConfig\":[]"), "", "", CNI_CODE_DECODE,
	      "field \"runtimeConfig\": [] is an array, not an object");
}

static void args_never_fail(void **unused)
{
	expect(CONF(",\"args\":5"), "", "", "");
	expect(CONF(",\"args\":{\"cni\":[]}"), "", "", "");
	expect(CONF(",\"args\":{\"cni\":{\"ips\":5,\"mac\":5}}"), "", "", "");
	/* One wrong element spoils the list, and the next source is asked. */
	expect(CONF(",\"args\":{\"cni\":{\"ips\":[\"10.1.0.1\",\"x\"]}}"), "10.1.0.4", "",
	       "address:10.1.0.4");
}

static void a_mac_address_has_three_sources_in_order(void **unused)
{
#define MAC(n) "02:00:00:00:00:0" n
	expect(CONF(RUNTIME("\"mac\":\"" MAC("A") "\"") ",\"args\":{\"cni\":{\"mac\":\"" MAC(
		       "2") "\"}}"),
	       "", MAC("3"), "mac:" MAC("a"));
	expect(CONF(",\"args\":{\"cni\":{\"mac\":\"" MAC("2") "\"}}"), "", MAC("3"),
	       "mac:" MAC("2"));
	expect(CONF(",\"args\":{\"cni\":{\"mac\":\"junk\"}}"), "", MAC("3"), "mac:" MAC("3"));
	fails(CONF(RUNTIME("\"mac\":\"01:00:00:00:00:01\"")), "", "", CNI_CODE_CONFIG,
	      "field \"runtimeConfig.mac\": \"01:00:00:00:00:01\" is not the MAC address of a "
	      "device");
	fails(CONF(""), "", "02-00-00-00-00-05", CNI_CODE_ENVIRONMENT,
	      "invalid MAC in CNI_ARGS: \"02-00-00-00-00-05\" is not the MAC address of a device");
	fails(CONF(""), "", "02:00:00:00:0005:", CNI_CODE_ENVIRONMENT,
	      "invalid MAC in CNI_ARGS: \"02:00:00:00:0005:\" is not the MAC address of a device");
}

static void dns_comes_by_capability_in_containerds_spelling(void **unused)
{
	expect(CONF(RUNTIME("\"dns\":{\"Servers\":[\"10.0.0.1\"],\"Searches\":[\"a.b\"],"
			    "\"Options\":[\"ndots:5\"]}")),
	       "", "", "server:10.0.0.1 search:a.b");
	fails(CONF(RUNTIME("\"dns\":{\"servers\":[\"10.0.0.1\"],\"searches\":5}")), "", "",
	      CNI_CODE_DECODE,
	      "field \"runtimeConfig.dns.searches\": 5 is an integer, not an array");
}

static void lists_have_an_end(void **unused)
{
	char many[4096] = "";

	for (int i = 0; i < CNI_ADDRESSES_MAX; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many), "10.1.0.%d,", i);
	strcat(many, "10.1.1.1");
	fails(CONF(""), many, "", CNI_CODE_ENVIRONMENT,
	      "invalid IP in CNI_ARGS: more than 64 addresses");
	fails(CONF(",\"pool\":[\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\","
		   "\"a\",\"a\",\"a\",\"a\",\"a\",\"a\"]"),
	      "", "", CNI_CODE_CONFIG, "field \"pool[16]\": more than 16 pools");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_asked_is_nothing_wanted),
		cmocka_unit_test(a_pool_is_named_inside_or_above),
		cmocka_unit_test(the_pods_annotation_beats_the_configuration),
		cmocka_unit_test(annotations_come_under_a_name_of_any_case),
		cmocka_unit_test(addresses_have_four_sources_in_order),
		cmocka_unit_test(a_wrong_address_is_refused_where_somebody_asked_for_it),
		cmocka_unit_test(args_never_fail),
		cmocka_unit_test(a_mac_address_has_three_sources_in_order),
		cmocka_unit_test(dns_comes_by_capability_in_containerds_spelling),
		cmocka_unit_test(lists_have_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
