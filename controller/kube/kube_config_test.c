/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/kube/kube_config.h"

/* "-----BEGIN X" and "-----BEGIN Y" */
#define PEM_X "LS0tLS1CRUdJTiBY"
#define PEM_Y "LS0tLS1CRUdJTiBZ"

static void show(const struct kube_config *c, char *text, size_t size)
{
	const struct {
		const char *name, *value;
	} fields[] = {
		{ "", c->server },
		{ " name=", c->server_name },
		{ " ca=", c->ca_file },
		{ " ca:", c->ca_pem },
		{ " cert=", c->cert_file },
		{ " cert:", c->cert_pem },
		{ " key=", c->key_file },
		{ " key:", c->key_pem },
		{ " tokenFile=", c->token_file },
		{ " token=", c->token },
	};
	size_t at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].value)
			at += (size_t)snprintf(text + at, size - at, "%s%s", fields[i].name,
					       fields[i].value);
	if (c->insecure)
		snprintf(text + at, size - at, " insecure");
}

static void expect_with(const char *context, bool insecure, const char *in, const char *want)
{
	AUTO(kube_config_free) struct kube_config *c = NULL;
	struct err err = { "" };
	char text[1024] = "";
	int r = kube_config_parse("/etc/kube/conf", in, strlen(in), context, insecure, &c, &err);

	if (r == 0)
		show(c, text, sizeof(text));
	assert_string_equal(r ? err.text : text, want);
}

static void expect(const char *in, const char *want)
{
	expect_with(NULL, false, in, want);
}

#define AROUND(cluster, user)                                                                      \
	"apiVersion: v1\nkind: Config\ncurrent-context: c\npreferences: {}\n"                      \
	"contexts:\n- name: c\n  context:\n    cluster: k\n    user: u\n"                          \
	"clusters:\n- cluster:\n" cluster "  name: k\n"                                            \
	"users:\n- name: other\n  user: {exec: {command: x}}\n- name: u\n  user:\n" user

static void yaml_as_kubectl_writes_it(void **unused)
{
	expect(AROUND("    certificate-authority-data: " PEM_X "\n"
		      "    server: https://10.0.0.1:6443\n",
		      "    client-certificate-data: " PEM_X "\n    client-key-data: " PEM_Y "\n"),
	       "https://10.0.0.1:6443 ca:-----BEGIN X cert:-----BEGIN X key:-----BEGIN Y");
	/* Paths start from the file's folder; a token of digits is a text. */
	expect(AROUND("    certificate-authority: pki/ca.crt\n    server: https://api/\n"
		      "    tls-server-name: kubernetes\n",
		      "    token: 12345\n"),
	       "https://api name=kubernetes ca=/etc/kube/pki/ca.crt token=12345");
	expect(AROUND("    server: \"https://[fd00::1]:6443\"\n",
		      "    token: abc\n    tokenFile: /run/token\n"
		      "    client-certificate: c.crt\n    client-key: /k.key\n"),
	       "https://[fd00::1]:6443 cert=/etc/kube/c.crt key=/k.key tokenFile=/run/token");
	/* No credentials at all. */
	expect(AROUND("    server: http://127.0.0.1:8080\n", "    {}\n"), "http://127.0.0.1:8080");
}

static void json_is_taken_too(void **unused)
{
	expect(" {\"current-context\":\"a\",\"contexts\":[{\"name\":\"a\",\"context\":{\"cluster\":"
	       "\"k\"}}],\"clusters\":[{\"name\":\"k\",\"cluster\":{\"server\":\"https://x\"}}]}",
	       "https://x");
}

static void another_context_can_be_asked_for(void **unused)
{
	const char *in = "current-context: a\ncontexts:\n- {name: a, context: {cluster: x}}\n"
			 "- {name: b, context: {cluster: y}}\nclusters:\n"
			 "- {name: x, cluster: {server: 'https://x'}}\n"
			 "- {name: y, cluster: {server: 'https://y'}}\n";

	expect_with(NULL, false, in, "https://x");
	expect_with("", false, in, "https://x");
	expect_with("b", false, in, "https://y");
	expect_with("c", false, in,
		    "/etc/kube/conf, context \"c\": there is no context \"c\" in \"contexts\"");
}

static void what_we_do_not_do_is_refused(void **unused)
{
	expect(AROUND("    server: https://x\n", "    exec: {command: aws}\n"),
	       "/etc/kube/conf, context \"c\": user \"u\": field \"exec\": programs that fetch "
	       "credentials are not run: use a token, a tokenFile or a client certificate");
	expect(AROUND("    server: https://x\n", "    auth-provider: {name: oidc}\n"),
	       "/etc/kube/conf, context \"c\": user \"u\": field \"auth-provider\": auth providers "
	       "are not supported: use a token, a tokenFile or a client certificate");
	expect(AROUND("    server: https://x\n    insecure-skip-tls-verify: true\n", "    {}\n"),
	       "/etc/kube/conf, context \"c\": cluster \"k\": field \"insecure-skip-tls-verify\": "
	       "would accept any server and is refused: use certificate-authority, or start with "
	       "--kubernetes-insecure");
	expect_with(
		NULL, true,
		AROUND("    server: https://x\n    insecure-skip-tls-verify: true\n", "    {}\n"),
		"https://x insecure");
	expect(AROUND("    server: https://x\n    proxy-url: http://p\n", "    {}\n"),
	       "/etc/kube/conf, context \"c\": cluster \"k\": field \"proxy-url\": proxies are not "
	       "supported: remove it");
}

static void errors_name_file_context_and_field(void **unused)
{
	expect("", "/etc/kube/conf: line 1, column 1: the document is empty");
	expect("a: b\n", "/etc/kube/conf: field \"current-context\": is missing, and "
			 "--kube-context is not set");
	expect("a: [b\n", "/etc/kube/conf: line 2, column 1: did not find expected ',' or ']'");
	expect("- a\n", "/etc/kube/conf: line 1, column 1: not a mapping of names to values");
	expect("a: 1\na: 2\n", "/etc/kube/conf: line 2, column 1: the name appears twice");
	expect("a: &x 1\nb: *x\n",
	       "/etc/kube/conf: line 1, column 4: anchors and tags are not supported");
	expect("a: {}\nb: *x\n",
	       "/etc/kube/conf: line 2, column 4: anchors, aliases and tags are not supported");
	expect("a: 1\n---\nb: 2\n", "/etc/kube/conf: line 2, column 1: a second document");
	expect("{\"a\":", "/etc/kube/conf: not a whole JSON object: ends at byte 5");
	expect("current-context: c\ncontexts: [{name: c}]\n",
	       "/etc/kube/conf, context \"c\": context \"c\": field \"context\": is missing");
	expect("current-context: c\ncontexts: [{name: c, context: 7}]\n",
	       "/etc/kube/conf, context \"c\": context \"c\": field \"context\": \"7\" is a "
	       "string, not an object");
	expect(AROUND("    server: ftp://x\n", "    {}\n"),
	       "/etc/kube/conf, context \"c\": cluster \"k\": field \"server\": \"ftp://x\" is not "
	       "https://HOST:PORT");
	expect(AROUND("    certificate-authority-data: '%%%%'\n    server: https://x\n",
		      "    {}\n"),
	       "/etc/kube/conf, context \"c\": cluster \"k\": field "
	       "\"certificate-authority-data\": is not base64");
	expect(AROUND("    server: https://x\n", "    client-key-data: YWJj\n"),
	       "/etc/kube/conf, context \"c\": user \"u\": field \"client-key-data\": is not "
	       "base64 of a PEM file");
	expect(AROUND("    server: https://x\n", "    client-certificate: /a\n"),
	       "/etc/kube/conf, context \"c\": user \"u\": field \"client-key\": is missing, while "
	       "there is a client-certificate");
	expect(AROUND("    server: https://x\n", "    token: \"a b\"\n"),
	       "/etc/kube/conf, context \"c\": user \"u\": field \"token\": is not a token: "
	       "printable ASCII without blanks");
	expect(AROUND("    server: [x]\n", "    {}\n"),
	       "/etc/kube/conf, context \"c\": cluster \"k\": field \"server\": [\"x\"] is an "
	       "array, not a string");
}

static void expect_pod(const char *host, const char *port, const char *want)
{
	AUTO(kube_config_free) struct kube_config *c = NULL;
	struct err err = { "" };
	char text[512] = "";
	int r = kube_config_in_cluster("/sa", host, port, &c, &err);

	if (r == 0)
		show(c, text, sizeof(text));
	assert_string_equal(r ? err.text : text, want);
}

static void a_pod_has_a_service_account(void **unused)
{
	expect_pod("10.96.0.1", "443", "https://10.96.0.1:443 ca=/sa/ca.crt tokenFile=/sa/token");
	expect_pod("fd00::1", "443", "https://[fd00::1]:443 ca=/sa/ca.crt tokenFile=/sa/token");
	expect_pod("api.example", "6443",
		   "https://api.example:6443 ca=/sa/ca.crt tokenFile=/sa/token");
	expect_pod(NULL, "443",
		   "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, so this is "
		   "not a pod: use --kubeconfig");
	expect_pod("a/b", "443", "KUBERNETES_SERVICE_HOST is neither an address nor a name");
	expect_pod("a", "https", "KUBERNETES_SERVICE_PORT is not a port");
}

static void expect_url(const char *server, const char *name, const char *want)
{
	struct kube_url u;
	char text[512];

	assert_int_equal(kube_url_make(server, name, &u), 0);
	snprintf(text, sizeof(text), "%s|%s|%s", u.base, u.connect_to ?: "", u.host ?: "");
	kube_url_done(&u);
	assert_string_equal(text, want);
}

static void urls_go_by_the_name_of_the_certificate(void **unused)
{
	expect_url("https://10.0.0.1:6443", NULL, "https://10.0.0.1:6443||");
	expect_url("https://10.0.0.1:6443", "api.example",
		   "https://api.example:6443|api.example:6443:10.0.0.1:6443|Host: 10.0.0.1:6443");
	expect_url("https://[fd00::1]/k8s/c-1", "api",
		   "https://api:443/k8s/c-1|api:443:[fd00::1]:443|Host: [fd00::1]:443");
	expect_url("http://host", "::1", "http://[::1]:80|[::1]:80:host:80|Host: host:80");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(yaml_as_kubectl_writes_it),
		cmocka_unit_test(json_is_taken_too),
		cmocka_unit_test(another_context_can_be_asked_for),
		cmocka_unit_test(what_we_do_not_do_is_refused),
		cmocka_unit_test(errors_name_file_context_and_field),
		cmocka_unit_test(a_pod_has_a_service_account),
		cmocka_unit_test(urls_go_by_the_name_of_the_certificate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
