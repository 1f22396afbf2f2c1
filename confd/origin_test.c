/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "confd/origin.h"
#include "lib/base/files.h"

static char folder[64];

static int set_up(void **unused)
{
	snprintf(folder, sizeof(folder), "/tmp/roost-origin-XXXXXX");
	return !mkdtemp(folder);
}

static int tear_down(void **unused)
{
	char line[128];

	snprintf(line, sizeof(line), "rm -r %s", folder);
	return system(line);
}

static void expect(uint64_t cluster, int64_t revision, bool keeps)
{
	struct origin o = { 1, 1, true };
	struct err err = { "" };

	assert_int_equal(origin_read(folder, "web", &o, &err), 0);
	assert_int_equal(o.cluster, cluster);
	assert_int_equal(o.revision, revision);
	assert_int_equal(o.keeps, keeps);
}

static void what_was_written_is_read(void **unused)
{
	struct err err = { "" };

	expect(0, 0, false);
	assert_int_equal(
		origin_write(folder, "web", &(struct origin){ UINT64_MAX, 42, true }, &err), 0);
	expect(UINT64_MAX, 42, true);
	assert_int_equal(origin_write(folder, "web", &(struct origin){ 7, INT64_MAX, false }, &err),
			 0);
	expect(7, INT64_MAX, false);
}

static void damage_is_told_and_nothing_is_taken_from_it(void **unused)
{
	static const char *const texts[] = {
		"",
		"cluster 0000000000000007 revision 42",
		"cluster 0000000000000007 revision 42 kept\n",
		"cluster 0000000000000000 revision 42\n",
		"cluster 7 revision 42\n",
		"cluster 0000000000000007 revision 42\nmore\n",
	};
	AUTO(close) int dir = dir_open(folder);
	struct origin o = { 1, 1, false };
	struct err err = { "" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_int_equal(file_publish(dir, "web", 0600, texts[i], strlen(texts[i])), 0);
		assert_int_equal(origin_read(folder, "web", &o, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "/web is damaged"));
	}
	assert_int_equal(o.cluster, 1);
}

static void another_cluster_or_a_lower_revision_went_back(void **unused)
{
	const struct origin none = { 0 }, o = { 7, 42, false }, keeps = { 7, 42, true };

	assert_false(origin_went_back(&none, 7, 1));
	assert_false(origin_went_back(&o, 7, 42));
	assert_false(origin_went_back(&o, 7, 43));
	assert_true(origin_went_back(&o, 7, 41));
	assert_true(origin_went_back(&o, 8, 43));
	assert_true(origin_went_back(&keeps, 7, 43));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(damage_is_told_and_nothing_is_taken_from_it),
		cmocka_unit_test(another_cluster_or_a_lower_revision_went_back),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
