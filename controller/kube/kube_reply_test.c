/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/kube/kube_reply.h"

static void expect(const char *verb, const char *node, long http, const char *body,
		   enum kube_verdict verdict, const char *text)
{
	struct kube_status status;
	struct err err = { "" };

	kube_status_parse(body, strlen(body), &status);
	assert_int_equal(kube_judge(verb, node, http, &status, &err), verdict);
	assert_string_equal(err.text, text);
}

#define STATUS(more) "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\"," more "}"
#define NOT_FOUND(name)                                                                            \
	STATUS("\"message\":\"nodes \\\"" name "\\\" not found\",\"reason\":\"NotFound\","         \
	       "\"details\":{\"name\":\"" name "\",\"kind\":\"nodes\"},\"code\":404")

static void only_an_api_servers_404_is_believed(void **unused)
{
	const char *odd = "get nodes a: 404, but no API server reports a deleted node in this "
			  "form: check the server's address";

	expect("get", "a", 404, NOT_FOUND("a"), KUBE_NOT_FOUND, "there is no node a");
	expect("get", "a", 404, "404 page not found\n", KUBE_FAILED, odd);
	expect("get", "a", 404, "", KUBE_FAILED, odd);
	expect("get", "a", 404, "{\"code\":404,\"reason\":\"NotFound\"}", KUBE_FAILED, odd);
	expect("get", "b", 404, NOT_FOUND("a"), KUBE_FAILED,
	       "get nodes b: 404: nodes \"a\" not found, but no API server reports a deleted node "
	       "in this form: check the server's address");
	expect("get", "a", 404,
	       STATUS("\"message\":\"no such "
		      "resource\",\"reason\":\"NotFound\",\"details\":{},\"code\":404"),
	       KUBE_FAILED,
	       "get nodes a: 404: no such resource, but no API server reports a deleted node in "
	       "this form: check the server's address");
	/* A status that contradicts itself is not believed either. */
	expect("get", "a", 503, NOT_FOUND("a"), KUBE_FAILED,
	       "get nodes a: the API server answers 503: nodes \"a\" not found");
	expect("list", NULL, 404, NOT_FOUND("a"), KUBE_FAILED,
	       "list nodes: 404: nodes \"a\" not found, but no API server reports a deleted node "
	       "in this form: check the server's address");
}

static void answers_are_told_apart(void **unused)
{
	expect("list", NULL, 200, "{}", KUBE_OK, "");
	expect("watch", NULL, 410, STATUS("\"message\":\"too old\",\"code\":410"), KUBE_EXPIRED,
	       "the watch's resource version has expired (410: too old)");
	expect("list", NULL, 401, STATUS("\"message\":\"Unauthorized\",\"code\":401"),
	       KUBE_UNAUTHORIZED,
	       "the API server refuses our credentials (401: Unauthorized): check the token or the "
	       "client certificate");
	expect("watch", NULL, 403, STATUS("\"message\":\"nodes is forbidden\",\"code\":403"),
	       KUBE_FORBIDDEN,
	       "the API server forbids us to watch nodes (403: nodes is forbidden): allow get, "
	       "list and watch on nodes, as in docs/kubernetes/controller.yaml");
	expect("list", NULL, 502, "<html>\033[2J</html>", KUBE_FAILED,
	       "list nodes: the API server answers 502");
	/* An ERROR event has no HTTP status of its own. */
	expect("watch", NULL, 0, STATUS("\"message\":\"too\\u001b old\",\"code\":410"),
	       KUBE_EXPIRED, "the watch's resource version has expired (410: too? old)");
	expect("watch", NULL, 0, "[]", KUBE_FAILED, "watch nodes: the API server answers 0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_an_api_servers_404_is_believed),
		cmocka_unit_test(answers_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
