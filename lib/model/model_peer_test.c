/* SPDX-License-Identifier: Apache-2.0 */
/* peer and filter: what may reach BIRD is refused here, or is harmless there. */
#include "lib/model/model_lab.h"

#define PEER(json, sentence)   REFUSED(peer, "peer/tor", json, "peer/tor: " sentence)
#define FILTER(json, sentence) REFUSED(filter, "filter/in", json, "filter/in: " sentence)

static void every_field_of_peer_is_read_and_written(void **unused)
{
	ECHOES(peer, "peer/tor",
	       "{\"address\":\"fe80::1%eth0.7\",\"asn\":4294967295,\"nodes\":[\"n1\",\"n2\"],"
	       "\"port\":1179,\"localAsn\":65001,\"sourceAddress\":\"fd00::1\",\"ttlSecurity\":"
	       "true,"
	       "\"passive\":true,\"passwordFile\":\"/etc/roost/tor\",\"bfd\":true,\"holdTime\":30,"
	       "\"keepaliveTime\":10,\"connectRetryTime\":7,\"gracefulRestart\":false,"
	       "\"gracefulRestartTime\":60,\"nextHopSelf\":false,\"nextHopKeep\":true,"
	       "\"allowLocalAs\":2,\"reflectorClient\":true,\"families\":[\"ipv4\",\"ipv6\"],"
	       "\"importFilter\":\"in\",\"exportFilter\":\"out\",\"description\":\"rack 7; {#}\","
	       "\"disabled\":true}");
	ECHOES(peer, "peer/rr",
	       "{\"peerSelector\":\"has(rr)\",\"nodeSelector\":\"!has(rr)\",\"multihop\":5,"
	       "\"bfd\":false,\"holdTime\":0,\"gracefulRestart\":true}");
}

static void what_a_peer_leaves_out_is_the_configs(void **unused)
{
	AUTO_DONE(peer_done) struct peer p = { 0 };
	const char *json = "{\"address\":\"192.0.2.1\",\"asn\":64512}";

	assert_int_equal(peer_decode("peer/tor", json, strlen(json), &p, NULL), 0);
	assert_string_equal(p.name, "tor");
	assert_int_equal(p.bfd, MAYBE_UNSET);
	assert_int_equal(p.graceful_restart, MAYBE_UNSET);
	assert_int_equal(p.hold_time, UNSET);
	assert_int_equal(p.keepalive_time, UNSET);
	assert_int_equal(p.connect_retry_time, UNSET);
	assert_int_equal(p.graceful_restart_time, UNSET);
	assert_true(p.next_hop_self);
	assert_int_equal(p.port, 0);
	assert_int_equal(p.families.n, 0);
}

static void a_peer_is_one_address_or_a_selector(void **unused)
{
	PEER("{}", "fields \"address\" and \"peerSelector\": exactly one is required");
	PEER("{\"address\":\"192.0.2.1\",\"asn\":1,\"peerSelector\":\"all()\"}",
	     "fields \"address\" and \"peerSelector\": exactly one is required");
	PEER("{\"address\":\"192.0.2.1\"}", "field \"asn\": is missing, and \"address\" needs it");
	PEER("{\"peerSelector\":\"all()\",\"asn\":1}",
	     "field \"asn\": with \"peerSelector\" each node has its own");
	PEER("{\"peerSelector\":\"all()\",\"localAsn\":1}",
	     "field \"localAsn\": with \"peerSelector\" each node has its own");
	PEER("{\"peerSelector\":\"all()\",\"nodes\":[\"a\"],\"nodeSelector\":\"all()\"}",
	     "fields \"nodes\" and \"nodeSelector\": only one may be given");
}

static void addresses_that_no_neighbour_has_are_refused(void **unused)
{
#define ADDRESS(text, sentence)                                                                    \
	PEER("{\"address\":\"" text "\",\"asn\":1}", "field \"address\": " sentence)
	ADDRESS("0.0.0.0", "0.0.0.0 is no neighbour's address");
	ADDRESS("224.0.0.1", "224.0.0.1 is no neighbour's address");
	ADDRESS("::ffff:10.0.0.1", "::ffff:10.0.0.1 is no neighbour's address");
	ADDRESS("::10.0.0.1", "::10.0.0.1 is no neighbour's address");
	ADDRESS("fe80::1", "\"fe80::1\" needs its interface, as in \"fe80::1%eth0\"");
	ADDRESS("fd00::1%eth0",
		"\"fd00::1%eth0\" has an interface, which only fe80::/10 addresses need");
	ADDRESS("10.0.0.1%eth0",
		"\"10.0.0.1%eth0\" has an interface, which only fe80::/10 addresses need");
	ADDRESS("fe80::1%", "\"\" is not an interface name: 1 to 15 of A-Z, a-z, 0-9, '_', '.', "
			    "'-', and not '.' or '..'");
	ADDRESS("fe80::1%e'; }", "\"e'; }\" is not an interface name: 1 to 15 of A-Z, a-z, 0-9, "
				 "'_', '.', '-', and not '.' or '..'");
	ADDRESS("010.0.0.2", "\"010.0.0.2\" is not an address");
	ADDRESS("10.0.0.1; passive", "\"10.0.0.1; passive\" is not an address");
}

static void options_of_a_peer_must_fit_together(void **unused)
{
#define V4 "{\"address\":\"192.0.2.1\",\"asn\":1,"
	PEER(V4 "\"families\":[\"ipv6\"]}",
	     "field \"families\": an IPv4 session cannot carry ipv6");
	PEER(V4 "\"families\":[\"ipx\"]}",
	     "field \"families[0]\": \"ipx\" is not one of ipv4, ipv6");
	PEER(V4 "\"sourceAddress\":\"fd00::1\"}",
	     "field \"sourceAddress\": fd00::1 is not of the family of \"address\"");
	PEER(V4 "\"holdTime\":30,\"keepaliveTime\":30}",
	     "field \"keepaliveTime\": 30 is not less than holdTime 30");
	PEER(V4 "\"holdTime\":2}", "field \"holdTime\": 2 is neither 0 nor between 3 and 65535");
	PEER(V4 "\"bfd\":1}", "field \"bfd\": 1 is an integer, not true or false");
	PEER("{\"address\":\"fe80::1%eth0\",\"asn\":1,\"multihop\":2}",
	     "field \"multihop\": a link-local neighbour is on the link");
}

static void every_field_of_filter_is_read_and_written(void **unused)
{
	ECHOES(filter, "filter/in",
	       "{\"rules\":[{\"match\":{\"cidr\":\"10.0.0.0/8\",\"ge\":16,\"le\":24,"
	       "\"community\":\"65000:1\",\"largeCommunity\":\"1:2:3\",\"asPathContains\":65001,"
	       "\"origin\":\"igp\"},\"action\":\"continue\",\"set\":{\"localPref\":200,\"med\":0,"
	       "\"addCommunities\":[\"65000:2\",\"4200000000:1:2\"],\"prepend\":3}},"
	       "{\"action\":\"reject\"}]}");
	ECHOES(filter, "filter/none", "{\"rules\":[]}");
}

static void lengths_follow_from_what_is_given(void **unused)
{
	struct filter_match m = { .ge = UNSET, .le = UNSET };
	uint32_t ge, le;

	assert_int_equal(prefix_parse("10.0.0.0/8", &m.cidr), 0);
	filter_lengths(&m, &ge, &le);
	assert_int_equal(ge, 8);
	assert_int_equal(le, 8);
	m.ge = 16;
	filter_lengths(&m, &ge, &le);
	assert_int_equal(ge, 16);
	assert_int_equal(le, 32);
	m.ge = UNSET;
	m.le = 24;
	filter_lengths(&m, &ge, &le);
	assert_int_equal(ge, 8);
	assert_int_equal(le, 24);
}

static void filters_out_of_their_rules_are_refused(void **unused)
{
	FILTER("{}", "field \"rules\": is missing");
	FILTER("{\"rules\":[{}]}", "field \"rules[0].action\": is missing");
	FILTER("{\"rules\":[{\"action\":\"accept; }\"}]}",
	       "field \"rules[0].action\": \"accept; }\" is not one of accept, reject, continue");
	FILTER("{\"rules\":[{\"action\":\"accept\",\"match\":{\"ge\":8}}]}",
	       "field \"rules[0].match\": ge and le need a cidr");
	FILTER("{\"rules\":[{\"action\":\"accept\",\"match\":{\"cidr\":\"10.0.0.0/"
	       "8\",\"le\":33}}]}",
	       "field \"rules[0].match\": not 8 (cidr) <= 8 (ge) <= 33 (le) <= 32");
	FILTER("{\"rules\":[{\"action\":\"accept\",\"match\":{\"cidr\":\"10.0.0.0/8\",\"ge\":7}}]}",
	       "field \"rules[0].match\": not 8 (cidr) <= 7 (ge) <= 32 (le) <= 32");
	FILTER("{\"rules\":[{\"action\":\"accept\",\"match\":{\"community\":\"1:2:3\"}}]}",
	       "field \"rules[0].match.community\": \"1:2:3\" is not a community: two numbers up "
	       "to "
	       "65535 with ':' between");
	FILTER("{\"rules\":[{\"action\":\"accept\",\"set\":{\"prepend\":17}}]}",
	       "field \"rules[0].set.prepend\": 17 is not between 0 and 16");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_of_peer_is_read_and_written),
		cmocka_unit_test(what_a_peer_leaves_out_is_the_configs),
		cmocka_unit_test(a_peer_is_one_address_or_a_selector),
		cmocka_unit_test(addresses_that_no_neighbour_has_are_refused),
		cmocka_unit_test(options_of_a_peer_must_fit_together),
		cmocka_unit_test(every_field_of_filter_is_read_and_written),
		cmocka_unit_test(lengths_follow_from_what_is_given),
		cmocka_unit_test(filters_out_of_their_rules_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
