/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/settings.h"

/* A file of our own: the machine's may say anything. */
static char nothing[] = "/tmp/roost-settings-XXXXXX";

static int load_env(struct settings *s, struct err *err, const char *const *env)
{
	const char *argv[] = { "roostd", "--config", nothing };
	enum options_verb verb;

	return settings_load(3, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env, s,
			     &verb, err);
}

static int load(struct settings *s, struct err *err, const char *a, const char *b)
{
	const char *argv[] = { "roostd", "--config", nothing, a, b };
	enum options_verb verb;

	return settings_load(a ? 5 : 3, (char *const *)(uintptr_t)argv, NULL, s, &verb, err);
}

static void the_documented_defaults_hold(void **unused)
{
	AUTO_DONE(settings_done) struct settings s = { 0 };
	struct err err = { "" };

	if (load(&s, &err, NULL, NULL) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(s.etcd.prefix, "/roost/v1/");
	assert_string_equal(s.run_dir, "/run/roost");
	assert_string_equal(s.node, "");
	assert_string_equal(s.address, "");
	assert_int_equal(s.log_level, LOG_LEVEL_INFO);
}

static void a_node_address_is_one_of_each_family_at_most(void **unused)
{
	struct err err = { "" };

	assert_int_equal(settings_address_check("10.0.0.5", &err), 0);
	assert_int_equal(settings_address_check("10.0.0.5/24", &err), 0);
	assert_int_equal(settings_address_check("fd00::5,10.0.0.5", &err), 0);
	assert_int_equal(settings_address_check("10.0.0.5,10.0.0.6", &err), -EINVAL);
	assert_int_equal(settings_address_check("10.0.0.5,", &err), -EINVAL);
	assert_int_equal(settings_address_check("10.0.0.5,fd00::1,fd00::2", &err), -EINVAL);
	assert_int_equal(settings_address_check("10.0.0.256", &err), -EINVAL);
	assert_int_equal(settings_address_check("127.0.0.1", &err), -EINVAL);
	assert_string_equal(err.text,
			    "\"127.0.0.1\" cannot be a node's address: others could not reach it");
	assert_int_equal(settings_address_check("fe80::1", &err), -EINVAL);
	assert_int_equal(settings_address_check("0.0.0.0", &err), -EINVAL);
}

static void a_certificate_without_its_key_is_refused(void **unused)
{
	struct settings s = { 0 };
	struct err err = { "" };

	assert_int_equal(load(&s, &err, "--etcd-cert", "/c.pem"), -EINVAL);
	assert_string_equal(err.text,
			    "--etcd-cert and --etcd-key go together: --etcd-key is missing");
	assert_null(s.etcd.endpoints);
}

#define SERVER "ROOST_LEASE_SERVER=https://10.0.0.1:10253"

static void a_node_has_etcd_or_a_lease_server(void **unused)
{
	static const char *const both[][4] = {
		{ SERVER, "ROOST_ETCD=http://10.0.0.1:2379", NULL },
		{ SERVER, "ROOST_ETCD_CACERT=/ca", NULL },
		{ SERVER, "ROOST_ETCD_USER=u", "ROOST_ETCD_PASSWORD_FILE=/p", NULL },
	};
	struct err err = { "" };

	for (size_t i = 0; i < sizeof(both) / sizeof(*both); i++) {
		struct settings s = { 0 };

		assert_int_equal(load_env(&s, &err, both[i]), -EINVAL);
		assert_non_null(strstr(err.text, "exclude each other"));
	}
}

static void a_lease_server_leaves_bird_alone(void **unused)
{
	static const char *const alone[] = { SERVER, NULL };
	static const char *const named[] = { SERVER, "ROOST_BIRD_CONFIG=/etc/bird/other.conf",
					     NULL };
	AUTO_DONE(settings_done) struct settings s = { 0 }, with_bird = { 0 }, etcd = { 0 };
	struct err err = { "" };

	assert_int_equal(load_env(&s, &err, alone), 0);
	assert_false(settings_bird(&s));
	assert_string_equal(settings_servers(&s), "https://10.0.0.1:10253");
	assert_string_equal(s.lease.network, "_");
	assert_int_equal(load_env(&with_bird, &err, named), 0);
	assert_true(settings_bird(&with_bird));
	assert_int_equal(load(&etcd, &err, NULL, NULL), 0);
	assert_true(settings_bird(&etcd));
	assert_string_equal(settings_servers(&etcd), "http://127.0.0.1:2379");
}

static void a_lease_certificate_has_a_key(void **unused)
{
	static const char *const half[] = { SERVER, "ROOST_LEASE_KEY=/key", NULL };
	struct settings s = { 0 };
	struct err err = { "" };

	assert_int_equal(load_env(&s, &err, half), -EINVAL);
	assert_string_equal(err.text,
			    "--lease-cert and --lease-key go together: --lease-cert is missing");
}

static void upper_case_in_the_node_flag_is_refused(void **unused)
{
	struct settings s = { 0 };
	struct err err = { "" };

	assert_int_equal(load(&s, &err, "--node", "Node-1"), -EINVAL);
	assert_non_null(strstr(err.text, "--node: \"Node-1\" is not a node name"));
}

static char story[512];
static void tell(const char *sentence, bool taken, void *arg)
{
	size_t n = strlen(story);

	snprintf(story + n, sizeof(story) - n, "%s: %s\n", taken ? "taken" : "not taken", sentence);
}

static void a_reload_takes_what_is_live_and_tells_the_rest(void **unused)
{
	AUTO_DONE(settings_done) struct settings now = { 0 }, fresh = { 0 }, third = { 0 };

	assert_int_equal(load(&now, NULL, "--log-level", "info"), 0);
	assert_int_equal(load(&fresh, NULL, "--log-level", "debug"), 0);
	assert_int_equal(load(&third, NULL, "--node", "other"), 0);
	settings_take_over(&now, &fresh, tell, NULL);
	assert_string_equal(story, "taken: --log-level is taken over\n");
	assert_int_equal(now.log_level, LOG_LEVEL_DEBUG);

	story[0] = '\0';
	third.log_level = now.log_level;
	settings_take_over(&now, &third, tell, NULL);
	assert_string_equal(story,
			    "not taken: --node cannot change while the agent runs: restart it\n");
	assert_string_equal(now.node, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_documented_defaults_hold),
		cmocka_unit_test(a_node_address_is_one_of_each_family_at_most),
		cmocka_unit_test(a_certificate_without_its_key_is_refused),
		cmocka_unit_test(a_node_has_etcd_or_a_lease_server),
		cmocka_unit_test(a_lease_server_leaves_bird_alone),
		cmocka_unit_test(a_lease_certificate_has_a_key),
		cmocka_unit_test(upper_case_in_the_node_flag_is_refused),
		cmocka_unit_test(a_reload_takes_what_is_live_and_tells_the_rest),
	};

	AUTO(close) int fd = mkstemp(nothing);
	int failed;

	if (fd < 0 || write(fd, "{}", 2) != 2)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(nothing);
	return failed;
}
