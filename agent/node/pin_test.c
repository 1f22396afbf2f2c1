/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "agent/node/pin.h"

#define WHOLE                                                                                      \
	"{\"name\":\"n1\",\"boot\":\"b-1\",\"ipv4\":\"10.0.0.1/24\",\"ipv6\":\"fd00::1/64\","      \
	"\"routerId\":\"10.0.0.1\",\"reason\":\"10.0.0.1: configured\"}"

static char folder[] = "/tmp/roost-pin-XXXXXX";

static void what_is_written_is_read_again(void **unused)
{
	AUTO(free) char *text = NULL;
	struct identity id = { 0 };
	struct err err = { "" };

	if (pin_decode(WHOLE, strlen(WHOLE), &id, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(pin_encode(&id, &text), 0);
	assert_string_equal(text, WHOLE);
}

static void damaged(const char *text, const char *sentence)
{
	struct identity id = { .name = "kept" };
	struct err err = { "" };

	assert_int_equal(pin_decode(text, strlen(text), &id, &err), -EINVAL);
	assert_string_equal(err.text, sentence);
	assert_string_equal(id.name, "kept");
}

static void a_damaged_text_is_refused_with_its_place(void **unused)
{
	damaged("", "not a whole JSON object: ends at byte 0");
	damaged("{}", "field \"name\": is missing");
	damaged("{\"name\":\"n1\",\"boot\":\"b\",\"routerId\":\"10.0.0.1\"}",
		"it names no address");
	damaged("{\"name\":\"n1\",\"boot\":\"b\",\"routerId\":\"0.0.0.0\",\"ipv4\":\"10.0.0.1/"
		"24\"}",
		"field \"routerId\": 0.0.0.0 is none");
	damaged("{\"name\":\"n1\",\"boot\":\"b\",\"routerId\":\"10.0.0.1\",\"ipv4\":\"fd00::1/"
		"64\"}",
		"field \"ipv4\": \"fd00::1/64\" is not IPv4");
}

static struct identity of_boot(const char *boot)
{
	struct identity id = { .name = "n1", .machine = "m-1" };

	strcpy(id.boot, boot);
	return id;
}

static void put_file(const char *text)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, PIN_FILE);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void a_pin_of_this_boot_is_taken(void **unused)
{
	struct identity id = of_boot("b-1"), again = of_boot("b-1");
	struct err err = { "" };

	assert_int_equal(pin_read(folder, &id, &err), 0);
	assert_int_equal(prefix_parse_host("10.0.0.1/24", &id.ipv4), 0);
	id.router_id = id.ipv4.address;
	strcpy(id.reason, "because");
	if (pin_write(folder, &id, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(pin_read(folder, &again, &err), 1);
	assert_memory_equal(&again, &id, sizeof(id));
}

static void the_pinned_name_stays_when_another_is_asked_for(void **unused)
{
	struct identity id = of_boot("b-1");

	put_file(WHOLE);
	strcpy(id.name, "n2");
	assert_int_equal(pin_read(folder, &id, NULL), 1);
	assert_string_equal(id.name, "n1");
	assert_string_equal(id.machine, "m-1");
}

static void a_pin_of_another_boot_counts_as_absent(void **unused)
{
	struct identity id = of_boot("b-2");

	put_file(WHOLE);
	assert_int_equal(pin_read(folder, &id, NULL), 0);
	assert_int_equal(id.ipv4.address.family, 0);
}

static void a_damaged_file_is_told_and_can_be_written_anew(void **unused)
{
	struct identity id = of_boot("b-1");
	struct err err = { "" };
	char want[256];

	put_file("{\"name\":\"n1\",");
	assert_int_equal(pin_read(folder, &id, &err), -EINVAL);
	snprintf(want, sizeof(want), "%s/node is damaged: not a whole JSON object: ends at byte 13",
		 folder);
	assert_string_equal(err.text, want);
	assert_int_equal(pin_decode(WHOLE, strlen(WHOLE), &id, NULL), 0);
	assert_int_equal(pin_write(folder, &id, NULL), 0);
	assert_int_equal(pin_read(folder, &id, NULL), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(a_damaged_text_is_refused_with_its_place),
		cmocka_unit_test(a_pin_of_this_boot_is_taken),
		cmocka_unit_test(the_pinned_name_stays_when_another_is_asked_for),
		cmocka_unit_test(a_pin_of_another_boot_counts_as_absent),
		cmocka_unit_test(a_damaged_file_is_told_and_can_be_written_anew),
	};
	char path[64];
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(path, sizeof(path), "%s/%s", folder, PIN_FILE);
	unlink(path);
	rmdir(folder);
	return failed;
}
