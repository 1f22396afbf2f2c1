/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/leases/lease_decide.h"

#include "controller/leases/lease_world.h"
#include "lib/model/vtep.h"

#define A      "block/default/10.5.1.0-24"
#define RECENT "2026-11-17T02:45:00Z"

static const struct lease_clock the_clock = {
	.now = THEN, .expires = LATER, .recent = RECENT, .token = "t", .seconds = 1000
};
static int64_t counted_on; /* by who renews */
/* Who asks; family 0: an operator. */
static struct lease_caller caller;
static const char *busy_block = "";

static bool is_busy(const char *network, const struct prefix *block, void *arg)
{
	char text[PREFIX_TEXT];

	assert_string_equal(network, "default");
	return strcmp(prefix_print(block, text), busy_block) == 0;
}

static const struct mac *posted; /* by the client; NULL: its own */

static enum lease_verdict decide(enum lease_verb verb, const char *subnet, const char *ip,
				 bool again, struct lease_decision *d, struct err *err)
{
	struct lease_call call = { .verb = verb, .network = "default" };
	char type[] = "vxlan", data[] = "{\"VNI\":1}";
	struct lease_wish wish = { .backend_type = type,
				   .backend_data = data,
				   .expires = counted_on };

	*err = (struct err){ "" };
	if (subnet) {
		assert_int_equal(prefix_parse(subnet, &wish.subnet), 0);
		call.subnet = wish.subnet;
	}
	if (ip)
		assert_int_equal(address_parse(ip, &wish.public_ip), 0);
	/* Of 192.0.2.5: 02:00:00:00:00:09. */
	wish.mac = (struct mac){ { 2, 0, 0, 0, 0, (uint8_t)(wish.public_ip.bytes[3] + 4) } };
	if (posted)
		wish.mac = *posted;
	if (!caller.owner[0])
		caller.operator_ = true;
	return lease_decide(view, &call, &wish, &caller, &the_clock, again, is_busy, NULL, d, err);
}

static void expect_plan(enum lease_verb verb, const char *subnet, const char *ip, const char *want)
{
	AUTO_DONE(lease_decision_done) struct lease_decision d = { 0 };
	AUTO(free) char *text = NULL;
	struct err err;

	lease_view_settle(view);
	assert_int_equal(decide(verb, subnet, ip, false, &d, &err), LEASE_DO);
	text = plans_print(&d.plans);
	/* Behind the line with the subject. */
	assert_string_equal(strchr(text, '\n') + 1, want);
}

static void expect_written(enum lease_verb verb, const char *subnet, const char *ip,
			   const char *const *parts)
{
	AUTO_DONE(lease_decision_done) struct lease_decision d = { 0 };
	AUTO(free) char *text = NULL;
	struct err err;

	lease_view_settle(view);
	if (decide(verb, subnet, ip, false, &d, &err) != LEASE_DO)
		fail_msg("%s", err.text);
	text = plans_print(&d.plans);
	for (; *parts; parts++)
		if (!strstr(text, *parts))
			fail_msg("%s\nlacks %s", text, *parts);
}

static void expect_refused(enum lease_verb verb, const char *subnet, const char *ip,
			   const char *sentence)
{
	AUTO_DONE(lease_decision_done) struct lease_decision d = { 0 };
	struct err err;

	lease_view_settle(view);
	assert_int_equal(decide(verb, subnet, ip, false, &d, &err), LEASE_REFUSED);
	if (!strstr(err.text, sentence))
		assert_string_equal(err.text, sentence);
}

#define GIVEN                                                                                      \
	"{\"node\":\"lease-192.0.2.5\",\"pool\":\"over\",\"token\":\"t\",\"claimed\":\"" THEN      \
	"\",\"lease\":{\"publicIP\":\"192.0.2.5\",\"backendType\":\"vxlan\",\"backendData\":"      \
	"{\"VNI\":1},\"expires\":\"" LATER "\"}}"
#define RENEWED                                                                                    \
	"{\"node\":\"lease-192.0.2.5\",\"pool\":\"over\",\"token\":\"t\",\"lease\":{\"publicIP\":" \
	"\"192.0.2.5\",\"backendType\":\"vxlan\",\"backendData\":{\"VNI\":1},\"expires\":\"" LATER \
	"\"}}"
#define OWNER                                                                                      \
	"{\"ipv4\":\"192.0.2.5/32\",\"machine\":\"lease\",\"boot\":\"lease\",\"vtep\":{\"mac\":"   \
	"\"02:00:00:00:00:09\"}}"
#define INDEX  "{\"pool\":\"over\",\"claimed\":\"" THEN "\"}"
#define EXTENT "{\"cidr\":\"10.5.0.0/16\",\"blockSize\":24,\"made\":\"" THEN "\"}"

/* Which subnet it becomes follows from the holder's name, everywhere and for ever. */
#define FIRST "10.5.209.0-24"

static void the_first_lease_makes_the_extent(void **unused)
{
	begin();
	expect_plan(LEASE_ACQUIRE, NULL, "192.0.2.5",
		    "if recovery absent\n"
		    "if block/default/" FIRST " absent\n"
		    "if node/lease-192.0.2.5 absent\n"
		    "if extent/default/over absent\n"
		    "if extent/default/* before 3\n"
		    "put block/default/" FIRST " " GIVEN "\n"
		    "put host/lease-192.0.2.5/ipv4/block/default/" FIRST " " INDEX "\n"
		    "put node/lease-192.0.2.5 " OWNER "\n"
		    "put extent/default/over " EXTENT "\n");
}

static void taken_and_busy_blocks_are_passed_over(void **unused)
{
	AUTO_DONE(lease_decision_done) struct lease_decision d = { 0 }, e = { 0 };
	struct prefix first;
	struct err err;

	begin();
	assert_int_equal(prefix_parse_key(FIRST, &first), 0);
	put("block/default/" FIRST, "{\"node\":\"n1\"}");
	assert_int_equal(decide(LEASE_ACQUIRE, NULL, "192.0.2.5", false, &d, &err), LEASE_DO);
	assert_int_not_equal(prefix_compare(&d.block, &first), 0);
	put("block/default/" FIRST, NULL);
	busy_block = "10.5.209.0/24";
	assert_int_equal(decide(LEASE_ACQUIRE, NULL, "192.0.2.5", false, &e, &err), LEASE_DO);
	busy_block = "";
	assert_int_equal(prefix_compare(&e.block, &d.block), 0);
}

static void the_last_free_block_is_found(void **unused)
{
	AUTO_DONE(lease_decision_done) struct lease_decision d = { 0 };
	char key[KEY_TEXT], text[PREFIX_TEXT];
	struct err err;

	begin();
	for (int i = 0; i < 256; i++) {
		if (i == 123)
			continue;
		snprintf(key, sizeof(key), "block/default/10.5.%d.0-24", i);
		put(key, "{\"node\":\"n1\"}");
	}
	assert_int_equal(decide(LEASE_ACQUIRE, NULL, "192.0.2.5", false, &d, &err), LEASE_DO);
	assert_string_equal(prefix_print(&d.block, text), "10.5.123.0/24");
	put("block/default/10.5.123.0-24", "{\"node\":\"n1\"}");
	expect_refused(LEASE_ACQUIRE, NULL, "192.0.2.5",
		       "every subnet of pool over (10.5.0.0/16, 65536 addresses) is taken");
}

static void who_has_a_lease_gets_it_again(void **unused)
{
	begin();
	put(A, LEASE("192.0.2.5", THEN));
	also("node/lease-192.0.2.5", HOLDER("192.0.2.5"));
	expect_plan(LEASE_ACQUIRE, NULL, "192.0.2.5",
		    "if recovery absent\n"
		    "if block/default/10.5.1.0-24 = 3\n"
		    "if node/lease-192.0.2.5 = 3\n"
		    "put block/default/10.5.1.0-24 " RENEWED "\n"
		    "put node/lease-192.0.2.5 " OWNER "\n");
	expect_plan(LEASE_RENEW, "10.5.1.0/24", "192.0.2.5",
		    "if recovery absent\n"
		    "if block/default/10.5.1.0-24 = 3\n"
		    "if node/lease-192.0.2.5 = 3\n"
		    "put block/default/10.5.1.0-24 " RENEWED "\n"
		    "put node/lease-192.0.2.5 " OWNER "\n");
	/* Also from a pool that gives nothing any more. */
	put("pool/over", "{\"cidr\":\"10.5.0.0/"
			 "16\",\"blockSize\":24,\"encapsulation\":\"vxlan\",\"disabled\":true}");
	expect_plan(LEASE_RENEW, "10.5.1.0/24", "192.0.2.5",
		    "if recovery absent\n"
		    "if block/default/10.5.1.0-24 = 3\n"
		    "if node/lease-192.0.2.5 = 3\n"
		    "put block/default/10.5.1.0-24 " RENEWED "\n"
		    "put node/lease-192.0.2.5 " OWNER "\n");
	expect_refused(LEASE_ACQUIRE, NULL, "192.0.2.6", "pool over is disabled");
}

static void a_reservation_goes_first_and_stays_one(void **unused)
{
	AUTO_DONE(lease_decision_done) struct lease_decision d = { 0 }, e = { 0 };
	struct err err;

	begin();
	put(A, LEASE("192.0.2.5", THEN));
	put("block/default/10.5.9.0-24", RESERVED("192.0.2.5"));
	assert_int_equal(decide(LEASE_ACQUIRE, NULL, "192.0.2.5", false, &d, &err), LEASE_DO);
	assert_non_null(strstr(d.answer, "\"10.5.9.0/24\""));
	assert_non_null(strstr(d.answer, "\"Expiration\":\"0001-01-01T00:00:00Z\""));
	assert_int_equal(decide(LEASE_UNRESERVE, "10.5.9.0/24", NULL, false, &e, &err), LEASE_DO);
	assert_non_null(strstr(e.plans.v[0].txn.ops.v[0].value, "\"expires\":\"" LATER "\""));
}

static void what_is_another_s_is_refused(void **unused)
{
	begin();
	put(A, LEASE("192.0.2.5", THEN));
	put("block/default/10.5.2.0-24", "{\"node\":\"n1\"}");
	put("block/default/10.5.3.0-24", "no JSON");
	expect_refused(LEASE_RENEW, "10.5.1.0/24", "192.0.2.6",
		       "lease taken: 10.5.1.0/24 belongs to node lease-192.0.2.5");
	expect_refused(LEASE_RESERVE, "10.5.1.0/24", "192.0.2.6", "lease taken");
	expect_refused(LEASE_RENEW, "10.5.2.0/24", "192.0.2.6", "belongs to node n1");
	expect_refused(LEASE_RENEW, "10.5.3.0/24", "192.0.2.6", "its record is invalid");
	expect_refused(LEASE_REVOKE, "10.5.2.0/24", NULL, "only its agent");
	expect_refused(LEASE_REVOKE, "10.5.4.0/24", NULL, "there is no lease of 10.5.4.0/24");
	expect_refused(LEASE_RESERVE, "10.5.4.0/25", "192.0.2.6", "is not a /24 of pool over");
	expect_refused(LEASE_RENEW, "10.6.4.0/24", "192.0.2.6", "is not a /24 of pool over");
	/* An agent that is called so. */
	put("node/lease-192.0.2.8", "{\"ipv4\":\"192.0.2.8/24\",\"machine\":\"m\"}");
	expect_refused(LEASE_ACQUIRE, NULL, "192.0.2.8", "is not a holder of leases");
}

/* --- whose a lease is ------------------------------------------------------------------------- */

static void ask_as(const char *peer, const char *certified, uint32_t quota)
{
	struct address address;

	assert_int_equal(address_parse(peer, &address), 0);
	caller = (struct lease_caller){ .quota = quota };
	lease_caller_set(&caller, &address, certified, "CN:ops");
}

static int as_operator(void **unused)
{
	caller = (struct lease_caller){ .quota = 0 };
	return world_teardown(NULL);
}

static void expect_forbidden(enum lease_verb verb, const char *subnet, const char *ip,
			     const char *sentence)
{
	AUTO_DONE(lease_decision_done) struct lease_decision d = { 0 };
	struct err err;

	lease_view_settle(view);
	assert_int_equal(decide(verb, subnet, ip, false, &d, &err), LEASE_FORBIDDEN);
	assert_int_equal(d.plans.n, 0);
	if (!strstr(err.text, sentence))
		assert_string_equal(err.text, sentence);
}

#define OWNED(ip, by)                                                                              \
	"{\"node\":\"lease-" ip                                                                    \
	"\",\"pool\":\"over\",\"token\":\"t\",\"lease\":{\"publicIP\":\"" ip                       \
	"\",\"backendType\":\"vxlan\",\"expires\":\"" THEN "\",\"owner\":\"" by "\"}}"

#define V "192.0.2.5"

static void expect_all_forbidden(const char *sentence)
{
	expect_forbidden(LEASE_ACQUIRE, NULL, V, sentence);
	expect_forbidden(LEASE_RENEW, "10.5.1.0/24", V, sentence);
	expect_forbidden(LEASE_REVOKE, "10.5.1.0/24", NULL, sentence);
}

static void without_certificates_a_lease_is_its_address_s(void **unused)
{
	static const char *const bound[] = { "put " A, "\"owner\":\"address:" V "\"", NULL };

	begin();
	ask_as("192.0.2.66", "", 1);
	expect_forbidden(LEASE_ACQUIRE, NULL, V,
			 "PublicIP " V " is not the address of the client, "
			 "address:192.0.2.66");
	expect_forbidden(LEASE_RENEW, "10.5.1.0/24", V, "is not the address of the client");
	ask_as(V, "", 1);
	expect_written(LEASE_ACQUIRE, NULL, V,
		       (const char *const[]){ "\"owner\":\"address:" V "\"", NULL });
	put(A, OWNED(V, "address:" V));
	also("node/lease-" V, HOLDER(V));
	expect_written(LEASE_ACQUIRE, NULL, V, bound);
	expect_written(LEASE_RENEW, "10.5.1.0/24", V, bound);
	expect_written(LEASE_REVOKE, "10.5.1.0/24", NULL,
		       (const char *const[]){ "delete " A, NULL });
	ask_as("192.0.2.66", "", 1);
	expect_all_forbidden("the lease of 10.5.1.0/24 for " V " belongs to address:" V
			     ", not to address:192.0.2.66");
	/* Nor by way of another network, whose leases share the holder's record. */
	put(A, NULL);
	put("block/other/10.5.1.0-24", OWNED(V, "address:" V));
	expect_forbidden(LEASE_ACQUIRE, NULL, V, "belongs to address:" V);
}

static void a_lease_without_an_owner_is_bound_to_the_address_that_it_names(void **unused)
{
	begin();
	put(A, LEASE(V, THEN));
	also("node/lease-" V, HOLDER(V));
	ask_as("192.0.2.66", "", 1);
	expect_all_forbidden("has no owner yet");
	ask_as("192.0.2.66", "DNS:thief", 1);
	expect_all_forbidden("has no owner yet");
	ask_as(V, "", 1);
	expect_written(LEASE_RENEW, "10.5.1.0/24", V,
		       (const char *const[]){ "\"owner\":\"address:" V "\"", NULL });
	ask_as(V, "DNS:n5", 1);
	expect_written(LEASE_RENEW, "10.5.1.0/24", V,
		       (const char *const[]){ "\"owner\":\"DNS:n5\"", NULL });
	/* Behind address translation a certificate for the address proves it too. */
	ask_as("198.51.100.1", "IP:" V, 1);
	expect_written(LEASE_RENEW, "10.5.1.0/24", V,
		       (const char *const[]){ "\"owner\":\"IP:" V "\"", NULL });
}

static void with_certificates_a_lease_is_its_name_s(void **unused)
{
	begin();
	put(A, OWNED(V, "DNS:n5"));
	also("node/lease-" V, HOLDER(V));
	/* Another valid certificate, even at the same address; and no certificate at all. */
	ask_as(V, "DNS:thief", 1);
	expect_all_forbidden("belongs to DNS:n5, not to DNS:thief");
	ask_as(V, "", 1);
	expect_all_forbidden("belongs to DNS:n5");
	ask_as("198.51.100.1", "DNS:n5", 1);
	expect_written(LEASE_RENEW, "10.5.1.0/24", V,
		       (const char *const[]){ "\"owner\":\"DNS:n5\"", NULL });
	/* Certificates came after the lease: the same client has one now. */
	put(A, OWNED(V, "address:" V));
	ask_as("192.0.2.66", "DNS:thief", 1);
	expect_all_forbidden("belongs to address:" V);
	ask_as(V, "DNS:n5", 1);
	expect_written(LEASE_RENEW, "10.5.1.0/24", V,
		       (const char *const[]){ "\"owner\":\"DNS:n5\"", NULL });
}

static void a_client_has_a_quota(void **unused)
{
	begin();
	put("block/default/10.5.2.0-24", OWNED("192.0.2.6", "DNS:n5"));
	also("node/lease-192.0.2.6", HOLDER("192.0.2.6"));
	ask_as(V, "DNS:n5", 1);
	expect_forbidden(LEASE_ACQUIRE, NULL, V,
			 "DNS:n5 has 1 leases already, such as 10.5.2.0/24, and --lease-quota "
			 "allows 1");
	expect_forbidden(LEASE_RENEW, "10.5.1.0/24", V, "--lease-quota allows 1");
	/* What it has it renews. */
	expect_written(LEASE_RENEW, "10.5.2.0/24", "192.0.2.6",
		       (const char *const[]){ "put block/default/10.5.2.0-24", NULL });
	caller.quota = 2;
	expect_written(LEASE_ACQUIRE, NULL, V, (const char *const[]){ "DNS:n5", NULL });
	/* Also of leases from before there were owners. */
	put("block/default/10.5.2.0-24", LEASE(V, THEN));
	ask_as(V, "", 1);
	expect_forbidden(LEASE_RENEW, "10.5.1.0/24", V, "--lease-quota");
}

static void reservations_are_for_operators(void **unused)
{
	begin();
	ask_as(V, "DNS:n5", 9);
	expect_forbidden(LEASE_RESERVE, "10.5.1.0/24", V, "--lease-operator DNS:n5");
	put(A, RESERVED(V));
	expect_forbidden(LEASE_UNRESERVE, "10.5.1.0/24", NULL, "reservations are for operators");
	/* He owns nothing that he makes for others. */
	put(A, OWNED(V, "DNS:n5"));
	also("node/lease-" V, HOLDER(V));
	ask_as("192.0.2.66", "CN:ops", 1);
	expect_written(LEASE_RESERVE, "10.5.1.0/24", V,
		       (const char *const[]){ "\"owner\":\"DNS:n5\"", NULL });
	expect_written(LEASE_REVOKE, "10.5.1.0/24", NULL,
		       (const char *const[]){ "delete " A, NULL });
	expect_plan(LEASE_RESERVE, "10.5.7.0/24", "192.0.2.7",
		    "if recovery absent\n"
		    "if block/default/10.5.7.0-24 absent\n"
		    "if node/lease-192.0.2.7 absent\n"
		    "if extent/default/over absent\n"
		    "if extent/default/* before 5\n"
		    "put block/default/10.5.7.0-24 "
		    "{\"node\":\"lease-192.0.2.7\",\"pool\":\"over\",\"token\":\"t\",\"claimed\":"
		    "\"" THEN "\",\"lease\":{\"publicIP\":\"192.0.2.7\",\"backendType\":\"vxlan\","
		    "\"backendData\":{\"VNI\":1}}}\n"
		    "put host/lease-192.0.2.7/ipv4/block/default/10.5.7.0-24 " INDEX "\n"
		    "put node/lease-192.0.2.7 "
		    "{\"ipv4\":\"192.0.2.7/32\",\"machine\":\"lease\",\"boot\":\"lease\",\"vtep\":{"
		    "\"mac\":\"02:00:00:00:00:0b\"}}\n"
		    "put extent/default/over " EXTENT "\n");
}

static void names_of_operators_are_checked(void **unused)
{
	static const char *const good[] = { "CN:ops", "URI:spiffe://a/b", "DNS:a.b,IP:192.0.2.1",
					    "address:127.0.0.1,address:fd00::1" };
	static const char *const bad[] = { "",
					   "ops",
					   "CN:",
					   "CN:a b",
					   "DNS:a,",
					   ",DNS:a",
					   "address:127.0.0.01",
					   "IP:fd00:0::1",
					   "address:n1" };
	struct err err;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(lease_operators_check(good[i], &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(lease_operators_check(bad[i], &err), -EINVAL);
	/* Whole names only. */
	ask_as(V, "CN:op", 1);
	assert_false(caller.operator_);
	ask_as(V, "CN:ops", 1);
	assert_true(caller.operator_);
	ask_as(V, "CN:ops2", 1);
	assert_false(caller.operator_);
}

#define OWN(expires, more)                                                                         \
	"{\"node\":\"lease-192.0.2.5\",\"pool\":\"over\",\"token\":\"t\",\"lease\":{\"publicIP\":" \
	"\"192.0.2.5\",\"backendType\":\"vxlan\",\"backendData\":{\"VNI\":1},\"expires\":"         \
	"\"" expires "\"" more "}}"

static void a_renewal_that_changes_nothing_only_reads(void **unused)
{
	static const char reads[] = "if recovery absent\n"
				    "if " A " = 4\n"
				    "get " A "\n";
	AUTO_DONE(lease_decision_done) struct lease_decision d = { 0 };
	struct err err;

	begin();
	put("node/lease-192.0.2.5", OWNER);
	put(A, OWN(RECENT, ""));
	expect_plan(LEASE_RENEW, "10.5.1.0/24", "192.0.2.5", reads);
	assert_int_equal(decide(LEASE_RENEW, "10.5.1.0/24", "192.0.2.5", false, &d, &err),
			 LEASE_DO);
	assert_true(d.repeated);
	/* What stands in etcd, not what a write would have made of it. */
	assert_non_null(strstr(d.answer, RECENT));
	/* A grant always writes; so does a renewal of what is older, or says something else. */
	expect_written(LEASE_ACQUIRE, NULL, "192.0.2.5", (const char *const[]){ "put " A, NULL });
	put(A, OWN(THEN, ""));
	expect_written(LEASE_RENEW, "10.5.1.0/24", "192.0.2.5",
		       (const char *const[]){ "put " A, LATER, NULL });
	put(A, OWN(RECENT, ",\"revoked\":true"));
	expect_written(LEASE_RENEW, "10.5.1.0/24", "192.0.2.5",
		       (const char *const[]){ "put " A, LATER, NULL });
	put(A, LEASE("192.0.2.5", RECENT));
	expect_written(LEASE_RENEW, "10.5.1.0/24", "192.0.2.5",
		       (const char *const[]){ "put " A, "VNI", NULL });
	put(A, OWN(RECENT, ""));
	put("node/lease-192.0.2.5", HOLDER("192.0.2.5"));
	expect_written(LEASE_RENEW, "10.5.1.0/24", "192.0.2.5",
		       (const char *const[]){ "put " A, OWNER, NULL });
}

static void what_was_taken_back_is_kept_for_its_holder(void **unused)
{
	lease_view_listing(view);
	put("pool/over", "{\"cidr\":\"10.5.1.0/24\",\"blockSize\":24,\"encapsulation\":\"vxlan\"}");
	in_sync();
	put("node/lease-192.0.2.5", OWNER);
	put(A, OWN(LATER, ",\"revoked\":true"));
	put("host/lease-192.0.2.5/ipv4/block/default/10.5.1.0-24", INDEX);
	expect_refused(LEASE_ACQUIRE, NULL, "192.0.2.6", "every subnet of");
	expect_refused(LEASE_RENEW, "10.5.1.0/24", "192.0.2.6", "lease taken");
	expect_written(LEASE_ACQUIRE, NULL, "192.0.2.5",
		       (const char *const[]){ "put " A " " RENEWED, NULL });
}

static void a_lost_block_is_kept_for_its_holder(void **unused)
{
	lease_view_listing(view);
	put("pool/over", "{\"cidr\":\"10.5.1.0/24\",\"blockSize\":24,\"encapsulation\":\"vxlan\"}");
	in_sync();
	put("node/lease-192.0.2.5", OWNER);
	put(A, OWN(LATER, ""));
	put("host/lease-192.0.2.5/ipv4/block/default/10.5.1.0-24", INDEX);
	put(A, NULL);
	expect_refused(LEASE_ACQUIRE, NULL, "192.0.2.6", "every subnet of");
	expect_refused(LEASE_RENEW, "10.5.1.0/24", "192.0.2.6", "lease taken");
	expect_written(LEASE_ACQUIRE, NULL, "192.0.2.5",
		       (const char *const[]){ "put " A " " GIVEN, NULL });
	/* Freed as a whole it is anybody's. */
	put("host/lease-192.0.2.5/ipv4/block/default/10.5.1.0-24", NULL);
	expect_written(LEASE_ACQUIRE, NULL, "192.0.2.6", (const char *const[]){ "put " A, NULL });
}

static void a_holder_goes_with_its_last_lease(void **unused)
{
	begin();
	put(A, LEASE("192.0.2.5", THEN));
	also("node/lease-192.0.2.5", HOLDER("192.0.2.5"));
	put("block/other/10.5.1.0-24", LEASE("192.0.2.5", THEN));
	expect_plan(LEASE_REVOKE, "10.5.1.0/24", NULL,
		    "if recovery absent\n"
		    "if block/default/10.5.1.0-24 = 3\n"
		    "if node/lease-192.0.2.5 = 3\n"
		    "delete block/default/10.5.1.0-24\n"
		    "delete host/lease-192.0.2.5/ipv4/block/default/10.5.1.0-24\n"
		    "put node/lease-192.0.2.5 " HOLDER("192.0.2.5") "\n");
	put("block/other/10.5.1.0-24", NULL);
	expect_plan(LEASE_REVOKE, "10.5.1.0/24", NULL,
		    "if recovery absent\n"
		    "if block/default/10.5.1.0-24 = 3\n"
		    "if node/lease-192.0.2.5 = 3\n"
		    "delete block/default/10.5.1.0-24\n"
		    "delete host/lease-192.0.2.5/ipv4/block/default/10.5.1.0-24\n"
		    "delete node/lease-192.0.2.5\n");
}

/* The reply was lost, the transaction was sent again and met its own work. */
static void what_is_gone_after_a_try_was_given_back(void **unused)
{
	AUTO_DONE(lease_decision_done) struct lease_decision d = { 0 };
	struct err err;

	begin();
	assert_int_equal(decide(LEASE_REVOKE, "10.5.4.0/24", NULL, true, &d, &err), LEASE_DO);
	assert_int_equal(d.plans.n, 0);
	assert_string_equal(d.answer, "");
}

#define OWNED_BY(test)  cmocka_unit_test_setup_teardown(test, world_setup, as_operator)
#define WITH_VIEW(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

#define SPOKEN                                                                                     \
	"{\"ipv4\":\"192.0.2.5/32\",\"machine\":\"lease\",\"boot\":\"lease\",\"recovery\":"        \
	"\"r1\",\"vtep\":{\"mac\":\"02:00:00:00:00:09\"}}"

/* Etcd was restored: who counted on a lease says so, and nothing else changes hands. */
static void in_a_recovery_holders_say_what_they_hold(void **unused)
{
	begin();
	put("extent/default/over", EXTENT);
	put("recovery", "{\"id\":\"r1\",\"number\":1}");
	put("node/lease-192.0.2.5", OWNER);
	put(A, RENEWED);
	counted_on = 0;
	/* What it says may be older than what another was given since. */
	expect_refused(LEASE_ACQUIRE, NULL, "192.0.2.5", "etcd went back");
	expect_refused(LEASE_RENEW, "10.5.1.0/24", "192.0.2.5", "etcd went back");
	counted_on = 1000;
	expect_refused(LEASE_RENEW, "10.5.1.0/24", "192.0.2.5", "etcd went back");
	expect_refused(LEASE_REVOKE, "10.5.1.0/24", NULL, "etcd went back");
	expect_refused(LEASE_RESERVE, "10.5.1.0/24", "192.0.2.5", "etcd went back");
	counted_on = 1001;
	expect_written(LEASE_RENEW, "10.5.1.0/24", "192.0.2.5",
		       (const char *[]){ "if recovery = ", "if " A " = ",
					 "\"recovery\":\"r1\",\"lease\":",
					 "put node/lease-192.0.2.5 " SPOKEN "\n", NULL });
	/* Of another it takes it back, unless that one has said the same in this recovery. */
	expect_written(
		LEASE_RENEW, "10.5.1.0/24", "192.0.2.6",
		(const char *[]){ "if " A " = ", "put " A " {\"node\":\"lease-192.0.2.6\"",
				  "delete host/lease-192.0.2.5/ipv4/block/default/10.5.1.0-24\n",
				  NULL });
	put(A, "{\"node\":\"lease-192.0.2.5\",\"recovery\":\"r1\",\"lease\":{\"publicIP\":\"192.0."
	       "2.5\",\"expires\":\"" LATER "\"}}");
	expect_refused(LEASE_RENEW, "10.5.1.0/24", "192.0.2.6", "lease taken");
	counted_on = 0;
	expect_written(LEASE_ACQUIRE, NULL, "192.0.2.5",
		       (const char *[]){ "if recovery = ", "put " A " ", NULL });
}

/* Whoever has it gets the traffic of the node that it belongs to. */
static void a_mac_of_another_node_is_refused(void **unused)
{
	const struct mac of_agent = vtep_mac("n2"), of_holder = { { 2, 0, 0, 0, 0, 9 } };

	begin();
	/* Before its tunnel is there. */
	put("node/n2", "{\"ipv4\":\"192.0.2.2/24\",\"machine\":\"m\",\"boot\":\"b\"}");
	put("node/lease-192.0.2.5", OWNER);
	posted = &of_agent;
	expect_refused(LEASE_ACQUIRE, NULL, "192.0.2.6", "is the tunnel MAC of node n2");
	expect_refused(LEASE_ACQUIRE, NULL, "192.0.2.5", "is the tunnel MAC of node n2");
	posted = &of_holder;
	expect_refused(LEASE_ACQUIRE, NULL, "192.0.2.6",
		       "is the tunnel MAC of node lease-192.0.2.5");
	expect_written(LEASE_ACQUIRE, NULL, "192.0.2.5", (const char *const[]){ "put ", NULL });
	posted = NULL;
	expect_written(LEASE_ACQUIRE, NULL, "192.0.2.6", (const char *const[]){ "put ", NULL });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_VIEW(the_first_lease_makes_the_extent),
		WITH_VIEW(taken_and_busy_blocks_are_passed_over),
		WITH_VIEW(the_last_free_block_is_found),
		WITH_VIEW(who_has_a_lease_gets_it_again),
		WITH_VIEW(a_reservation_goes_first_and_stays_one),
		WITH_VIEW(what_is_another_s_is_refused),
		WITH_VIEW(a_mac_of_another_node_is_refused),
		WITH_VIEW(a_holder_goes_with_its_last_lease),
		WITH_VIEW(what_is_gone_after_a_try_was_given_back),
		WITH_VIEW(in_a_recovery_holders_say_what_they_hold),
		WITH_VIEW(a_renewal_that_changes_nothing_only_reads),
		WITH_VIEW(what_was_taken_back_is_kept_for_its_holder),
		WITH_VIEW(a_lost_block_is_kept_for_its_holder),
		OWNED_BY(without_certificates_a_lease_is_its_address_s),
		OWNED_BY(a_lease_without_an_owner_is_bound_to_the_address_that_it_names),
		OWNED_BY(with_certificates_a_lease_is_its_name_s),
		OWNED_BY(a_client_has_a_quota),
		OWNED_BY(reservations_are_for_operators),
		OWNED_BY(names_of_operators_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
