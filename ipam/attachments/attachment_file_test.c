/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ipam/attachments/attachment_file.h"

#define KEY    "\"network\":\"pods\",\"container\":\"3f9c\",\"interface\":\"eth0\""
#define NEEDED "{\"version\":1," KEY ",\"assigned\":\"5\",\"state\":\"assigned\",\"addresses\":[]}"
#define WHOLE                                                                                      \
	"{\"version\":1," KEY                                                                      \
	",\"namespace\":\"prod\",\"pod\":\"web-1\",\"uid\":\"0b1c\",\"netns\":\"/run/netns/x\","   \
	"\"netnsInode\":\"4026532281\",\"link\":\"roost0123456789\",\"mac\":\"02:00:0a:01:00:"     \
	"05\","                                                                                    \
	"\"routeLocalnet\":true,\"reserved\":true,\"ipam\":\"roost-ipam\","                        \
	"\"assigned\":\"98765432109876\",\"state\":\"attached\",\"addresses\":[{\"address\":"      \
	"\"10.1.0.5\",\"length\":24,\"pool\":\"web\",\"network\":\"default\",\"gateway\":"         \
	"\"10.1.0.1\"},{\"address\":\"fd00::5\",\"length\":128,\"pool\":\"six\","                  \
	"\"network\":\"default\"}]}"

static struct attachment *decoded(const char *json)
{
	struct attachment *a = NULL;
	struct err err;

	if (attachment_decode(json, strlen(json), &a, &err) != 0)
		fail_msg("%s", err.text);
	return a;
}

static void round_trips(const char *json)
{
	AUTO(attachment_free) struct attachment *a = decoded(json), *b = NULL;
	AUTO(free) char *text = NULL;

	assert_int_equal(attachment_encode(a, &text), 0);
	assert_string_equal(text, json);
	b = attachment_copy(a);
	assert_non_null(b);
	assert_true(attachment_equal(a, b));
	b->addresses.n = 0;
	assert_true(a->addresses.n == 0 || !attachment_equal(a, b));
	b->addresses.n = a->addresses.n;
}

static void what_is_written_reads_the_same(void **unused)
{
	round_trips(WHOLE);
	round_trips(NEEDED);
}

static void a_copy_of_one_made_by_hand_has_no_null(void **unused)
{
	struct held_address held = { .address.family = AF_INET };
	const struct attachment like = { .container = "c", .addresses = { &held, 1 } };
	AUTO(attachment_free) struct attachment *a = attachment_copy(&like);

	assert_string_equal(a->network, "");
	assert_string_equal(a->link, "");
	assert_string_equal(a->addresses.v[0].pool, "");
}

static void refused(const char *json, const char *sentence)
{
	struct attachment *a = NULL;
	struct err err = { "" };

	assert_int_equal(attachment_decode(json, strlen(json), &a, &err), -EINVAL);
	assert_string_equal(err.text, sentence);
	assert_null(a);
}

static void a_damaged_file_is_refused_with_a_sentence(void **unused)
{
	refused("{\"version\":1", "not a whole JSON object: ends at byte 12");
	refused("{}", "field \"version\": is missing");
	refused("{\"version\":2," KEY "}", "field \"version\": 2 is not a version known here (1)");
	refused("{\"version\":1}", "field \"network\": is missing");
	refused("{\"version\":1," KEY "}", "field \"assigned\": is missing");
	refused("{\"version\":1," KEY ",\"assigned\":\"5\",\"state\":\"gone\",\"addresses\":[]}",
		"field \"state\": \"gone\" is not one of assigned, attached, releasing");
	refused("{\"version\":1," KEY
		",\"assigned\":\"18446744073709551615\",\"state\":\"attached\","
		"\"addresses\":[]}",
		"field \"assigned\": 18446744073709551615 is no time since the start");
	refused("{\"version\":1," KEY ",\"assigned\":\"5\",\"state\":\"assigned\",\"addresses\":[{"
		"\"address\":\"10.1.0.5\","
		"\"length\":33}]}",
		"field \"addresses[0].length\": 33 is more than 32");
	refused("{\"version\":1," KEY ",\"assigned\":\"5\",\"state\":\"assigned\",\"addresses\":[{"
		"\"address\":\"10.1.0.5\","
		"\"length\":32},{\"address\":\"10.1.0.5\",\"length\":24}]}",
		"field \"addresses[1]\": 10.1.0.5 is there twice");
	refused("{\"version\":1,\"network\":\"../x\"}",
		"field \"network\": is not a network's name: 1 to 1024 of A-Z, a-z, 0-9, '_', '.', "
		"'-', beginning with a letter or digit");
}

static void the_record_in_etcd_says_who_holds_the_address(void **unused)
{
	AUTO(attachment_free) struct attachment *a = decoded(WHOLE);
	struct address_record r = attachment_record(a, 1, "n1", "boot-1",
						    1700000000LL * 1000000000LL);
	AUTO(free) char *json = NULL;
	char text[ADDRESS_TEXT];

	assert_string_equal(r.node, "n1");
	assert_string_equal(r.network, "default");
	assert_string_equal(address_print(&r.address, text), "fd00::5");
	assert_int_equal(address_record_encode(&r, &json), 0);
	assert_string_equal(json,
			    "{\"container\":\"3f9c\",\"interface\":\"eth0\",\"pool\":\"six\","
			    "\"namespace\":\"prod\",\"pod\":\"web-1\",\"link\":\"roost0123456789\","
			    "\"netns\":\"/run/netns/x\",\"boot\":\"boot-1\",\"assigned\":"
			    "\"2023-11-16T01:39:25Z\",\"reserved\":true}");
}

static void the_file_name_follows_from_all_of_the_key(void **unused)
{
	const struct attachment_key keys[] = { { "pods", "3f9c", "eth0" },
					       { "pods", "3f9c", "eth1" },
					       { "pods", "3f9", "ceth0" },
					       { "pod", "s3f9c", "eth0" } };
	char names[4][HASH_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		attachment_file_name(&keys[i], names[i]);
		assert_int_equal(strspn(names[i], "0123456789abcdef"), 32);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(names[i], names[j]);
	}
}

static void states_have_names(void **unused)
{
	assert_string_equal(attachment_state_name(ATTACHMENT_ASSIGNED), "assigned");
	assert_string_equal(attachment_state_name(ATTACHMENT_ATTACHED), "attached");
	assert_string_equal(attachment_state_name(ATTACHMENT_RELEASING), "releasing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_reads_the_same),
		cmocka_unit_test(a_copy_of_one_made_by_hand_has_no_null),
		cmocka_unit_test(a_damaged_file_is_refused_with_a_sentence),
		cmocka_unit_test(the_record_in_etcd_says_who_holds_the_address),
		cmocka_unit_test(the_file_name_follows_from_all_of_the_key),
		cmocka_unit_test(states_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
