/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store over a lease server that the test plays itself: one server on a unix socket, whose
 * answers are scripted and whose requests are noted as lines.
 */
#include "lib/lease/lease_store.h"

#include "lib/daemon/serve_lab.h"
#include "lib/store/store_stats.h"
#include "lib/store/store_sync.h"
#include "lib/store/txn.h"

#define CONFIG "{\"Network\":\"10.5.0.0/16\",\"SubnetLen\":24,\"Backend\":{\"Type\":\"vxlan\"}}"
#define MINE                                                                                       \
	"{\"Subnet\":\"10.5.1.0/24\",\"Attrs\":{\"PublicIP\":\"192.0.2.1\"},"                      \
	"\"Expiration\":\"2099-01-01T00:00:00Z\"}"
#define SHORT                                                                                      \
	"{\"Subnet\":\"10.5.1.0/24\",\"Attrs\":{\"PublicIP\":\"192.0.2.1\"},"                      \
	"\"Expiration\":\"2000-01-01T00:00:00Z\"}"
#define THEIRS                                                                                     \
	"{\"Subnet\":\"10.5.2.0/24\",\"Attrs\":{\"PublicIP\":\"192.0.2.2\",\"BackendData\":"       \
	"{\"VtepMAC\":\"02:00:00:00:00:02\"}}}"
#define NODE        "{\"ipv4\":\"192.0.2.1/24\",\"machine\":\"m\",\"boot\":\"b\"}"
#define STALE_CLAIM "{\"node\":\"n1\",\"pool\":\"lease\"}"

static struct {
	struct store *store;
	/* What the server has to say. */
	const char *snapshot, *post, *put;
	unsigned post_status, put_status;
	struct serve_request *poll;
	bool refuses;     /* to show anything */
	char body[512];   /* of the last PUT */
	char asked[2048]; /* "POST /leases ...\n", polls left out */
	/* What came. */
	bool watching, troubled;
	const char *used; /* the block that is in use here */
	char keys[2048], reason[512];
} t;

/* --- the server ----------------------------------------------------------------------------- */

static void note(struct serve_request *q)
{
	size_t n = strlen(t.asked);

	snprintf(t.asked + n, sizeof(t.asked) - n, "%s %s\n", serve_method(q), serve_path(q));
}

static void poll_ended(struct serve_request *q, enum serve_end why, void *arg)
{
	t.poll = NULL;
}

static void say_snapshot(struct serve_request *q)
{
	char body[1024];

	snprintf(body, sizeof(body), "{\"events\":[],\"snapshot\":[%s],\"cursor\":\"1\"}",
		 t.snapshot);
	serve_reply(q, 200, body);
}

static void serve_any(struct serve_request *q, void *arg)
{
	const char *method = serve_method(q), *path = serve_path(q);
	size_t len;

	if (serve_query(q, "next")) {
		t.poll = q;
		serve_wait(q, SERVE_FOREVER, poll_ended, NULL);
		return;
	}
	note(q);
	if (strcmp(method, "PUT") == 0)
		snprintf(t.body, sizeof(t.body), "%s", serve_body(q, &len));
	if (t.refuses && strcmp(method, "GET") == 0)
		serve_reply(q, 503, "etcd went back");
	else if (strcmp(method, "GET") == 0 && strcmp(path, "/v1/_/config") == 0)
		serve_reply(q, 200, CONFIG);
	else if (strcmp(method, "GET") == 0)
		say_snapshot(q);
	else if (strcmp(method, "POST") == 0)
		serve_reply(q, t.post_status, t.post);
	else if (strcmp(method, "PUT") == 0)
		serve_reply(q, t.put_status, t.put);
	else
		serve_reply(q, 200, "");
}

static void start_server(void)
{
	lab_serve((struct serve_config){ .other = serve_any });
}

static void stop_server(void)
{
	serve_free(TAKE(lab.serve));
	t.poll = NULL;
	unlink(lab.path);
}

/* --- the store ------------------------------------------------------------------------------ */

static void on_notice(enum store_notice notice, const char *text, void *arg)
{
	snprintf(t.reason, sizeof(t.reason), "%s", text);
	t.watching = notice == STORE_WATCHING;
	t.troubled = t.troubled || notice == STORE_TROUBLE;
}

static void on_put(const struct store_kv *kv, void *arg)
{
	size_t n = strlen(t.keys);

	snprintf(t.keys + n, sizeof(t.keys) - n, "+%s\n", kv->key + 3);
}

static void on_deleted(const char *key, int64_t revision, void *arg)
{
	size_t n = strlen(t.keys);

	snprintf(t.keys + n, sizeof(t.keys) - n, "-%s\n", key + 3);
}

static int begin(void **state)
{
	lab_setup(state);
	memset(&t, 0, sizeof(t));
	t.snapshot = "";
	t.post = t.put = MINE;
	t.post_status = t.put_status = 200;
	return 0;
}

static int end(void **state)
{
	store_free(TAKE(t.store));
	t.poll = NULL;
	return lab_teardown(state);
}

static bool in_use(const char *network, const struct prefix *block, void *arg)
{
	char text[PREFIX_TEXT];

	assert_string_equal(network, "default");
	return t.used && strcmp(prefix_print(block, text), t.used) == 0;
}

static void open_store(const char *address)
{
	static const struct store_watch_handlers handlers = { on_put, on_deleted, NULL };
	struct lease_store_options o = {
		.network = "_", .prefix = "/r/", .node = "n1", .minute_ms = 300, .in_use = in_use
	};
	struct store_watch *watch;
	struct err err = { "" };
	char url[96];

	snprintf(url, sizeof(url), "unix:///nowhere/at/all,unix://%s", lab.path);
	o.servers = url;
	if (address)
		assert_int_equal(address_parse(address, &o.address), 0);
	assert_int_equal(lease_store_new(lab.event, &o, &t.store, &err), 0);
	store_on_notice(t.store, on_notice, NULL);
	assert_int_equal(store_watch(t.store, "/r/", "/r0", &handlers, NULL, &watch), 0);
}

#define UNTIL(condition)                                                                           \
	do {                                                                                       \
		uint64_t until_ = lab_now_ms() + LAB_PATIENCE_MS;                                  \
		while (!(condition)) {                                                             \
			sd_event_run(lab.event, 10000);                                            \
			if (lab_now_ms() > until_)                                                 \
				fail_msg("never: %s; asked:\n%skeys:\n%s", #condition, t.asked,    \
					 t.keys);                                                  \
		}                                                                                  \
	} while (0)

static void open_and_watch(const char *address)
{
	start_server();
	open_store(address);
	UNTIL(t.watching);
	UNTIL(t.poll);
}

struct outcome {
	bool done, succeeded;
	int err;
	char text[512];
};

static void on_reply(const struct store_reply *reply, void *arg)
{
	struct outcome *o = arg;

	o->done = true;
	o->err = reply->err;
	o->succeeded = reply->succeeded;
	snprintf(o->text, sizeof(o->text), "%s", reply->text);
}

/* Put if absent, as registration and claims do it; a delete without a value. */
static struct outcome change(const char *key, const char *value)
{
	struct outcome o = { 0 };
	const struct store_compare absent = if_absent(key);
	const struct store_op op = value ? op_put(key, value) : op_delete(key);
	const struct store_txn txn = {
		.compares = &absent, .n_compares = value ? 1 : 0, .success = &op, .n_success = 1
	};

	assert_int_equal(store_txn(t.store, &txn, STORE_FOREVER, on_reply, &o, NULL), 0);
	UNTIL(o.done);
	return o;
}

static void expect_success(struct outcome o)
{
	if (o.err || !o.succeeded)
		fail_msg("%d %s", o.err, o.text);
}

static bool exists(const char *key)
{
	struct outcome o = { 0 };
	const struct store_txn txn = {
		TXN_IF({ .key = key, .target = STORE_CREATE_REVISION, .relation = STORE_GREATER }),
		TXN_THEN(op_get_key(key)),
		.repeatable = true,
	};

	assert_int_equal(store_txn(t.store, &txn, STORE_FOREVER, on_reply, &o, NULL), 0);
	UNTIL(o.done);
	return o.succeeded;
}

static void event(const char *type, const char *lease)
{
	char body[1024];

	snprintf(body, sizeof(body), "{\"events\":[{\"type\":\"%s\",\"lease\":%s}],\"cursor\":2}",
		 type, lease);
	UNTIL(t.poll);
	serve_reply(TAKE(t.poll), 200, body);
	UNTIL(t.poll);
}

/* --- tests ---------------------------------------------------------------------------------- */

static void the_world_is_listed_when_it_is_whole(void **unused)
{
	t.snapshot = MINE "," THEIRS;
	open_and_watch("192.0.2.1");
	assert_string_equal(t.keys, "+block/default/10.5.1.0-24\n"
				    "+block/default/10.5.2.0-24\n"
				    "+config\n"
				    "+extent/default/lease\n"
				    "+host/n1/ipv4/block/default/10.5.1.0-24\n"
				    "+node/lease-192.0.2.2\n"
				    "+pool/lease\n");
	/* The first of the two servers does not exist: that is no trouble. */
	assert_false(t.troubled);
}

static void the_registration_acquires(void **unused)
{
	open_and_watch(NULL);
	assert_false(exists("/r/block/default/10.5.1.0-24"));
	expect_success(change("/r/node/n1", NODE));
	assert_true(exists("/r/block/default/10.5.1.0-24"));
	assert_true(exists("/r/host/n1/ipv4/block/default/10.5.1.0-24"));
	assert_non_null(strstr(t.asked, "POST /v1/_/leases\n"));
	/* Written again, as after somebody's tampering: the lease stands. */
	expect_success(change("/r/node/n1", NULL));
	t.asked[0] = '\0';
	expect_success(change("/r/node/n1", NODE));
	assert_null(strstr(t.asked, "POST"));
}

static void a_server_that_has_nothing_left_refuses_the_registration(void **unused)
{
	struct outcome o;

	open_and_watch(NULL);
	t.post_status = 500;
	t.post = "out of subnets";
	o = change("/r/node/n1", NODE);
	assert_int_equal(o.err, -EIO);
	assert_non_null(strstr(o.text, "out of subnets"));
	assert_false(exists("/r/node/n1"));
	t.post_status = 200;
	t.post = MINE;
	expect_success(change("/r/node/n1", NODE));
}

static void others_come_and_go(void **unused)
{
	open_and_watch(NULL);
	t.keys[0] = '\0';
	event("added", THEIRS);
	event("removed", "{\"Subnet\":\"10.5.2.0/24\"}");
	UNTIL(strstr(t.keys, "-node/"));
	assert_string_equal(t.keys, "+node/lease-192.0.2.2\n"
				    "+block/default/10.5.2.0-24\n"
				    "-block/default/10.5.2.0-24\n"
				    "-node/lease-192.0.2.2\n");
}

/* What another has, what is ours, and what the server did not give. */
static void a_claim_gets_what_the_server_gives(void **unused)
{
	struct outcome o;

	t.snapshot = THEIRS;
	open_and_watch(NULL);
	expect_success(change("/r/node/n1", NODE));
	assert_false(change("/r/block/default/10.5.2.0-24", STALE_CLAIM).succeeded);
	assert_false(change("/r/block/default/10.5.1.0-24", STALE_CLAIM).succeeded);
	t.used = "10.5.9.0/24";
	t.put_status = 500;
	t.put = "not yours";
	o = change("/r/block/default/10.5.9.0-24", STALE_CLAIM);
	assert_int_equal(o.err, 0);
	assert_false(o.succeeded);
	assert_false(exists("/r/block/default/10.5.9.0-24"));
	/* By name, and not again as fast as it is asked. */
	assert_non_null(strstr(t.asked, "PUT /v1/_/leases/10.5.9.0-24\n"));
	t.asked[0] = '\0';
	assert_false(change("/r/block/default/10.5.9.0-24", STALE_CLAIM).succeeded);
	assert_null(strstr(t.asked, "PUT"));
}

static void a_lost_lease_is_asked_for_anew_by_the_next_claim(void **unused)
{
	open_and_watch(NULL);
	expect_success(change("/r/node/n1", NODE));
	event("removed", "{\"Subnet\":\"10.5.1.0/24\"}");
	assert_false(exists("/r/host/n1/ipv4/block/default/10.5.1.0-24"));
	t.post = "{\"Subnet\":\"10.5.7.0/24\",\"Expiration\":\"2099-01-01T00:00:00Z\"}";
	t.put_status = 500;
	/* It gives another: that one is ours, and the claim is to look again. */
	assert_false(change("/r/block/default/10.5.1.0-24", STALE_CLAIM).succeeded);
	assert_true(exists("/r/block/default/10.5.7.0-24"));
	assert_true(exists("/r/host/n1/ipv4/block/default/10.5.7.0-24"));
	assert_false(exists("/r/block/default/10.5.1.0-24"));
}

/* A guess of the agent's is no wish: what the server gives is all that it gets. */
static void a_guessed_block_is_not_asked_for_by_name(void **unused)
{
	open_and_watch(NULL);
	expect_success(change("/r/node/n1", NODE));
	event("removed", "{\"Subnet\":\"10.5.1.0/24\"}");
	t.asked[0] = '\0';
	assert_false(change("/r/block/default/10.5.9.0-24", STALE_CLAIM).succeeded);
	assert_true(exists("/r/block/default/10.5.1.0-24"));
	assert_false(exists("/r/block/default/10.5.9.0-24"));
	/* And with that it is content. */
	t.asked[0] = '\0';
	assert_false(change("/r/block/default/10.5.9.0-24", STALE_CLAIM).succeeded);
	assert_string_equal(t.asked, "");
}

static void a_vanished_block_is_asked_for_by_name(void **unused)
{
	open_and_watch(NULL);
	expect_success(change("/r/node/n1", NODE));
	event("removed", "{\"Subnet\":\"10.5.1.0/24\"}");
	t.asked[0] = '\0';
	t.used = "10.5.1.0/24";
	/* It is ours again before the claim is looked at: found, not made. */
	assert_false(change("/r/block/default/10.5.1.0-24", STALE_CLAIM).succeeded);
	assert_true(exists("/r/block/default/10.5.1.0-24"));
	assert_string_equal(t.asked, "PUT /v1/_/leases/10.5.1.0-24\n");
}

static void a_release_gives_the_lease_back(void **unused)
{
	open_and_watch(NULL);
	expect_success(change("/r/node/n1", NODE));
	expect_success(change("/r/block/default/10.5.1.0-24", NULL));
	assert_non_null(strstr(t.asked, "DELETE /v1/_/leases/10.5.1.0-24\n"));
	assert_false(exists("/r/block/default/10.5.1.0-24"));
}

static void a_lease_is_renewed(void **unused)
{
	t.post = SHORT;
	open_and_watch(NULL);
	expect_success(change("/r/node/n1", NODE));
	t.put_status = 503;
	t.put = "later";
	UNTIL(strstr(t.asked, "PUT /v1/_/leases/10.5.1.0-24\n"));
	t.put_status = 200;
	t.put = MINE;
	t.asked[0] = '\0';
	UNTIL(strstr(t.asked, "PUT /v1/_/leases/10.5.1.0-24\n"));
	lab_turn(50);
	/* Far away now: not again. */
	t.asked[0] = '\0';
	lab_turn(800);
	assert_null(strstr(t.asked, "PUT"));
	assert_true(exists("/r/block/default/10.5.1.0-24"));
}

static void a_renewal_that_is_refused_is_a_doubt(void **unused)
{
	t.post = SHORT;
	open_and_watch(NULL);
	expect_success(change("/r/node/n1", NODE));
	t.put_status = 500;
	t.put = "lease taken";
	/* The list says whose it is. */
	t.snapshot = "{\"Subnet\":\"10.5.1.0/24\",\"Attrs\":{\"PublicIP\":\"192.0.2.2\"}}";
	UNTIL(strstr(t.keys, "-host/n1/ipv4/block/default/10.5.1.0-24"));
	assert_true(exists("/r/block/default/10.5.1.0-24"));
	assert_false(t.troubled);
}

static void while_the_server_is_away_nothing_is_reached(void **unused)
{
	struct outcome waits = { 0 }, fails = { 0 };

	t.snapshot = THEIRS;
	open_and_watch(NULL);
	expect_success(change("/r/node/n1", NODE));
	stop_server();
	UNTIL(!t.watching);
	assert_true(t.troubled);
	store_get(t.store, "/r/config", STORE_FOREVER, on_reply, &waits, NULL);
	store_get(t.store, "/r/config", 0, on_reply, &fails, NULL);
	UNTIL(fails.done);
	assert_int_equal(fails.err, -ENOTCONN);
	assert_false(waits.done);
	/* What happened meanwhile is there when it is back: no key in between. */
	t.keys[0] = '\0';
	t.snapshot = MINE;
	start_server();
	UNTIL(t.watching);
	assert_true(waits.done || !waits.err);
	UNTIL(strstr(t.keys, "-node/lease-192.0.2.2\n"));
	assert_null(strstr(t.keys, "10.5.1.0"));
}

/* A server whose etcd went back answers nothing else before it knows what everybody holds. */
static void who_is_not_answered_says_what_it_holds(void **unused)
{
	open_and_watch(NULL);
	expect_success(change("/r/node/n1", NODE));
	t.refuses = true;
	t.asked[0] = '\0';
	serve_reply(TAKE(t.poll), 503, "etcd went back");
	UNTIL(strstr(t.asked, "PUT /v1/_/leases/10.5.1.0-24\n"));
	assert_non_null(strstr(t.body, "\"Expiration\":\"2099-01-01T00:00:00Z\""));
	assert_false(t.watching);
	t.refuses = false;
	UNTIL(t.watching);
}

static void a_server_that_was_never_there_is_trouble(void **unused)
{
	open_store("192.0.2.1");
	UNTIL(t.troubled);
	assert_string_equal(t.keys, "");
	assert_true(t.reason[0]);
	start_server();
	UNTIL(t.watching);
	UNTIL(strstr(t.keys, "+pool/lease"));
}

/* A poll in which nothing happens ends; the server is asked whether it lives. */
static void quiet_is_no_trouble(void **unused)
{
	struct store_stats stats;

	open_and_watch(NULL);
	t.asked[0] = '\0';
	UNTIL(strstr(t.asked, "/config"));
	UNTIL(t.poll);
	assert_null(strstr(t.asked, "/leases"));
	assert_false(t.troubled);
	store_stats(t.store, &stats);
	assert_string_equal(stats.server, "the lease server");
	assert_int_equal(stats.lists, 1);
	assert_true(stats.heard > 0);
}

static void bad_servers_are_refused(void **unused)
{
	struct lease_store_options o = {
		.network = "_", .prefix = "/r/", .node = "n1", .servers = "http://a/b"
	};
	struct err err = { "" };

	assert_int_equal(lease_store_new(lab.event, &o, &t.store, &err), -EINVAL);
	assert_non_null(strstr(err.text, "lease server \"http://a/b\""));
	t.store = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_world_is_listed_when_it_is_whole),
		TEST(the_registration_acquires),
		TEST(a_server_that_has_nothing_left_refuses_the_registration),
		TEST(others_come_and_go),
		TEST(a_claim_gets_what_the_server_gives),
		TEST(a_lost_lease_is_asked_for_anew_by_the_next_claim),
		TEST(a_guessed_block_is_not_asked_for_by_name),
		TEST(a_vanished_block_is_asked_for_by_name),
		TEST(a_release_gives_the_lease_back),
		TEST(a_lease_is_renewed),
		TEST(a_renewal_that_is_refused_is_a_doubt),
		TEST(while_the_server_is_away_nothing_is_reached),
		TEST(who_is_not_answered_says_what_it_holds),
		TEST(a_server_that_was_never_there_is_trouble),
		TEST(quiet_is_no_trouble),
		TEST(bad_servers_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
