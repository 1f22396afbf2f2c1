/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/leases/lease_world.h"

#define A "block/default/10.5.1.0-24"
#define B "block/default/10.5.2.0-24"
#define SHOWN(n, ip, expires)                                                                      \
	"{\"Subnet\":\"10.5." #n ".0/24\",\"Attrs\":{\"PublicIP\":\"" ip                           \
	"\",\"BackendType\":\"vxlan\"},\"Expiration\":\"" expires "\"}"
#define ADDED(...) "{\"type\":\"added\",\"lease\":" SHOWN(__VA_ARGS__) "}"
#define GONE(n)    "{\"type\":\"removed\",\"lease\":{\"Subnet\":\"10.5." #n ".0/24\"}}"

static struct lease_network *default_network(void)
{
	struct lease_network *n = lease_view_network(view, "default");

	assert_non_null(n);
	return n;
}

static void expect_snapshot(const char *want)
{
	AUTO(free) char *text = NULL, *whole = NULL;

	assert_int_equal(lease_view_snapshot(view, default_network(), NULL, &text), 0);
	assert_true(asprintf(&whole, "{\"events\":[],\"snapshot\":[%s],\"cursor\":\"%lld\"}", want,
			     (long long)now) > 0);
	assert_string_equal(text, whole);
}

/* want NULL: nothing has changed. */
static void expect_after(const char *network, int64_t cursor, const char *subnet, const char *want,
			 int64_t next)
{
	AUTO(free) char *text = NULL, *whole = NULL;
	const struct lease_network *n = lease_view_network(view, network);
	const struct lease_change *change;
	struct prefix one;

	if (subnet)
		assert_int_equal(prefix_parse(subnet, &one), 0);
	lease_view_settle(view);
	assert_true(lease_network_remembers(n, cursor));
	change = lease_network_after(n, cursor, subnet ? &one : NULL);
	if (!want) {
		assert_null(change);
		return;
	}
	assert_non_null(change);
	assert_int_equal(lease_change_render(change, subnet ? &one : NULL, &text), 0);
	assert_true(asprintf(&whole, "{\"events\":[%s],\"snapshot\":[],\"cursor\":\"%lld\"}", want,
			     (long long)next) > 0);
	assert_string_equal(text, whole);
}

static void a_snapshot_has_what_there_is(void **unused)
{
	lease_view_listing(view);
	assert_false(lease_view_ready(view));
	put(A, LEASE("192.0.2.5", THEN));
	put("block/default/10.9.2.0-24", "{\"node\":\"n1\",\"pool\":\"plain\"}");
	put("node/n1", "{\"ipv4\":\"192.0.2.1/24\",\"vtep\":{\"mac\":\"ae:ce:09:56:5a:88\"}}");
	put("pool/over", POOL);
	put("pool/plain", "{\"cidr\":\"10.9.0.0/16\",\"blockSize\":24}");
	in_sync();
	expect_snapshot(SHOWN(1, "192.0.2.5", THEN));
	assert_non_null(lease_view_pool(view, "default"));
	assert_null(lease_view_pool(view, "other"));
}

static void changes_come_one_by_one(void **unused)
{
	int64_t start;

	begin();
	start = now;
	put(A, LEASE("192.0.2.5", THEN));
	put(B, LEASE("192.0.2.6", THEN));
	put(A, NULL);
	expect_after("default", start, NULL, ADDED(1, "192.0.2.5", THEN), start + 1);
	expect_after("default", start + 1, NULL, ADDED(2, "192.0.2.6", THEN), start + 2);
	expect_after("default", start + 2, NULL,
		     "{\"type\":\"removed\",\"lease\":{\"Subnet\":\"10.5.1.0/24\"}}", start + 3);
	expect_after("default", start + 3, NULL, NULL, 0);
	expect_after("default", start, "10.5.2.0/24", ADDED(2, "192.0.2.6", THEN), start + 2);
	expect_snapshot(SHOWN(2, "192.0.2.6", THEN));
}

static void a_renewal_is_told_to_those_alone_who_watch_that_lease(void **unused)
{
	int64_t start;

	begin();
	put(A, LEASE("192.0.2.5", THEN));
	start = now;
	put(A, LEASE("192.0.2.5", LATER));
	expect_after("default", start, NULL, NULL, 0);
	expect_after("default", start, "10.5.1.0/24", ADDED(1, "192.0.2.5", LATER), start + 1);
	put(A, LEASE("192.0.2.7", LATER));
	/* In another's hands it is not what it was. */
	expect_after("default", start, NULL, GONE(1) "," ADDED(1, "192.0.2.7", LATER), start + 2);
	expect_after("default", start + 1, "10.5.1.0/24", GONE(1) "," ADDED(1, "192.0.2.7", LATER),
		     start + 2);
}

static void what_one_revision_changes_travels_together(void **unused)
{
	int64_t start;

	begin();
	start = now;
	put(A, LEASE("192.0.2.5", THEN));
	also(B, LEASE("192.0.2.6", THEN));
	expect_after("default", start, NULL,
		     ADDED(1, "192.0.2.5", THEN) "," ADDED(2, "192.0.2.6", THEN), start + 1);
}

static void keys_that_are_no_leases_move_the_cursor_only(void **unused)
{
	int64_t start;

	begin();
	start = now;
	put("host/n1/address/default/10.5.1.1", "{}");
	put("block/default/10.5.3.0-24", "no JSON");
	put("block/default/fd00::-64", LEASE("192.0.2.5", THEN));
	expect_after("default", start, NULL, NULL, 0);
	expect_snapshot("");
}

#define AGENT(ip)                                                                                  \
	"{\"type\":\"added\",\"lease\":{\"Subnet\":\"10.5.1.0/24\",\"Attrs\":{\"PublicIP\":\"" ip  \
	"\",\"BackendType\":\"vxlan\",\"BackendData\":{\"VNI\":4096,\"VtepMAC\":"                  \
	"\"ae:ce:09:56:5a:88\"}},\"Expiration\":\"0001-01-01T00:00:00Z\"}}"
#define NODE(ip) "{\"ipv4\":\"" ip "/24\",\"vtep\":{\"mac\":\"ae:ce:09:56:5a:88\"}}"

static void blocks_of_agents_follow_their_nodes(void **unused)
{
	int64_t start;

	begin();
	start = now;
	put(A, "{\"node\":\"n1\",\"pool\":\"over\"}");
	expect_after("default", start, NULL, NULL, 0);
	put("node/n1", NODE("192.0.2.1"));
	expect_after("default", start, NULL, AGENT("192.0.2.1"), start + 2);
	put("node/n1", NODE("192.0.2.2"));
	expect_after("default", start + 2, NULL, AGENT("192.0.2.2"), start + 3);
	/* A pool that is no overlay any more has nothing to show. */
	put("pool/over", "{\"cidr\":\"10.5.0.0/16\",\"blockSize\":24}");
	expect_after("default", start + 3, NULL,
		     "{\"type\":\"removed\",\"lease\":{\"Subnet\":\"10.5.1.0/24\"}}", start + 4);
}

/* Its MAC would draw the traffic of the node that it belongs to. */
static void an_agent_with_a_mac_that_is_not_its_own_has_no_lease(void **unused)
{
	int64_t start;

	begin();
	put(A, "{\"node\":\"n1\",\"pool\":\"over\"}");
	put("node/n1", NODE("192.0.2.1"));
	lease_view_settle(view);
	start = now;
	put("node/n1", "{\"ipv4\":\"192.0.2.1/24\",\"vtep\":{\"mac\":\"e6:9a:75:7c:8e:83\"}}");
	expect_after("default", start, NULL,
		     "{\"type\":\"removed\",\"lease\":{\"Subnet\":\"10.5.1.0/24\"}}", start + 1);
}

#define BLOCK_OF_N1 "{\"node\":\"n1\",\"pool\":\"over\"}"
#define AGENT_AT(n)                                                                                \
	"{\"type\":\"added\",\"lease\":{\"Subnet\":\"10.5." #n                                     \
	".0/24\",\"Attrs\":{\"PublicIP\":\"192.0.2.1\",\"BackendType\":\"vxlan\","                 \
	"\"BackendData\":{\"VNI\":4096,\"VtepMAC\":\"ae:ce:09:56:5a:88\"}},\"Expiration\":"        \
	"\"0001-01-01T00:00:00Z\"}}"

static void behind_a_removed_lease_come_those_that_its_holder_still_has(void **unused)
{
	int64_t start;

	begin();
	put("node/n1", NODE("192.0.2.1"));
	put(A, BLOCK_OF_N1);
	put(B, BLOCK_OF_N1);
	put("block/default/10.5.3.0-24", BLOCK_OF_N1);
	put("block/default/10.5.4.0-24", LEASE("192.0.2.5", THEN));
	start = now;
	put(B, NULL);
	expect_after("default", start, NULL, GONE(2) "," AGENT_AT(1) "," AGENT_AT(3), start + 1);
	/* To who watches one of those nothing has happened. */
	expect_after("default", start, "10.5.1.0/24", NULL, 0);
	expect_after("default", start, "10.5.2.0/24", GONE(2), start + 1);
	put(A, NULL);
	also("block/default/10.5.3.0-24", NULL);
	expect_after("default", start + 1, NULL, GONE(1) "," GONE(3), start + 2);
}

static void expect_since(int64_t cursor, const char *events, const char *snapshot)
{
	AUTO(free) char *text = NULL, *whole = NULL;
	struct prefix one;

	assert_int_equal(prefix_parse("10.5.1.0/24", &one), 0);
	assert_int_equal(lease_view_since(view, default_network(), &one, cursor, &text), 0);
	assert_true(asprintf(&whole, "{\"events\":[%s],\"snapshot\":[%s],\"cursor\":\"%lld\"}",
			     events, snapshot, (long long)now) > 0);
	assert_string_equal(text, whole);
}

static void who_comes_back_learns_that_its_lease_is_gone_or_another_s(void **unused)
{
	begin();
	expect_since(0, GONE(1), "");
	put(A, LEASE("192.0.2.5", THEN));
	lease_view_settle(view);
	expect_since(now, "", SHOWN(1, "192.0.2.5", THEN));
	expect_since(INT64_MAX, "", SHOWN(1, "192.0.2.5", THEN));
	/* Given after that cursor: another one, whoever has it. */
	expect_since(now - 1, GONE(1), "");
	/* Taken back, and kept: nobody is shown it. */
	put(A, "{\"node\":\"lease-192.0.2.5\",\"pool\":\"over\",\"lease\":{\"publicIP\":\"192.0.2."
	       "5\",\"expires\":\"" THEN "\",\"revoked\":true}}");
	lease_view_settle(view);
	expect_since(now - 1, GONE(1), "");
	/* Revisions of an etcd that is no more say nothing. */
	lease_view_doubt(view);
	lease_view_listing(view);
	put(A, LEASE("192.0.2.5", THEN));
	in_sync();
	expect_since(now - 1, GONE(1), "");
	expect_since(now, "", SHOWN(1, "192.0.2.5", THEN));
}

static void networks_come_and_go_with_their_pools(void **unused)
{
	AUTO(free) char *text = NULL;
	int64_t start;

	begin();
	start = now;
	put("pool/two",
	    "{\"cidr\":\"10.6.0.0/16\",\"network\":\"two\",\"encapsulation\":\"vxlan\"}");
	expect_after("", start, NULL, "{\"type\":\"added\",\"network\":\"two\"}", start + 1);
	assert_int_equal(lease_view_snapshot(view, lease_view_network(view, ""), NULL, &text), 0);
	assert_non_null(strstr(text, "\"snapshot\":[\"default\",\"two\"]"));
	put("pool/two", NULL);
	expect_after("", start + 1, NULL, "{\"type\":\"removed\",\"network\":\"two\"}", start + 2);
	assert_null(lease_view_pool(view, "two"));
}

static void the_first_pool_that_gives_is_chosen(void **unused)
{
	begin();
	put("pool/a", "{\"cidr\":\"10.4.0.0/16\",\"encapsulation\":\"vxlan\",\"disabled\":true}");
	assert_string_equal(lease_view_pool(view, "default")->name, "over");
	put("pool/b",
	    "{\"cidr\":\"10.3.0.0/16\",\"encapsulation\":\"vxlan\",\"nodeSelector\":\"has(gpu)\"}");
	assert_string_equal(lease_view_pool(view, "default")->name, "over");
	/* With none that gives, those who have something of the first may keep it. */
	put("pool/over", NULL);
	assert_string_equal(lease_view_pool(view, "default")->name, "a");
	put("pool/a", "{\"cidr\":\"10.4.0.0/16\",\"encapsulation\":\"vxlan\"}");
	put("pool/over", POOL);
	assert_string_equal(lease_view_pool(view, "default")->name, "a");
	put("pool/a", "{\"cidr\":\"10.4.0.0/16\",\"encapsulation\":\"vxlan\",\"priority\":99}");
	assert_string_equal(lease_view_pool(view, "default")->name, "over");
}

static void only_so_much_is_remembered(void **unused)
{
	int64_t start;

	begin();
	start = now;
	assert_false(lease_network_remembers(default_network(), start - 1));
	for (int i = 0; i <= LEASE_CHANGES_MAX; i++)
		put(A, i % 2 ? LEASE("192.0.2.5", THEN) : LEASE("192.0.2.6", THEN));
	lease_view_settle(view);
	assert_false(lease_network_remembers(default_network(), start));
	expect_after("default", start + 1, NULL, GONE(1) "," ADDED(1, "192.0.2.5", THEN),
		     start + 2);
}

static void a_listing_anew_is_one_change(void **unused)
{
	int64_t start;

	begin();
	put(A, LEASE("192.0.2.5", THEN));
	lease_view_settle(view);
	start = now;
	lease_view_listing(view);
	assert_false(lease_view_ready(view));
	put(B, LEASE("192.0.2.6", THEN));
	put(A, NULL);
	in_sync();
	expect_after("default", start, NULL,
		     "{\"type\":\"removed\",\"lease\":{\"Subnet\":\"10.5.1.0/24\"}}," ADDED(
			     2, "192.0.2.6", THEN),
		     now);
	expect_after("default", now, NULL, NULL, 0);
}

static void of_another_etcd_nothing_is_remembered(void **unused)
{
	begin();
	put(A, LEASE("192.0.2.5", THEN));
	lease_view_settle(view);
	lease_view_doubt(view);
	lease_view_listing(view);
	now = 1;
	put(A, NULL);
	in_sync();
	assert_int_equal(view->mirror.revision, now);
	assert_false(lease_network_remembers(default_network(), now - 1));
	expect_after("default", now, NULL, NULL, 0);
	expect_snapshot("");
}

static void reservations_have_no_end(void **unused)
{
	AUTO(free) char *text = NULL;

	begin();
	put(A, LEASE("192.0.2.5", THEN));
	put(B, RESERVED("192.0.2.6"));
	assert_int_equal(lease_view_reservations(view, "default", &text), 0);
	assert_string_equal(text, "[{\"Subnet\":\"10.5.2.0/24\",\"PublicIP\":\"192.0.2.6\"}]");
}

#define WITH_VIEW(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_VIEW(a_snapshot_has_what_there_is),
		WITH_VIEW(changes_come_one_by_one),
		WITH_VIEW(a_renewal_is_told_to_those_alone_who_watch_that_lease),
		WITH_VIEW(what_one_revision_changes_travels_together),
		WITH_VIEW(keys_that_are_no_leases_move_the_cursor_only),
		WITH_VIEW(blocks_of_agents_follow_their_nodes),
		WITH_VIEW(an_agent_with_a_mac_that_is_not_its_own_has_no_lease),
		WITH_VIEW(networks_come_and_go_with_their_pools),
		WITH_VIEW(the_first_pool_that_gives_is_chosen),
		WITH_VIEW(only_so_much_is_remembered),
		WITH_VIEW(a_listing_anew_is_one_change),
		WITH_VIEW(of_another_etcd_nothing_is_remembered),
		WITH_VIEW(reservations_have_no_end),
		WITH_VIEW(behind_a_removed_lease_come_those_that_its_holder_still_has),
		WITH_VIEW(who_comes_back_learns_that_its_lease_is_gone_or_another_s),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
