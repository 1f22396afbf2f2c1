/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/kube/kube_node.h"
#include "lib/json/json.h"

/* The Node as text: "name uid key=value,... cidr,... [deleting] [left out: labels, cidrs]". */
static void show(const struct kube_node *n, char *text, size_t size)
{
	char cidr[PREFIX_TEXT];
	size_t at = (size_t)snprintf(text, size, "%s %s ", n->name, n->uid);

	for (size_t i = 0; i < n->labels.n; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%s=%s", i ? "," : "",
				       n->labels.v[i].key, n->labels.v[i].value);
	at += (size_t)snprintf(text + at, size - at, " ");
	for (size_t i = 0; i < n->pod_cidrs.n; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%s", i ? "," : "",
				       prefix_print(&n->pod_cidrs.v[i], cidr));
	if (n->deleting)
		at += (size_t)snprintf(text + at, size - at, " deleting");
	if (n->labels_left_out || n->pod_cidrs_left_out)
		snprintf(text + at, size - at, " left out: %zu, %zu", n->labels_left_out,
			 n->pod_cidrs_left_out);
}

static void expect(const char *json, const char *want)
{
	AUTO(json_put) struct json_object *object = NULL;
	struct kube_node node;
	struct err err = { "" };
	char text[1024];
	int r;

	assert_int_equal(json_parse(json, strlen(json), &object, &err), 0);
	r = kube_node_read(object, &node, &err);
	if (r < 0) {
		assert_int_equal(r, -EINVAL);
		assert_string_equal(err.text, want);
		return;
	}
	show(&node, text, sizeof(text));
	kube_node_done(&node);
	assert_string_equal(text, want);
}

static void a_node_is_read(void **unused)
{
	expect("{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n1.example.com\","
	       "\"uid\":\"2b1f-77\",\"resourceVersion\":\"71\",\"labels\":{\"zone\":\"a\","
	       "\"kubernetes.io/"
	       "os\":\"linux\",\"gpu\":\"\"},\"managedFields\":[{\"fieldsV1\":{}}]},\"spec\":{"
	       "\"podCIDR\":\"10.4.0.0/24\",\"podCIDRs\":[\"10.4.0.0/24\",\"fd04::/"
	       "80\"]},\"status\":{\"conditions\":[]}}",
	       "n1.example.com 2b1f-77 gpu=,kubernetes.io/os=linux,zone=a 10.4.0.0/24,fd04::/80");
	/* As little as there can be; items of lists go without a kind. */
	expect("{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}", "a u  ");
	expect("{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"deletionTimestamp\":\"2026-01-01T00:"
	       "00:00Z\"},\"spec\":{\"podCIDR\":\"10.4.1.0/24\"}}",
	       "a u  10.4.1.0/24 deleting");
}

static void what_does_not_fit_is_left_out_and_counted(void **unused)
{
	expect("{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"labels\":{\"ok\":\"1\",\"b "
	       "d\":\"2\",\"number\":3,\"blank\":\"a "
	       "b\",\"nul\":\"a\\u0000b\"}},\"spec\":{\"podCIDRs\":[\"10.4.1.1/24\",7,\"10.4.2.0/"
	       "24\"]}}",
	       "a u ok=1 10.4.2.0/24 left out: 4, 2");
}

static void other_things_are_refused(void **unused)
{
	expect("{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}",
	       "field \"kind\": \"Pod\" is not \"Node\"");
	expect("{}", "field \"metadata\": is missing");
	expect("{\"metadata\":[]}", "field \"metadata\": [] is an array, not an object");
	expect("{\"metadata\":{\"uid\":\"u\"}}", "field \"metadata.name\": is missing");
	expect("{\"metadata\":{\"name\":\"a\"}}", "field \"metadata.uid\": is missing");
	expect("{\"metadata\":{\"name\":\"../x\",\"uid\":\"u\"}}",
	       "field \"metadata.name\": \"../x\" is not a node name: 1 to 253 of a-z, 0-9, '.', "
	       "'-', with a letter or digit at both ends");
	expect("{\"metadata\":{\"name\":\"a\",\"uid\":\"u u\"}}",
	       "field \"metadata.uid\": \"u u\" is not an id: 1 to 128 of A-Z, a-z, 0-9, '_', '.', "
	       "':', '-'");
}

static struct hash digest_of(const char *json)
{
	AUTO(json_put) struct json_object *object = NULL;
	struct kube_node node;
	struct hash digest;

	assert_int_equal(json_parse(json, strlen(json), &object, NULL), 0);
	assert_int_equal(kube_node_read(object, &node, NULL), 0);
	assert_int_equal(kube_node_digest(&node, &digest), 0);
	kube_node_done(&node);
	return digest;
}

static bool equal(const char *a, const char *b)
{
	struct hash x = digest_of(a), y = digest_of(b);

	return x.low == y.low && x.high == y.high;
}

static void only_what_matters_makes_a_difference(void **unused)
{
	const char *base = "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"labels\":{\"x\":\"1\","
			   "\"y\":\"2\"}}}";

	assert_true(equal(base, "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"labels\":{\"y\":"
				"\"2\",\"x\":\"1\"},\"resourceVersion\":\"9\",\"managedFields\":[1]"
				"},\"status\":{\"heartbeat\":\"now\"},\"spec\":{\"taints\":[1]}}"));
	assert_false(equal(base, "{\"metadata\":{\"name\":\"a\",\"uid\":\"v\",\"labels\":{\"x\":"
				 "\"1\",\"y\":\"2\"}}}"));
	assert_false(equal(base, "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"labels\":{\"x\":"
				 "\"1\",\"y\":\"3\"}}}"));
	assert_false(equal(base, "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"labels\":{\"x\":"
				 "\"1\",\"y\":\"2\"}},\"spec\":{\"podCIDR\":\"10.0.0.0/24\"}}"));
	assert_false(equal(base, "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"labels\":{\"x\":"
				 "\"1\",\"y\":\"2\"},\"deletionTimestamp\":\"now\"}}"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_is_read),
		cmocka_unit_test(what_does_not_fit_is_left_out_and_counted),
		cmocka_unit_test(other_things_are_refused),
		cmocka_unit_test(only_what_matters_makes_a_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
