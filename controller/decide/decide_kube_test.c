/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/decide/decide_kube.h"

#define MINUTE 60000U
#define UTC    "2026-11-16T02:45:55Z"

struct world {
	struct mirror mirror;
	struct kube_nodes nodes;
	struct err alarm;
};

static void put(struct world *w, const char *key, const char *value)
{
	const int64_t revision = strncmp(key, "removed/", 8) == 0 ? 9 : 5;
	const struct store_kv kv = { .value = value,
				     .value_len = strlen(value),
				     .create_revision = revision,
				     .mod_revision = revision };

	assert_int_equal(mirror_put(&w->mirror, key, &kv), 0);
	w->mirror.revision = 10;
}

static void node(struct world *w, const char *name, const char *uid, const char *zone)
{
	struct label labels[] = { { "kubernetes.io/hostname", name }, { "zone", zone } };
	struct kube_node n = { .name = (char *)(uintptr_t)name,
			       .uid = (char *)(uintptr_t)uid,
			       .labels = { labels, zone[0] ? 2 : 1, NULL } };

	assert_int_equal(kube_nodes_put(&w->nodes, &n), 0);
}

static void expect(struct world *w, uint64_t now, const char *want)
{
	AUTO_DONE(plans_done) struct plans plans = { 0 };
	char *text;

	kube_decide(&w->nodes, &w->mirror, now, MINUTE, UTC, &plans, &w->alarm);
	assert_false(plans_failed(&plans));
	text = plans_print(&plans);
	assert_string_equal(text, want);
	free(text);
}

static void end(struct world *w)
{
	mirror_done(&w->mirror);
	kube_nodes_done(&w->nodes);
}

static void pod_cidrs_are_copied_where_that_is_asked_for(void **unused)
{
	struct prefix cidr;
	struct kube_node n = { .name = (char *)(uintptr_t) "n1",
			       .uid = (char *)(uintptr_t) "u1",
			       .pod_cidrs = { &cidr, 1 } };
	struct world w = { .nodes.in_sync = true };

	assert_int_equal(prefix_parse("10.4.0.0/24", &cidr), 0);
	put(&w, "node/n1", "{}");
	put(&w, "spec/n1", "{\"kubernetesUid\":\"u1\",\"podCIDRs\":[\"10.5.0.0/24\"]}");
	assert_int_equal(kube_nodes_put(&w.nodes, &n), 0);
	expect(&w, 1, "");
	w.nodes.pod_cidrs = true;
	expect(&w, 1,
	       "spec/n1:\nif spec/n1 = 5\n"
	       "put spec/n1 {\"kubernetesUid\":\"u1\",\"podCIDRs\":[\"10.4.0.0/24\"]}\n");
	end(&w);
}

static void labels_and_uid_are_copied_and_what_operators_wrote_stays(void **unused)
{
	struct world w = { 0 };

	put(&w, "node/n1", "{}");
	put(&w, "spec/n1", "{\"labels\":{\"zone\":\"b\",\"old\":\"x\"},\"asn\":65001}");
	node(&w, "n1", "u1", "a");
	node(&w, "n2", "u2", "");
	expect(&w, 1, "");
	w.nodes.in_sync = true;
	expect(&w, 1,
	       "spec/n1:\nif spec/n1 = 5\n"
	       "put spec/n1 {\"labels\":{\"zone\":\"a\"},\"asn\":65001,\"kubernetesUid\":\"u1\"}\n"
	       "spec/n2:\nif spec/n2 absent\nput spec/n2 {\"kubernetesUid\":\"u2\"}\n");
	assert_string_equal(w.alarm.text, "");
	end(&w);
}

static void what_is_there_already_is_not_written_again(void **unused)
{
	struct world w = { .nodes.in_sync = true };

	put(&w, "node/n1", "{}");
	put(&w, "spec/n1", "{ \"kubernetesUid\": \"u1\", \"labels\": {\"zone\": \"a\"} }");
	node(&w, "n1", "u1", "a");
	expect(&w, 1, "");
	end(&w);
}

static void one_that_cannot_be_read_is_left_alone(void **unused)
{
	struct world w = { .nodes.in_sync = true };

	put(&w, "node/n1", "{}");
	put(&w, "spec/n1", "{\"asn\":\"x\"}");
	node(&w, "n1", "u1", "a");
	expect(&w, 1, "");
	end(&w);
}

/* So many nodes with recorded UIDs; so many of them are gone since 1 s. */
static struct world nodes(unsigned n, unsigned gone)
{
	struct world w = { .nodes.in_sync = true };
	char key[32], value[64];

	for (unsigned i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "node/n%u", i);
		put(&w, key, "{}");
		snprintf(key, sizeof(key), "spec/n%u", i);
		snprintf(value, sizeof(value), "{\"kubernetesUid\":\"u%u\"}", i);
		put(&w, key, value);
		snprintf(value, sizeof(value), "u%u", i);
		node(&w, key + 5, value, "");
		if (i < gone)
			assert_int_equal(kube_nodes_gone(&w.nodes, key + 5, value, 1000), 0);
	}
	return w;
}

static struct world ten(unsigned gone)
{
	return nodes(10, gone);
}

static void one_that_is_gone_is_removed_after_a_minute(void **unused)
{
	struct world w = ten(1);

	expect(&w, 1000 + MINUTE - 1, "");
	expect(&w, 1000 + MINUTE,
	       "removed/n0:\nif spec/n0 = 5\nif removed/n0 absent\n"
	       "put removed/n0 {\"by\":\"kubernetes\",\"when\":\"" UTC "\"}\n");
	/* Told again it does not become younger. */
	assert_int_equal(kube_nodes_gone(&w.nodes, "n0", "u0", 90000), 0);
	put(&w, "removed/n0", "{}");
	expect(&w, 1000 + MINUTE, "");
	end(&w);
}

static void more_than_a_tenth_gone_removes_nothing(void **unused)
{
	struct world w = ten(3);

	expect(&w, 1000 + 2 * MINUTE, "");
	assert_non_null(strstr(w.alarm.text, "3 of 10 nodes"));
	end(&w);
	w = ten(10);
	expect(&w, 1000 + 2 * MINUTE, "");
	assert_non_null(strstr(w.alarm.text, "10 of 10 nodes"));
	end(&w);
}

#define REMOVED(n)                                                                                 \
	"removed/" n ":\nif spec/" n " = 5\nif removed/" n " absent\n"                             \
	"put removed/" n " {\"by\":\"kubernetes\",\"when\":\"" UTC "\"}\n"

static void two_of_a_small_cluster_may_go_together(void **unused)
{
	for (unsigned n = 3; n <= 19; n += 8) {
		struct world w = nodes(n, 2);

		expect(&w, 1000 + MINUTE - 1, "");
		expect(&w, 1000 + MINUTE, REMOVED("n0") REMOVED("n1"));
		assert_string_equal(w.alarm.text, "");
		end(&w);
	}
}

/* A wiped API server looks so. */
static void all_of_a_small_cluster_may_not(void **unused)
{
	struct world w = nodes(2, 2);

	expect(&w, 1000 + 2 * MINUTE, "");
	assert_non_null(strstr(w.alarm.text, "2 of 2 nodes"));
	end(&w);
}

/* Its Nodes were recorded meanwhile, but no agent has their names. */
static void nodes_of_a_wrong_cluster_do_not_count(void **unused)
{
	struct world w = nodes(2, 2);
	char key[32], uid[32], value[64];

	for (unsigned i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "spec/x%u", i);
		snprintf(uid, sizeof(uid), "x-%u", i);
		snprintf(value, sizeof(value), "{\"kubernetesUid\":\"%s\"}", uid);
		put(&w, key, value);
		node(&w, key + 5, uid, "");
	}
	expect(&w, 1000 + 2 * MINUTE, "");
	assert_non_null(strstr(w.alarm.text, "2 of 2 nodes"));
	end(&w);
}

/* The GET spoke of one Node, etcd remembers another: no proof. */
static void another_uid_or_none_proves_nothing(void **unused)
{
	struct world w = ten(0);

	put(&w, "spec/n0", "{\"kubernetesUid\":\"other\"}");
	put(&w, "spec/n1", "{}");
	assert_int_equal(kube_nodes_gone(&w.nodes, "n0", "u0", 1000), 0);
	assert_int_equal(kube_nodes_gone(&w.nodes, "n1", "u1", 1000), 0);
	expect(&w, 1000 + 2 * MINUTE, "");
	assert_string_equal(w.alarm.text, "");
	end(&w);
}

static void an_empty_list_removes_nothing(void **unused)
{
	struct world w = { .nodes.in_sync = true };

	put(&w, "node/n1", "{}");
	put(&w, "spec/n1", "{\"kubernetesUid\":\"u1\"}");
	expect(&w, 1000 + 2 * MINUTE, "");
	end(&w);
}

static void a_new_node_of_that_name_takes_the_removal_back(void **unused)
{
	struct world w = ten(1);

	put(&w, "removed/n0", "{\"by\":\"kubernetes\"}");
	node(&w, "n0", "new", "");
	expect(&w, 1000 + MINUTE,
	       "spec/n0:\nif spec/n0 = 5\nif removed/n0 = 9\n"
	       "put spec/n0 {\"kubernetesUid\":\"new\"}\ndelete removed/n0\n");
	end(&w);
}

/* An operator has removed it, and Kubernetes still has the same Node: it stays removed. */
static void the_same_node_does_not_take_it_back(void **unused)
{
	struct world w = ten(0);

	put(&w, "removed/n0", "{\"by\":\"me\"}");
	expect(&w, 1000 + MINUTE, "");
	end(&w);
}

static void agents_of_other_names_are_an_alarm(void **unused)
{
	struct world w = { .nodes.in_sync = true };

	put(&w, "node/host-1", "{}");
	node(&w, "n1", "u1", "");
	expect(&w, 1, "spec/n1:\nif spec/n1 absent\nput spec/n1 {\"kubernetesUid\":\"u1\"}\n");
	assert_non_null(strstr(w.alarm.text, "--node"));
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_and_uid_are_copied_and_what_operators_wrote_stays),
		cmocka_unit_test(pod_cidrs_are_copied_where_that_is_asked_for),
		cmocka_unit_test(what_is_there_already_is_not_written_again),
		cmocka_unit_test(one_that_cannot_be_read_is_left_alone),
		cmocka_unit_test(one_that_is_gone_is_removed_after_a_minute),
		cmocka_unit_test(more_than_a_tenth_gone_removes_nothing),
		cmocka_unit_test(two_of_a_small_cluster_may_go_together),
		cmocka_unit_test(all_of_a_small_cluster_may_not),
		cmocka_unit_test(nodes_of_a_wrong_cluster_do_not_count),
		cmocka_unit_test(another_uid_or_none_proves_nothing),
		cmocka_unit_test(an_empty_list_removes_nothing),
		cmocka_unit_test(a_new_node_of_that_name_takes_the_removal_back),
		cmocka_unit_test(the_same_node_does_not_take_it_back),
		cmocka_unit_test(agents_of_other_names_are_an_alarm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
