/* SPDX-License-Identifier: Apache-2.0 */
/* Plans from whole states: who peers with whom, what is left out, what a change would do. */
#include "agent/bird/bird_tree.h"
#include "agent/bird/desired_bird.h"
#include "agent/bird/desired_bird_world.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

/* --- what is expected, as text -------------------------------------------------------------- */

#define N(i, four) "\"node/n" #i "\":{\"ipv4\":\"" four "/24\"},"
#define NODES                                                                                      \
	N(1, "192.168.50.1")                                                                       \
	N(2, "192.168.50.2")                                                                       \
	N(3, "192.168.50.3")                                                                       \
	N(10, "192.168.50.10")                                                                     \
	"\"extent/default/web\":{\"cidr\":\"10.244.0.0/16\",\"blockSize\":26}"
#define STATE(self, records) "{\"self\":\"" self "\",\"records\":{" records "}}"

static void describe(FILE *f, const struct bird_session *s)
{
	const struct bird_options *o = &s->options;
	char address[ADDRESS_TEXT];

	fprintf(f, "%s as %u", address_print(&s->neighbour.address, address), s->asn);
	if (s->neighbour.zone[0])
		fprintf(f, " on %s", s->neighbour.zone);
	fprintf(f, " by %s%s%s%s%s%s%s%s%s\n", s->record, o->multihop ? " multihop" : "",
		o->ttl_security ? " ttl" : "", o->rr_client ? " client" : "",
		s->passive ? " passive" : "", s->password ? " password" : "", o->ipv4 ? " 4" : "",
		o->ipv6 ? " 6" : "", o->extended_next_hop ? " extended" : "");
}

static char *sessions_of(const struct bird_plan *plan)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	for (size_t i = 0; i < plan->n_sessions; i++)
		describe(f, &plan->sessions[i]);
	fclose(f);
	return text;
}

static void expect(const char *state, const char *sessions, const char *problems)
{
	AUTO_DONE(bird_plan_done) struct bird_plan plan = { 0 };
	AUTO(free) char *got = NULL, *told = NULL;
	struct world w;

	world_make(&w, state);
	assert_string_equal(w.refused, "");
	assert_int_equal(desired_bird(&w.in, &plan), 0);
	got = sessions_of(&plan);
	told = world_problems(&plan);
	assert_string_equal(got, sessions);
	assert_string_equal(told, problems);
	world_done(&w);
}

static char *tree_of(const char *state)
{
	AUTO_DONE(bird_plan_done) struct bird_plan plan = { 0 };
	struct world w;
	char *text;

	world_make(&w, state);
	assert_int_equal(desired_bird(&w.in, &plan), 0);
	text = strdup(json_object_to_json_string(plan.tree));
	world_done(&w);
	return text;
}

/* --- mesh ----------------------------------------------------------------------------------- */

static void the_mesh_has_every_node_in_the_order_of_addresses(void **unused)
{
	expect(STATE("n2", NODES),
	       "192.168.50.1 as 64512 by node/n1 4\n"
	       "192.168.50.3 as 64512 by node/n3 4\n"
	       "192.168.50.10 as 64512 by node/n10 4\n",
	       "");
	expect(STATE("n2", NODES ",\"config\":{\"mesh\":false}"), "", "");
}

static void who_holds_a_lease_speaks_no_bgp(void **unused)
{
	expect(STATE("n2", "\"node/lease-192.168.50.9\":{\"ipv4\":\"192.168.50.9/32\",\"machine\":"
			   "\"lease\",\"boot\":\"lease\"}," NODES),
	       "192.168.50.1 as 64512 by node/n1 4\n"
	       "192.168.50.3 as 64512 by node/n3 4\n"
	       "192.168.50.10 as 64512 by node/n10 4\n",
	       "");
}

static void reflectors_are_not_in_the_mesh(void **unused)
{
#define RR ",\"spec/n1\":{\"labels\":{\"rr\":\"yes\"},\"routeReflectorClusterId\":\"1.1.1.1\"}"
	expect(STATE("n2", NODES RR),
	       "192.168.50.3 as 64512 by node/n3 4\n"
	       "192.168.50.10 as 64512 by node/n10 4\n",
	       "");
	expect(STATE("n1", NODES RR), "", "");
}

static void a_node_of_another_as_is_an_outer_neighbour(void **unused)
{
	expect(STATE("n2", NODES ",\"spec/n1\":{\"asn\":65001},\"spec/n2\":{\"asn\":65002},"
				 "\"node/far\":{\"ipv4\":\"10.7.0.1/24\"}"),
	       "10.7.0.1 as 64512 by node/far multihop 4\n"
	       "192.168.50.1 as 65001 by node/n1 4\n"
	       "192.168.50.3 as 64512 by node/n3 4\n"
	       "192.168.50.10 as 64512 by node/n10 4\n",
	       "");
}

static void ipv4_goes_over_ipv6_where_there_is_no_other_way(void **unused)
{
	expect(STATE("a",
		     "\"node/a\":{\"ipv4\":\"10.0.0.1/24\",\"ipv6\":\"fd50::1/64\"},"
		     "\"node/b\":{\"ipv4\":\"10.0.0.2/24\",\"ipv6\":\"fd50::2/64\"},"
		     "\"node/c\":{\"ipv6\":\"fd50::3/64\"},\"node/d\":{\"ipv4\":\"10.0.0.4/24\"},"
		     "\"node/e\":{\"ipv6\":\"fe80::5/64\"}"),
	       "10.0.0.2 as 64512 by node/b 4\n"
	       "10.0.0.4 as 64512 by node/d 4\n"
	       "fd50::2 as 64512 by node/b 6\n"
	       "fd50::3 as 64512 by node/c 4 6 extended\n",
	       "node/e: field \"ipv6\": is no address for a session; left out\n");
}

/* --- peers ---------------------------------------------------------------------------------- */

static void a_selector_makes_both_ends(void **unused)
{
#define CLIENTS                                                                                    \
	NODES RR ",\"config\":{\"mesh\":false},\"peer/rr\":{\"peerSelector\":\"has(rr)\","         \
		 "\"nodeSelector\":\"!has(rr)\",\"passive\":true}"
	expect(STATE("n1", CLIENTS),
	       "192.168.50.2 as 64512 by peer/rr client 4\n"
	       "192.168.50.3 as 64512 by peer/rr client 4\n"
	       "192.168.50.10 as 64512 by peer/rr client 4\n",
	       "");
	expect(STATE("n10", CLIENTS), "192.168.50.1 as 64512 by peer/rr passive 4\n", "");
}

static void of_two_ends_that_a_record_names_the_lower_address_is_passive(void **unused)
{
#define BOTH                                                                                       \
	NODES ",\"config\":{\"mesh\":false},\"peer/"                                               \
	      "all\":{\"peerSelector\":\"all()\",\"passive\":true}"
	expect(STATE("n2", BOTH),
	       "192.168.50.1 as 64512 by peer/all 4\n"
	       "192.168.50.3 as 64512 by peer/all passive 4\n"
	       /* by value: as text 192.168.50.10 comes first */
	       "192.168.50.10 as 64512 by peer/all passive 4\n",
	       "");
	expect(STATE("n10", BOTH),
	       "192.168.50.1 as 64512 by peer/all 4\n"
	       "192.168.50.2 as 64512 by peer/all 4\n"
	       "192.168.50.3 as 64512 by peer/all 4\n",
	       "");
}

static void reflectors_of_one_cluster_are_no_clients_of_each_other(void **unused)
{
	expect(STATE("n1", NODES RR ",\"spec/n2\":{\"routeReflectorClusterId\":\"1.1.1.1\"},"
				    "\"spec/n3\":{\"routeReflectorClusterId\":\"2.2.2.2\"},"
				    "\"peer/rr\":{\"peerSelector\":\"all()\",\"nodes\":[\"n1\"]},"
				    "\"peer/x\":{\"address\":\"192.168.50.200\",\"asn\":64512},"
				    "\"peer/y\":{\"address\":\"192.168.50.201\",\"asn\":65000}"),
	       "192.168.50.2 as 64512 by peer/rr 4\n"
	       "192.168.50.3 as 64512 by peer/rr client 4\n"
	       "192.168.50.10 as 64512 by peer/rr client 4\n"
	       "192.168.50.200 as 64512 by peer/x client 4\n"
	       "192.168.50.201 as 65000 by peer/y 4\n",
	       "");
}

static void nodes_and_selectors_say_which_nodes(void **unused)
{
#define TORS                                                                                       \
	NODES ",\"config\":{\"mesh\":false},\"spec/n1\":{\"labels\":{\"rack\":\"a\"}},"            \
	      "\"peer/a\":{\"address\":\"10.0.0.1\",\"asn\":1,\"nodeSelector\":\"rack == 'a'\"},"  \
	      "\"peer/b\":{\"address\":\"10.0.0.2\",\"asn\":1,\"nodes\":[\"n2\",\"n3\"]},"         \
	      "\"peer/c\":{\"address\":\"10.0.0.3\",\"asn\":1,"                                    \
	      "\"nodeSelector\":\"kubernetes.io/hostname == 'n2'\"},"                              \
	      "\"peer/d\":{\"address\":\"192.168.50.1\",\"asn\":64512},"                           \
	      "\"peer/e\":{\"address\":\"fe80::1%eth0\",\"asn\":1,\"disabled\":true}"
	expect(STATE("n1", TORS), "10.0.0.1 as 1 by peer/a 4\n", "");
	expect(STATE("n2", TORS),
	       "10.0.0.2 as 1 by peer/b 4\n"
	       "10.0.0.3 as 1 by peer/c 4\n"
	       "192.168.50.1 as 64512 by peer/d 4\n",
	       "");
}

static void a_record_wins_over_the_mesh_and_the_first_name_over_the_second(void **unused)
{
	expect(STATE("n1", NODES ",\"peer/b\":{\"address\":\"192.168.50.2\",\"asn\":64512},"
				 "\"peer/a\":{\"address\":\"192.168.50.2\",\"asn\":64512}"),
	       "192.168.50.2 as 64512 by peer/a 4\n"
	       "192.168.50.3 as 64512 by node/n3 4\n"
	       "192.168.50.10 as 64512 by node/n10 4\n",
	       "peer/b: has the same neighbour as peer/a, 192.168.50.2; left out\n");
}

static void without_its_password_there_is_no_session_at_all(void **unused)
{
	/* Neither by its record nor by the mesh that the record displaced. */
	expect("{\"self\":\"n1\",\"records\":{" NODES
	       ",\"peer/a\":{\"peerSelector\":\"all()\",\"passwordFile\":\"/p\"}},"
	       "\"passwords\":{\"/p\":null}}",
	       "",
	       "peer/a: field \"passwordFile\": No such file or directory; left out until it can "
	       "be read\n");
	expect("{\"self\":\"n1\",\"records\":{" NODES
	       ",\"peer/a\":{\"peerSelector\":\"all()\",\"passwordFile\":\"/p\"}}}",
	       "", "peer/a: field \"passwordFile\": was not read; left out until it can be read\n");
}

/* A mesh that may have a password has no session without it; a record's session is its own. */
static void the_mesh_has_the_password_of_config(void **unused)
{
	static const char config[] = NODES
		",\"config\":{\"bgp\":{\"passwordFile\":\"/m\"}},"
		"\"peer/a\":{\"address\":\"192.168.50.2\",\"asn\":64512}";
	AUTO(free) char *with = NULL, *without = NULL;

	assert_true(asprintf(&with,
			     "{\"self\":\"n1\",\"records\":{%s},\"passwords\":{\"/m\":\"w\"}}",
			     config) > 0);
	assert_true(asprintf(&without,
			     "{\"self\":\"n1\",\"records\":{%s},\"passwords\":{\"/m\":null}}",
			     config) > 0);
	expect(with,
	       "192.168.50.2 as 64512 by peer/a 4\n"
	       "192.168.50.3 as 64512 by node/n3 password 4\n"
	       "192.168.50.10 as 64512 by node/n10 password 4\n",
	       "");
	expect(without, "192.168.50.2 as 64512 by peer/a 4\n",
	       "config: field \"bgp.passwordFile\": No such file or directory; left out until it "
	       "can be read\n");
}

/* Both ends have to come to the same result: the neighbour's subnet counts as well. */
static void the_mesh_has_ttl_security_on_a_common_subnet(void **unused)
{
	static const char state[] = STATE("n1",
					  "\"node/n1\":{\"ipv4\":\"192.168.50.1/24\"},"
					  "\"node/n2\":{\"ipv4\":\"192.168.50.2/24\"},"
					  "\"node/n3\":{\"ipv4\":\"192.168.50.3/32\"},"
					  "\"node/n4\":{\"ipv4\":\"192.168.60.4/24\"},"
					  "\"peer/a\":{\"address\":\"192.168.50.9\",\"asn\":1},"
					  "\"config\":{\"bgp\":{\"ttlSecurity\":true}}");

	expect(state,
	       "192.168.50.2 as 64512 by node/n2 ttl 4\n"
	       "192.168.50.3 as 64512 by node/n3 4\n"
	       "192.168.50.9 as 1 by peer/a 4\n"
	       "192.168.60.4 as 64512 by node/n4 multihop 4\n",
	       "config: (notice) field \"bgp.ttlSecurity\": some nodes are not in a subnet of this "
	       "node: their sessions have no TTL security\n");
}

static void what_a_record_says_in_vain_is_told(void **unused)
{
	expect(STATE("n1", NODES ",\"config\":{\"mesh\":false,\"bgp\":{\"holdTime\":30}},"
				 "\"peer/a\":{\"address\":\"192.168.50.2\",\"asn\":65000,"
				 "\"keepaliveTime\":30,\"reflectorClient\":true}"),
	       "192.168.50.2 as 65000 by peer/a 4\n",
	       "peer/a: (notice) field \"keepaliveTime\": 30 is not less than the hold time 30; a "
	       "third of that is used\n"
	       "peer/a: (notice) field \"reflectorClient\": has no effect on a neighbour in "
	       "another "
	       "AS\n");
}

static void password_files_are_those_that_this_node_needs(void **unused)
{
	struct texts files = { 0 };
	struct world w;

	world_make(
		&w,
		STATE("n1", NODES RR
		      ",\"peer/a\":{\"address\":\"10.0.0.1\",\"asn\":1,\"passwordFile\":\"/a\"},"
		      "\"peer/b\":{\"address\":\"10.0.0.2\",\"asn\":1,\"nodes\":[\"n2\"],"
		      "\"passwordFile\":\"/b\"},"
		      "\"peer/c\":{\"peerSelector\":\"has(rr)\",\"nodes\":[\"n2\"],"
		      "\"passwordFile\":\"/c\"},"
		      "\"config\":{\"bgp\":{\"passwordFile\":\"/m\"}},"
		      "\"peer/d\":{\"address\":\"10.0.0.3\",\"asn\":1,\"passwordFile\":\"/a\"}"));
	assert_int_equal(desired_bird_password_files(&w.in, &files), 0);
	/* A reflector is not in the mesh. */
	assert_int_equal(files.n, 2);
	assert_string_equal(files.v[0], "/a");
	assert_string_equal(files.v[1], "/c");
	free(files.v);
	world_done(&w);
	world_make(&w, STATE("n1", NODES ",\"config\":{\"bgp\":{\"passwordFile\":\"/m\"}}"));
	assert_int_equal(desired_bird_password_files(&w.in, &files), 0);
	assert_int_equal(files.n, 1);
	assert_string_equal(files.v[0], "/m");
	free(files.v);
	world_done(&w);
}

/* --- names and order ------------------------------------------------------------------------ */

static void the_order_of_records_does_not_matter(void **unused)
{
#define R1 "\"node/n1\":{\"ipv4\":\"192.168.50.1/24\"}"
#define R2 "\"node/n2\":{\"ipv4\":\"192.168.50.2/24\"}"
#define R3 "\"node/n3\":{\"ipv4\":\"192.168.50.3/24\"}"
#define P1 "\"peer/a\":{\"peerSelector\":\"all()\",\"nodes\":[\"n3\"],\"importFilter\":\"x\"}"
#define P2 "\"peer/b\":{\"address\":\"192.168.50.2\",\"asn\":1,\"exportFilter\":\"y\"}"
#define F1 "\"filter/x\":{\"rules\":[]}"
#define F2 "\"filter/y\":{\"rules\":[{\"action\":\"reject\"}]}"
#define E1 "\"extent/default/x\":{\"cidr\":\"10.1.0.0/16\",\"blockSize\":26}"
#define E2 "\"extent/default/y\":{\"cidr\":\"10.0.0.0/16\",\"blockSize\":26}"
	AUTO(free)
	char *one = tree_of(
		STATE("n1", R1 "," R2 "," R3 "," P1 "," P2 "," F1 "," F2 "," E1 "," E2));
	AUTO(free)
	char *two = tree_of(
		STATE("n1", E2 "," F2 "," P2 "," R3 "," E1 "," R2 "," P1 "," R1 "," F1));

	assert_string_equal(one, two);
}

#define LL(n, zone)                                                                                \
	"\"peer/" n "\":{\"address\":\"fe80:1111:2222:3333:4444:5555:6666:7777%" zone              \
	"\",\"asn\":1}"

static void names_fit_bird_and_never_meet(void **unused)
{
	AUTO_DONE(bird_plan_done) struct bird_plan plan = { 0 };
	struct world w;

	world_make(&w,
		   STATE("n1",
			 "\"node/n1\":{\"ipv6\":\"fd50::1/64\"}," LL("a", "eth0.1234567890") "," LL(
				 "b", "eth0-1234567890") "," LL("c",
								"eth0_1234567890") "," LL("d",
											  "eth0")));
	assert_int_equal(desired_bird(&w.in, &plan), 0);
	assert_int_equal(plan.n_sessions, 4);
	for (size_t i = 0; i < 4; i++) {
		const char *name = plan.sessions[i].name;

		assert_true(strlen(name) <= 64);
		assert_int_equal(strspn(name, "n_0123456789abcdefghijklmnopqrstuvwxyz"),
				 strlen(name));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(name, plan.sessions[j].name);
	}
	assert_string_equal(plan.sessions[0].name,
			    "n_fe80_1111_2222_3333_4444_5555_6666_7777_eth0");
	world_done(&w);
}

/* --- hostile values ------------------------------------------------------------------------- */

#define EVIL "EVIL"

/* Each has a hole for the value, which is EVIL with something that would break out of its place. */
static const char *const holes[] = {
	"\"config\":{\"bgp\":{\"communities\":[\"%s\"]}}",
	"\"config\":{\"protocol\":\"%s\"}",
	"\"config\":{\"announce\":\"%s\"}",
	"\"config\":{\"logLevel\":\"%s\"}",
	"\"config\":{\"ospf\":{\"area\":\"%s\"}}",
	"\"config\":{\"ospf\":{\"interfaces\":[\"%s\"]}}",
	"\"config\":{\"ospf\":{\"type\":\"%s\"}}",
	"\"config\":{\"rip\":{\"interfaces\":[\"%s\"]}}",
	"\"node/n2\":{\"ipv4\":\"%s\"}",
	"\"node/n2\":{\"ipv6\":\"%s\"}",
	"\"spec/n2\":{\"routeReflectorClusterId\":\"%s\"}",
	"\"spec/n2\":{\"labels\":{\"a\":\"%s\"}}",
	"\"extent/default/web\":{\"cidr\":\"%s\",\"blockSize\":26}",
	"\"pool/web\":{\"cidr\":\"%s\"}",
	"\"pool/web\":{\"cidr\":\"10.244.0.0/16\",\"network\":\"%s\"}",
	"\"peer/p\":{\"address\":\"%s\",\"asn\":1}",
	"\"peer/p\":{\"address\":\"fe80::1%%%s\",\"asn\":1}",
	"\"peer/p\":{\"peerSelector\":\"%s\"}",
	"\"peer/p\":{\"address\":\"10.0.0.9\",\"asn\":1,\"nodes\":[\"%s\"]}",
	"\"peer/p\":{\"address\":\"10.0.0.9\",\"asn\":1,\"nodeSelector\":\"%s\"}",
	"\"peer/p\":{\"address\":\"10.0.0.9\",\"asn\":1,\"sourceAddress\":\"%s\"}",
	"\"peer/p\":{\"address\":\"10.0.0.9\",\"asn\":1,\"families\":[\"%s\"]}",
	"\"peer/p\":{\"address\":\"10.0.0.9\",\"asn\":1,\"importFilter\":\"%s\"}",
	"\"peer/p\":{\"address\":\"10.0.0.9\",\"asn\":1,\"exportFilter\":\"%s\"}",
	"\"peer/p\":{\"address\":\"10.0.0.9\",\"asn\":1,\"description\":\"%s\"}",
	"\"filter/f\":{\"rules\":[{\"action\":\"%s\"}]}",
	"\"filter/f\":{\"rules\":[{\"action\":\"accept\",\"match\":{\"cidr\":\"%s\"}}]}",
	"\"filter/f\":{\"rules\":[{\"action\":\"accept\",\"match\":{\"community\":\"%s\"}}]}",
	"\"filter/f\":{\"rules\":[{\"action\":\"accept\",\"match\":{\"largeCommunity\":\"%s\"}}]}",
	"\"filter/f\":{\"rules\":[{\"action\":\"accept\",\"match\":{\"origin\":\"%s\"}}]}",
	"\"filter/f\":{\"rules\":[{\"action\":\"accept\",\"set\":{\"addCommunities\":[\"%s\"]}}]}",
};

/* The state with one hole filled; tells whether the record was refused, and that nothing of the
 * value is in the tree. */
static bool refuses(const char *hole, const char *value)
{
	AUTO_DONE(bird_plan_done) struct bird_plan plan = { 0 };
	AUTO(free) char *record = NULL, *state = NULL;
	struct world w;
	bool refused;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	assert_true(asprintf(&record, hole, value) > 0); // NOLINT: the formats stand above
#pragma GCC diagnostic pop
	assert_true(
		asprintf(
			&state,
			"{\"self\":\"n1\",\"records\":{\"node/n1\":{\"ipv4\":\"10.0.0.1/24\"},%s}}",
			record) > 0);
	world_make(&w, state);
	refused = w.refused[0] != '\0';
	if (refused && !strstr(w.refused, "field"))
		fail_msg("no field is named: %s", w.refused);
	assert_int_equal(desired_bird(&w.in, &plan), 0);
	assert_null(strstr(json_object_to_json_string(plan.tree), EVIL));
	world_done(&w);
	return refused;
}

static void hostile_values_are_refused_in_every_text_field(void **unused)
{
	char *large = malloc(5001);
	const char *const values[] = {
		EVIL "\\\"; protocol static { route 0.0.0.0/0 via 10.0.0.66; } #",
		EVIL "\\n} protocol bgp x { }",
		EVIL "\\r\\n",
		EVIL "'; }",
		EVIL "\\u0000",
		EVIL "\\u007f\\u0001",
		EVIL "\\u00e9{{> bird-base}}\\\"",
		large,
	};

	assert_non_null(large);
	memset(large, 'A', 5000);
	memcpy(large, EVIL, 4);
	large[5000] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(holes); i++)
		for (size_t j = 0; j < ARRAY_SIZE(values); j++) {
			/* An apostrophe is harmless between quotes, and a description may have one.
			 */
			if (j == 3 && strstr(holes[i], "description"))
				continue;
			if (!refuses(holes[i], values[j]))
				fail_msg("taken: %s with %.40s", holes[i], values[j]);
		}
	free(large);
}

static void hostile_passwords_leave_the_peer_out_and_are_not_shown(void **unused)
{
	AUTO_DONE(bird_plan_done) struct bird_plan plan = { 0 };
	AUTO(free) char *told = NULL;
	struct world w;

	world_make(&w, "{\"self\":\"n1\",\"records\":{" NODES ",\"config\":{\"mesh\":false},"
		       "\"peer/a\":{\"address\":\"10.0.0.9\",\"asn\":1,\"passwordFile\":\"/a\"},"
		       "\"peer/b\":{\"address\":\"10.0.0.8\",\"asn\":1,\"passwordFile\":\"/b\"}},"
		       "\"passwords\":{\"/a\":\"EVIL\\\"; passive\",\"/b\":\"EVIL\\n\"}}");
	assert_int_equal(desired_bird(&w.in, &plan), 0);
	assert_int_equal(plan.n_sessions, 0);
	assert_int_equal(plan.secrets.n, 0);
	told = world_problems(&plan);
	assert_null(strstr(told, EVIL));
	assert_null(strstr(json_object_to_json_string(plan.tree), EVIL));
	world_done(&w);
}

/* --- flaps ---------------------------------------------------------------------------------- */

static void expect_flaps(const char *before, const char *after, const char *want)
{
	static const char *const kinds[] = { "restarts", "removed", "withdraws" };
	AUTO_DONE(bird_plan_done) struct bird_plan a = { 0 }, b = { 0 };
	struct bird_flaps flaps = { 0 };
	char got[2048] = "";
	struct world v, w;

	world_make(&v, before);
	world_make(&w, after);
	assert_string_equal(v.refused, "");
	assert_string_equal(w.refused, "");
	assert_int_equal(desired_bird(&v.in, &a), 0);
	assert_int_equal(desired_bird(&w.in, &b), 0);
	assert_int_equal(bird_flaps(&a, &b, &flaps), 0);
	for (size_t i = 0; i < flaps.n; i++) {
		size_t n = strlen(got);

		snprintf(got + n, sizeof(got) - n, "%s %s: %s\n", flaps.v[i].what,
			 kinds[flaps.v[i].kind], flaps.v[i].why);
	}
	assert_string_equal(got, want);
	bird_flaps_done(&flaps);
	world_done(&v);
	world_done(&w);
}

static void what_restarts_a_session_is_named(void **unused)
{
#define TOR(options)                                                                               \
	"{\"self\":\"n1\",\"records\":{\"node/n1\":{\"ipv4\":\"192.168.50.1/24\"},"                \
	"\"filter/f\":{\"rules\":[]},"                                                             \
	"\"peer/t\":{\"address\":\"192.168.50.9\",\"asn\":64512" options "}},"                     \
	"\"passwords\":{\"/a\":\"one-word\",\"/b\":\"another\"}}"
#define RESTARTS(options, why)                                                                     \
	expect_flaps(TOR(""), TOR("," options), "n_192_168_50_9 restarts: " why "\n")
	RESTARTS("\"holdTime\":30", "holdTime changes");
	RESTARTS("\"keepaliveTime\":10", "keepaliveTime changes");
	RESTARTS("\"connectRetryTime\":10", "connectRetryTime changes");
	RESTARTS("\"gracefulRestart\":false", "gracefulRestart changes");
	RESTARTS("\"gracefulRestartTime\":10", "gracefulRestartTime changes");
	RESTARTS("\"passive\":true", "passive changes");
	RESTARTS("\"ttlSecurity\":true", "ttlSecurity changes");
	RESTARTS("\"allowLocalAs\":1", "allowLocalAs changes");
	RESTARTS("\"multihop\":2", "multihop changes");
	RESTARTS("\"port\":1179", "its port changes");
	RESTARTS("\"localAsn\":65000", "its own AS changes");
	RESTARTS("\"sourceAddress\":\"10.0.0.1\"", "its local address changes");
	RESTARTS("\"reflectorClient\":true", "its role as a route reflector's client changes");
	RESTARTS("\"passwordFile\":\"/a\"", "its password changes");
	expect_flaps(TOR(",\"passwordFile\":\"/a\""), TOR(",\"passwordFile\":\"/b\""),
		     "n_192_168_50_9 restarts: its password changes\n");
	expect_flaps(TOR(""), TOR(",\"disabled\":true"),
		     "n_192_168_50_9 removed: no record requires it any more\n");
}

static void what_disturbs_nobody_is_not_named(void **unused)
{
	expect_flaps(TOR(""), TOR(""), "");
	expect_flaps(TOR(""), TOR(",\"bfd\":true"), "");
	expect_flaps(TOR(""), TOR(",\"importFilter\":\"f\",\"exportFilter\":\"f\""), "");
	expect_flaps(TOR(""), TOR(",\"nextHopSelf\":false"), "");
	expect_flaps(TOR(""), TOR(",\"description\":\"x\""), "");
	expect_flaps(TOR(""), TOR("},\"peer/a\":{\"address\":\"192.168.50.8\",\"asn\":1"), "");
	expect_flaps(TOR(""), TOR("},\"config\":{\"announce\":\"static\",\"bgp\":{\"ecmp\":1}"),
		     "");
}

/* What little is known of a pool whose record is gone. */
static void a_vanished_pool_is_announced_on_default_unless_it_never_was(void **unused)
{
	const struct extent here = { .network = "default" }, lan = { .network = "lan" };

	assert_true(bird_extent_announced(&(struct bird_extent){ .extent = &here }));
	assert_false(bird_extent_announced(&(struct bird_extent){ .extent = &lan }));
	assert_false(
		bird_extent_announced(&(struct bird_extent){ .extent = &here, .silent = true }));
}

static void blocks_that_are_no_longer_announced_are_named(void **unused)
{
#define POOL(options)                                                                              \
	"{\"self\":\"n1\",\"records\":{\"node/n1\":{\"ipv4\":\"192.168.50.1/24\"},"                \
	"\"extent/default/w\":{\"cidr\":\"10.244.0.0/16\",\"blockSize\":26}" options "},"          \
	"\"blocks\":[\"10.244.1.0/26\",\"10.244.2.0/26\"]}"
#define WITH(options) POOL(",\"pool/w\":{\"cidr\":\"10.244.0.0/16\"" options "}")
	expect_flaps(WITH(""), WITH(",\"disabled\":true"), "");
	expect_flaps(WITH(""), POOL(""), "");
	expect_flaps(
		WITH(""), WITH(",\"announce\":false"),
		"10.244.1.0/26 withdraws: it is no longer ours, or its pool is not announced\n"
		"10.244.2.0/26 withdraws: it is no longer ours, or its pool is not announced\n");
}

/* Every record wants every node: CPU time in ns, and what is said. */
static int64_t cost(size_t n_nodes, size_t n_peers, size_t *ret_sessions, size_t *ret_problems)
{
	struct world w;
	struct bird_plan plan;
	struct timespec before, after;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	fprintf(f, "{\"self\":\"n0\",\"records\":{\"config\":{\"asn\":64512}");
	for (size_t i = 0; i < n_nodes; i++)
		fprintf(f, ",\"node/n%zu\":{\"ipv4\":\"10.0.%zu.%zu/16\"}", i, i / 250,
			i % 250 + 1);
	for (size_t i = 0; i < n_peers; i++)
		fprintf(f, ",\"peer/p%zu\":{\"peerSelector\":\"all()\"}", i);
	fprintf(f, "}}");
	fclose(f);
	world_make(&w, text);
	free(text);
	assert_string_equal(w.refused, "");
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	assert_int_equal(desired_bird(&w.in, &plan), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	*ret_sessions = plan.n_sessions;
	*ret_problems = plan.problems.n;
	bird_plan_done(&plan);
	world_done(&w);
	return (after.tv_sec - before.tv_sec) * INT64_C(1000000000) + after.tv_nsec -
	       before.tv_nsec;
}

static void many_records_for_many_nodes_cost_little_more_than_few(void **unused)
{
	size_t sessions, problems;
	int64_t few = INT64_MAX, many = INT64_MAX;

	(void)unused;
	for (int i = 0; i < 3; i++) {
		int64_t t = cost(1000, 2, &sessions, &problems);

		few = t < few ? t : few;
		t = cost(1000, 200, &sessions, &problems);
		many = t < many ? t : many;
	}
	assert_int_equal(sessions, 999);
	/* A word for each record that got nothing, not for each of its neighbours. */
	assert_int_equal(problems, 199);
	/* What is left is 200 selectors asked about each node; an offer for each took 150 times. */
	if (many > 50 * few)
		fail_msg("200 records: %" PRId64 " ns, 2 records: %" PRId64 " ns", many, few);
	/* And there is an end to it. */
	cost(10, BIRD_SELECTORS_MAX + 5, &sessions, &problems);
	assert_int_equal(sessions, 9);
	assert_int_equal(problems, BIRD_SELECTORS_MAX - 1 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_mesh_has_every_node_in_the_order_of_addresses),
		cmocka_unit_test(who_holds_a_lease_speaks_no_bgp),
		cmocka_unit_test(reflectors_are_not_in_the_mesh),
		cmocka_unit_test(a_node_of_another_as_is_an_outer_neighbour),
		cmocka_unit_test(ipv4_goes_over_ipv6_where_there_is_no_other_way),
		cmocka_unit_test(a_selector_makes_both_ends),
		cmocka_unit_test(of_two_ends_that_a_record_names_the_lower_address_is_passive),
		cmocka_unit_test(reflectors_of_one_cluster_are_no_clients_of_each_other),
		cmocka_unit_test(nodes_and_selectors_say_which_nodes),
		cmocka_unit_test(a_record_wins_over_the_mesh_and_the_first_name_over_the_second),
		cmocka_unit_test(without_its_password_there_is_no_session_at_all),
		cmocka_unit_test(what_a_record_says_in_vain_is_told),
		cmocka_unit_test(the_mesh_has_the_password_of_config),
		cmocka_unit_test(the_mesh_has_ttl_security_on_a_common_subnet),
		cmocka_unit_test(password_files_are_those_that_this_node_needs),
		cmocka_unit_test(the_order_of_records_does_not_matter),
		cmocka_unit_test(names_fit_bird_and_never_meet),
		cmocka_unit_test(hostile_values_are_refused_in_every_text_field),
		cmocka_unit_test(hostile_passwords_leave_the_peer_out_and_are_not_shown),
		cmocka_unit_test(what_restarts_a_session_is_named),
		cmocka_unit_test(what_disturbs_nobody_is_not_named),
		cmocka_unit_test(blocks_that_are_no_longer_announced_are_named),
		cmocka_unit_test(many_records_for_many_nodes_cost_little_more_than_few),
		cmocka_unit_test(a_vanished_pool_is_announced_on_default_unless_it_never_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
