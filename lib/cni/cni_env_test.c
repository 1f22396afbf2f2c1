/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/cni/cni_env.h"

/* The environment as "NAME=value" lines. */
static const char *look(const char *name, void *arg)
{
	size_t n = strlen(name);

	for (const char *const *p = arg; *p; p++)
		if (strncmp(*p, name, n) == 0 && (*p)[n] == '=')
			return *p + n + 1;
	return NULL;
}

static const struct cni_env *read_env(const char **lines)
{
	static struct cni_env env;
	struct cni_error e = { 0 };
	int r;

	cni_env_done(&env);
	r = cni_env_read(look, lines, &env, &e);
	if (r != 1)
		fail_msg("%d: %s", r, e.msg.text);
	return &env;
}
#define ENV(...) read_env((const char *[]){ __VA_ARGS__, NULL })

static void env_fails(const char **lines, const char *msg, const char *details)
{
	struct cni_env env;
	struct cni_error e = { 0 };

	assert_int_equal(cni_env_read(look, lines, &env, &e), -EINVAL);
	assert_int_equal(e.code, CNI_CODE_ENVIRONMENT);
	assert_string_equal(e.msg.text, msg);
	assert_string_equal(e.details.text, details);
}
#define FAILS(msg, details, ...) env_fails((const char *[]){ __VA_ARGS__, NULL }, msg, details)

#define BAD_ID                                                                                     \
	"invalid CNI_CONTAINERID: \"a/b\" is not a container id: 1 to 1024 of A-Z, a-z, 0-9, "     \
	"'_', '.', '-', beginning with a letter or digit"

static void an_add_has_all_its_parts(void **unused)
{
	const struct cni_env *env = ENV("CNI_COMMAND=ADD", "CNI_CONTAINERID=a_B.1-c",
					"CNI_NETNS=/run/netns/x", "CNI_IFNAME=eth0",
					"CNI_PATH=/opt");

	assert_int_equal(env->verb, CNI_ADD);
	assert_string_equal(env->container, "a_B.1-c");
	assert_string_equal(env->netns, "/run/netns/x");
	assert_string_equal(env->ifname, "eth0");
	assert_string_equal(env->path, "/opt");
	assert_string_equal(env->args.namespace, "");
	assert_false(env->netns_override);
}

static void no_command_is_somebody_who_just_looks(void **unused)
{
	struct cni_env env;
	struct cni_error e = { 0 };
	const char *unset[] = { "PATH=/bin", NULL }, *empty[] = { "CNI_COMMAND=", NULL };

	assert_int_equal(cni_env_read(look, unset, &env, &e), 0);
	assert_int_equal(cni_env_read(look, empty, &env, &e), 0);
}

static void unknown_verbs_are_refused(void **unused)
{
	FAILS("unknown CNI_COMMAND: add", "", "CNI_COMMAND=add");
	FAILS("unknown CNI_COMMAND: PATCH", "", "CNI_COMMAND=PATCH");
}

static void all_that_is_missing_is_told_at_once(void **unused)
{
	FAILS("required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME] missing", "",
	      "CNI_COMMAND=ADD");
	FAILS("required env variables [CNI_NETNS,CNI_IFNAME] missing", "", "CNI_COMMAND=CHECK",
	      "CNI_CONTAINERID=x", "CNI_NETNS=", "CNI_IFNAME=");
	FAILS("required env variables [CNI_IFNAME] missing", "", "CNI_COMMAND=DEL",
	      "CNI_CONTAINERID=x");
}

static void del_needs_no_namespace_and_the_others_need_nothing(void **unused)
{
	assert_string_equal(ENV("CNI_COMMAND=DEL", "CNI_CONTAINERID=x", "CNI_IFNAME=eth0")->netns,
			    "");
	assert_int_equal(ENV("CNI_COMMAND=GC", "CNI_CONTAINERID=")->verb, CNI_GC);
	assert_int_equal(ENV("CNI_COMMAND=STATUS")->verb, CNI_STATUS);
	/* What these verbs do not use may be anything. */
	assert_int_equal(ENV("CNI_COMMAND=VERSION", "CNI_IFNAME=a/b", "CNI_NETNS=dummy")->verb,
			 CNI_VERSION);
}

static void a_wrong_id_is_told_before_what_is_missing(void **unused)
{
	FAILS(BAD_ID, "CNI_CONTAINERID=a/b", "CNI_COMMAND=ADD", "CNI_CONTAINERID=a/b");
	FAILS(BAD_ID, "CNI_CONTAINERID=a/b", "CNI_COMMAND=ADD", "CNI_CONTAINERID=a/b",
	      "CNI_IFNAME=a/b");
	FAILS("invalid CNI_IFNAME: \"a b\" is not an interface name: 1 to 15 bytes, no '/', ':' or "
	      "blank, and not '.' or '..'",
	      "CNI_IFNAME=a b", "CNI_COMMAND=DEL", "CNI_IFNAME=a b");
}

static void interface_names_follow_the_kernel(void **unused)
{
	const char *const good[] = {
		"e", "eth0", "abcdefghijklmno", "a.b", "...", "e@x", "\xc3\xbc"
	};
	const char *const bad[] = { "",     ".",   "..", "abcdefghijklmnop", "a/b", "a:b", "a b",
				    "a\tb", "a\n", "\va" };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(cni_ifname_ok(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(cni_ifname_ok(bad[i]));
}

static const struct cni_args *read_args(const char *text)
{
	char line[512];

	snprintf(line, sizeof(line), "CNI_ARGS=%s", text);
	return &ENV("CNI_COMMAND=GC", line)->args;
}

static void args_of_containerd_are_taken_in_any_order(void **unused)
{
	const struct cni_args *a = read_args(
		"K8S_POD_UID=1f2e-3;IgnoreUnknown=1;K8S_POD_INFRA_CONTAINER_ID=c1;"
		"K8S_POD_NAME=web-1;K8S_POD_NAMESPACE=prod");

	assert_string_equal(a->namespace, "prod");
	assert_string_equal(a->pod, "web-1");
	assert_string_equal(a->uid, "1f2e-3");
	assert_string_equal(a->ip, "");
}

static void args_of_podman_have_a_name_without_namespace(void **unused)
{
	const struct cni_args *a = read_args("IgnoreUnknown=1;K8S_POD_NAME=box;IP=10.1.0.5;"
					     "MAC=02:00:00:00:00:05");

	assert_string_equal(a->namespace, "");
	assert_string_equal(a->pod, "box");
	assert_string_equal(a->ip, "10.1.0.5");
	assert_string_equal(a->mac, "02:00:00:00:00:05");
}

static void args_are_read_laxly(void **unused)
{
	const struct cni_args *a = read_args(
		";;=;=x;junk;IP;K8S_POD_NAME=a=b;k8s_pod_namespace=no;;");

	assert_string_equal(a->pod, "a=b"); /* only the first '=' divides */
	assert_string_equal(a->namespace, "");
	assert_string_equal(a->ip, "");
	/* What could not be passed on as a name is dropped, not refused. */
	a = read_args("K8S_POD_NAME=a\xff;K8S_POD_NAMESPACE=;K8S_POD_UID=\"");
	assert_string_equal(a->pod, "");
	assert_string_equal(a->namespace, "");
	assert_string_equal(a->uid, "");
}

static void the_override_is_a_go_boolean(void **unused)
{
	assert_true(ENV("CNI_COMMAND=GC", "CNI_NETNS_OVERRIDE=1")->netns_override);
	assert_true(ENV("CNI_COMMAND=GC", "CNI_NETNS_OVERRIDE=true")->netns_override);
	assert_false(ENV("CNI_COMMAND=GC", "CNI_NETNS_OVERRIDE=0")->netns_override);
}

static void verbs_and_versions_print_as_they_are_read(void **unused)
{
	for (int i = 0; i < CNI_VERBS; i++) {
		enum cni_verb verb;

		assert_int_equal(cni_verb_parse(cni_verb_name((enum cni_verb)i), &verb), 0);
		assert_int_equal(verb, i);
	}
	for (int i = 0; i < CNI_VERSIONS; i++) {
		enum cni_version version;

		assert_int_equal(cni_version_parse(cni_version_name((enum cni_version)i), &version),
				 0);
		assert_int_equal(version, i);
		assert_true(cni_version_is_one(cni_version_name((enum cni_version)i)));
	}
	assert_true(cni_version_is_one("2"));
	assert_true(cni_version_is_one("99.1"));
	assert_false(cni_version_is_one(""));
	assert_false(cni_version_is_one("1."));
	assert_false(cni_version_is_one("1.0.0.0"));
	assert_false(cni_version_is_one("v1.0.0"));
	assert_false(cni_version_is_one("abc"));
}

static void an_error_is_one_line_of_json(void **unused)
{
	AUTO(free) char *text = NULL;
	struct cni_error e = { 0 };

	cni_fail(&e, CNI_CODE_CONFIG, "a \"%s\"", "b");
	cni_details(&e, "x=%d", 5);
	assert_int_equal(cni_error_print(&e, CNI_0_3_1, &text), 0);
	assert_string_equal(text, "{\"cniVersion\":\"0.3.1\",\"code\":7,\"msg\":\"a \\\"b\\\"\","
				  "\"details\":\"x=5\"}");
	/* The next failure does not inherit the details of this one. */
	cni_fail(&e, CNI_CODE_IO, "y");
	assert_string_equal(e.details.text, "");
}

static void an_error_that_is_too_long_is_cut(void **unused)
{
	struct cni_error e = { 0 };
	char big[2000];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	cni_fail(&e, CNI_CODE_IO, "%s", big);
	assert_int_equal(strlen(e.msg.text), sizeof(e.msg.text) - 1);
	assert_string_equal(e.msg.text + strlen(e.msg.text) - 4, "x...");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_add_has_all_its_parts),
		cmocka_unit_test(no_command_is_somebody_who_just_looks),
		cmocka_unit_test(unknown_verbs_are_refused),
		cmocka_unit_test(all_that_is_missing_is_told_at_once),
		cmocka_unit_test(del_needs_no_namespace_and_the_others_need_nothing),
		cmocka_unit_test(a_wrong_id_is_told_before_what_is_missing),
		cmocka_unit_test(interface_names_follow_the_kernel),
		cmocka_unit_test(args_of_containerd_are_taken_in_any_order),
		cmocka_unit_test(args_of_podman_have_a_name_without_namespace),
		cmocka_unit_test(args_are_read_laxly),
		cmocka_unit_test(the_override_is_a_go_boolean),
		cmocka_unit_test(verbs_and_versions_print_as_they_are_read),
		cmocka_unit_test(an_error_is_one_line_of_json),
		cmocka_unit_test(an_error_that_is_too_long_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
