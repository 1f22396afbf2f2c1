/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/kube/kube_list.h"
#include "lib/json/json.h"

#define LIMIT 100

struct out {
	char text[2048];
	size_t len;
};

static void add(struct out *o, const char *text)
{
	o->len += (size_t)snprintf(o->text + o->len, sizeof(o->text) - o->len, "%s\n", text);
}

static int on_item(struct json_object *item, void *arg)
{
	add(arg, json_object_to_json_string_ext(item, JSON_C_TO_STRING_PLAIN));
	return json_object_object_get_ex(item, "stop", NULL) ? -ECANCELED : 0;
}

/* The items, then the envelope or the error, a line each; in pieces of n bytes. */
static void split(const char *json, size_t piece, struct out *o)
{
	AUTO(json_put) struct json_object *envelope = NULL;
	AUTO(kube_list_free) struct kube_list *l = NULL;
	struct err err = { "" };
	int r = kube_list_new(LIMIT, on_item, o, &l);

	assert_int_equal(r, 0);
	for (size_t i = 0, n = strlen(json); i < n && r == 0; i += piece)
		r = kube_list_feed(l, json + i, n - i < piece ? n - i : piece, &err);
	r = r ?: kube_list_end(l, &envelope, &err);
	add(o, r ? err.text : json_object_to_json_string_ext(envelope, JSON_C_TO_STRING_PLAIN));
}

static void expect(const char *json, const char *want)
{
	for (size_t piece = 1; piece <= strlen(json) + 1; piece++) {
		struct out o = { .len = 0 };

		split(json, piece, &o);
		assert_string_equal(o.text, want);
	}
}

static void items_come_by_themselves(void **unused)
{
	expect("{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"a\":"
	       "1},{\"b\":[{}]}]}\n",
	       "{\"a\":1}\n{\"b\":[{}]}\n"
	       "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}\n");
	expect("{ \"items\" : [ {\"a\":1} , {\"b\":\"\\u00e4\"} ] , \"kind\" : \"NodeList\" }",
	       "{\"a\":1}\n{\"b\":\"ä\"}\n{\"items\":[],\"kind\":\"NodeList\"}\n");
	expect("{\"items\":[]}", "{\"items\":[]}\n");
	expect("{\"items\":null,\"kind\":\"NodeList\"}",
	       "{\"items\":null,\"kind\":\"NodeList\"}\n");
}

static void brackets_and_quotes_in_texts_are_texts(void **unused)
{
	expect("{\"x\":\"]}\\\\\\\"\",\"items\":[{\"a\":\"]}{[\\\"\\\\\"},{\"b\":\"\\\\\"}],\"y\":"
	       "\"[{\"}",
	       "{\"a\":\"]}{[\\\"\\\\\"}\n{\"b\":\"\\\\\"}\n"
	       "{\"x\":\"]}\\\\\\\"\",\"items\":[],\"y\":\"[{\"}\n");
	/* "items" elsewhere is not it. */
	expect("{\"m\":{\"items\":[{\"a\":1}]},\"k\":\"items\",\"l\":[{\"b\":1}]}",
	       "{\"m\":{\"items\":[{\"a\":1}]},\"k\":\"items\",\"l\":[{\"b\":1}]}\n");
}

static void other_objects_are_all_envelope(void **unused)
{
	expect("{\"kind\":\"Status\",\"code\":403}", "{\"kind\":\"Status\",\"code\":403}\n");
}

static void broken_ones_are_refused(void **unused)
{
	expect("", "an empty reply\n");
	expect("{}{}", "more than one object\n");
	expect("<html>", "not JSON: expected an object, found byte 0x3c\n");
	expect("{\"items\":[{\"a\":1}", "{\"a\":1}\ncut off within the items of a list\n");
	expect("{\"items\":[{\"a\":1}{\"b\":1}]}",
	       "{\"a\":1}\nnot JSON: byte 0x7b between the items of the list\n");
	expect("{\"items\":[{\"a\":1},]}",
	       "{\"a\":1}\nnot JSON: byte 0x5d between the items of the list\n");
	expect("{\"items\":[,]}", "not JSON: byte 0x2c between the items of the list\n");
	expect("{\"items\":[1]}", "not JSON: byte 0x31 between the items of the list\n");
	expect("{\"items\":[{\"a\":1}],\"items\":[]}", "{\"a\":1}\nthe list has its items twice\n");
	expect("{\"items\":[{\"stop\":1},{\"a\":1}]}", "{\"stop\":1}\n\n");
}

static void an_item_has_a_limit(void **unused)
{
	char json[300];
	struct out o = { .len = 0 };

	snprintf(json, sizeof(json), "{\"items\":[{\"a\":\"%0*d\"}]}", LIMIT, 0);
	split(json, 7, &o);
	assert_string_equal(o.text, "an item of the list: a message is larger than 100 bytes\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_come_by_themselves),
		cmocka_unit_test(brackets_and_quotes_in_texts_are_texts),
		cmocka_unit_test(other_objects_are_all_envelope),
		cmocka_unit_test(broken_ones_are_refused),
		cmocka_unit_test(an_item_has_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
