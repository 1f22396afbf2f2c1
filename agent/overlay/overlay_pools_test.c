/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/overlay/overlay_pools.h"
#include "lib/store/fake_time.h"

static struct {
	struct store *store;
	struct fake_time time;
	struct health *health;
	struct records *records;
	struct overlay_pools pools;
	char text[512];
} w;

static void quiet_sink(const struct log_record *record)
{
}

static void ignore(const struct record_event *e, void *arg)
{
}

static int fresh(void **state)
{
	struct record_want *want;

	log_set_sink(quiet_sink);
	memset(&w, 0, sizeof(w));
	w.time = FAKE_TIME;
	w.store = store_fake_new();
	if (health_new(NULL, NULL, &w.health) < 0)
		return -1;
	if (records_new(&(struct records_options){ .store = w.store,
						   .timers = &w.time.base,
						   .health = w.health,
						   .prefix = "/roost/v1/",
						   .node = "n1",
						   .minute = 60000 },
			&w.records) < 0 ||
	    records_want(w.records, KEYS_POOL, ignore, NULL, &want) < 0)
		return -1;
	return records_want(w.records, KEYS_EXTENT, ignore, NULL, &want);
}

static int done(void **state)
{
	overlay_pools_done(&w.pools);
	records_free(w.records);
	store_free(w.store);
	health_free(w.health);
	log_set_sink(log_to_stderr);
	return 0;
}

static void put(const char *key, const char *value)
{
	char full[KEY_FULL_TEXT];

	assert_int_equal(key_full("/roost/v1/", key, full), 0);
	if (value)
		store_fake_put(w.store, full, value);
	else
		store_fake_delete(w.store, full, NULL);
	fake_time_pass(&w.time, w.store, 0);
}

/* "six v6 vxlan, web cross" */
static const char *learned(void)
{
	size_t len = 0;

	assert_int_equal(overlay_pools_learn(&w.pools, w.records), 0);
	w.text[0] = '\0';
	for (size_t i = 0; i < w.pools.n; i++) {
		const struct overlay_pool *p = &w.pools.v[i];

		len += (size_t)snprintf(w.text + len, sizeof(w.text) - len, "%s%s%s %s",
					i ? ", " : "", p->name, p->family == AF_INET6 ? " v6" : "",
					p->encapsulation == ENCAPSULATION_VXLAN ? "vxlan"
										: "cross");
	}
	return w.text;
}

#define WEB   "{\"cidr\":\"10.1.0.0/16\",\"encapsulation\":\"vxlan\"}"
#define CROSS "{\"cidr\":\"10.1.0.0/16\",\"encapsulation\":\"vxlan-cross-subnet\"}"
#define SIX   "{\"cidr\":\"fd00::/108\",\"encapsulation\":\"vxlan\"}"
#define PLAIN "{\"cidr\":\"10.1.0.0/16\"}"
#define CUT   "{\"cidr\":\"10.1.0.0/16\",\"blockSize\":26}"

static void a_pool_is_in_while_its_record_says_so(void **unused)
{
	put("pool/web", WEB);
	put("pool/six", SIX);
	put("pool/plain", "{\"cidr\":\"10.2.0.0/16\"}");
	put("pool/lan",
	    "{\"cidr\":\"10.3.0.0/16\",\"network\":\"lan\",\"encapsulation\":\"vxlan\"}");
	assert_string_equal(learned(), "six v6 vxlan, web vxlan");
	put("pool/web", CROSS);
	assert_string_equal(learned(), "six v6 vxlan, web cross");
	/* The edit counts, though there are blocks. */
	put("extent/default/web", CUT);
	put("pool/web", PLAIN);
	assert_string_equal(learned(), "six v6 vxlan");
}

static void one_that_vanishes_stays_while_its_extent_stands(void **unused)
{
	put("pool/web", CROSS);
	put("pool/six", SIX);
	put("extent/default/web", CUT);
	learned();
	put("pool/web", NULL);
	put("pool/six", NULL);
	assert_string_equal(learned(), "web cross");
	put("extent/default/web", NULL);
	fake_time_pass(&w.time, w.store, 20);
	assert_string_equal(learned(), "");
}

static void the_file_brings_it_back(void **unused)
{
	AUTO(free) char *text = NULL;
	struct overlay_pools read = { 0 };

	put("pool/web", CROSS);
	put("pool/six", SIX);
	learned();
	assert_int_equal(overlay_pools_encode(&w.pools, &text), 0);
	assert_string_equal(
		text,
		"{\"pools\":[{\"name\":\"six\",\"network\":\"default\",\"encapsulation\":\"vxlan\","
		"\"ipv6\":true},{\"name\":\"web\",\"network\":\"default\","
		"\"encapsulation\":\"vxlan-cross-subnet\",\"announce\":true}]}");
	assert_int_equal(overlay_pools_decode(text, strlen(text), &read, NULL), 0);
	assert_true(overlay_pools_equal(&w.pools, &read));
	read.v[0].encapsulation = ENCAPSULATION_VXLAN_CROSS_SUBNET;
	assert_false(overlay_pools_equal(&w.pools, &read));
	overlay_pools_done(&read);
}

static void a_damaged_file_is_refused_with_a_sentence(void **unused)
{
	static const char *const wrong[] = {
		"",
		"[]",
		"{}",
		"{\"pools\":[{}]}",
		"{\"pools\":[{\"name\":\"A\",\"network\":\"default\",\"encapsulation\":\"vxlan\"}]"
		"}",
		"{\"pools\":[{\"name\":\"a\",\"network\":\"default\",\"encapsulation\":\"x\"}]}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct overlay_pools read = { 0 };
		struct err err = { "" };

		assert_int_equal(overlay_pools_decode(wrong[i], strlen(wrong[i]), &read, &err),
				 -EINVAL);
		assert_true(err.text[0]);
		assert_null(read.v);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, fresh, done)
int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_pool_is_in_while_its_record_says_so),
		CASE(one_that_vanishes_stays_while_its_extent_stands),
		CASE(the_file_brings_it_back),
		CASE(a_damaged_file_is_refused_with_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
