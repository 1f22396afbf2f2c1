/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/node/network_plugins.h"

#define LIST                                                                                       \
	"{\"cniVersion\":\"1.0.0\",\"CNIVersions\":[\"0.4.0\",\"1.1.0\"],"                         \
	"\"plugins\":[{\"type\":\"roost\",\"ipam\":{\"type\":\"roost-ipam\"}},{\"type\":"          \
	"\"portmap\"}]}"
#define TO_1_0 "{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"0.4.0\",\"1.0.0\"]}"
#define TO_1_1 "{\"cniVersion\":\"1.1.0\",\"supportedVersions\":[\"0.4.0\",\"1.0.0\",\"1.1.0\"]}"

static void read_list(const char *text, struct network_plugins *ret)
{
	struct err err = { "" };

	if (network_plugins_read(text, strlen(text), ret, &err) < 0)
		fail_msg("%s", err.text);
}

/* portmap: NULL: it is not there. */
static void expect(const char *portmap, const char *want)
{
	AUTO_DONE(network_plugins_done) struct network_plugins p;
	struct err err = { "" };

	read_list(LIST, &p);
	for (size_t i = 0; i < p.n; i++) {
		const char *answer = i == 2 ? portmap : TO_1_1;

		if (!answer)
			continue;
		assert_true(asprintf(&p.v[i].path, "/opt/cni/bin/%s", p.v[i].type) > 0);
		p.v[i].answer = strdup(answer);
	}
	network_plugins_check(&p, "FILE", "FOLDERS", &err);
	if (!want[0] || !strstr(err.text, want))
		assert_string_equal(err.text, want);
}

static void delegates_count_and_each_plugin_is_there_once(void **unused)
{
	AUTO_DONE(network_plugins_done) struct network_plugins p, q;

	read_list(LIST, &p);
	assert_int_equal(p.n, 3);
	assert_string_equal(p.v[1].type, "roost-ipam");
	assert_string_equal(p.version, "1.0.0");
	assert_int_equal(p.versions.n, 2);
	read_list("{\"plugins\":[{\"type\":\"roost\"},{\"type\":\"roost\"}]}", &q);
	assert_int_equal(q.n, 1);
}

static void a_version_that_a_plugin_does_not_know_is_found(void **unused)
{
	expect(TO_1_1, "");
	expect(TO_1_0, "FILE offers version 1.1.0, which the plugin /opt/cni/bin/portmap does not "
		       "know");
	expect("{\"supportedVersions\":[\"0.4.0\",\"1.1.0\"]}", "FILE offers version 1.0.0");
}

static void a_plugin_that_is_missing_or_silent_is_found(void **unused)
{
	expect(NULL, "FILE names the plugin portmap, which is not in FOLDERS");
	expect("", "/opt/cni/bin/portmap, which FILE names, does not say which versions");
	expect("usage: portmap", "does not say which versions");
	expect("{\"supportedVersions\":\"1.0.0\"}", "does not say which versions");
}

static void what_is_no_list_is_refused(void **unused)
{
	static const char *const bad[] = {
		"",
		"{}",
		"{\"plugins\":{}}",
		"{\"plugins\":[]}",
		"{\"plugins\":[{\"type\":\"../sh\"}]}",
		"{\"cniVersions\":\"1.0.0\",\"plugins\":[{\"type\":\"roost\"}]}",
		"{\"plugins\":[1]}",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct network_plugins p;
		struct err err = { "" };

		assert_true(network_plugins_read(bad[i], strlen(bad[i]), &p, &err) < 0);
		assert_true(err.text[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delegates_count_and_each_plugin_is_there_once),
		cmocka_unit_test(a_version_that_a_plugin_does_not_know_is_found),
		cmocka_unit_test(a_plugin_that_is_missing_or_silent_is_found),
		cmocka_unit_test(what_is_no_list_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
