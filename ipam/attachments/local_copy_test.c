/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/attachments/local_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "ipam/attachments/attachment_file.h"
#include "lib/base/files.h"

struct bench {
	char dir[64];
	sd_event *event;
	struct local_copy *copy;
	unsigned attachments, blocks, damaged, tampered;
	struct block_copy last_block;
	char last_container[64], last_damage[512];
};

static void on_tampered(void *arg)
{
	((struct bench *)arg)->tampered++;
}

static void open_copy(struct bench *b)
{
	struct err err = { "" };

	assert_int_equal(local_copy_open(b->dir, b->event, on_tampered, b, &b->copy, &err), 0);
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	strcpy(b->dir, "/tmp/roost-copy-XXXXXX");
	if (!mkdtemp(b->dir) || sd_event_new(&b->event) < 0)
		return -1;
	open_copy(b);
	*state = b;
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	local_copy_close(b->copy);
	sd_event_unref(b->event);
	nftw(b->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	free(b);
	return 0;
}

static int take_attachment(struct attachment *a, void *arg)
{
	struct bench *b = arg;

	b->attachments++;
	snprintf(b->last_container, sizeof(b->last_container), "%s", a->container);
	attachment_free(a);
	return 0;
}

static int take_block(const struct block_copy *block, void *arg)
{
	struct bench *b = arg;

	b->blocks++;
	b->last_block = *block;
	return 0;
}

static void take_damage(const char *file, const char *why, void *arg)
{
	struct bench *b = arg;

	b->damaged++;
	snprintf(b->last_damage, sizeof(b->last_damage), "%s: %s", file, why);
}

static void read_all(struct bench *b)
{
	static const struct local_copy_taker taker = { take_attachment, take_block, take_damage };

	b->attachments = b->blocks = b->damaged = 0;
	assert_int_equal(local_copy_read(b->copy, &taker, b), 0);
}

static struct held_address held = { .length = 32, .pool = "web", .network = "default" };
static struct attachment example(const char *container)
{
	assert_int_equal(address_parse("10.1.0.5", &held.address), 0);
	return (struct attachment){
		.network = "pods",
		.container = container,
		.interface = "eth0",
		.namespace = "",
		.pod = "",
		.uid = "",
		.netns = "",
		.link = "",
		.ipam = "roost-ipam",
		.assigned = 1,
		.addresses = { &held, 1 },
	};
}

static void put(struct bench *b, const char *container)
{
	struct attachment a = example(container);

	assert_int_equal(local_copy_put_attachment(b->copy, &a), 0);
}

static void run_events(struct bench *b)
{
	while (sd_event_run(b->event, 20000) > 0)
		;
}

static void what_was_written_is_read_by_the_next_agent(void **state)
{
	struct bench *b = *state;
	struct block_copy block = { .network = "default", .pool = "web", .nat = true };

	prefix_parse("10.1.0.0/26", &block.block);
	prefix_parse("10.1.0.0/16", &block.cidr);
	put(b, "c1");
	assert_int_equal(local_copy_put_block(b->copy, &block), 0);
	assert_int_equal(local_copy_put_records(b->copy, "{}"), 0);
	local_copy_close(b->copy);
	open_copy(b);
	read_all(b);
	assert_int_equal(b->attachments, 1);
	assert_string_equal(b->last_container, "c1");
	assert_int_equal(b->blocks, 1);
	assert_string_equal(b->last_block.network, "default");
	assert_string_equal(b->last_block.pool, "web");
	assert_int_equal(prefix_compare(&b->last_block.cidr, &block.cidr), 0);
	assert_true(b->last_block.nat);
	assert_false(b->last_block.unrouted);
	assert_int_equal(b->damaged, 0);
	assert_int_equal(local_copy_remove_block(b->copy, "default", &block.block), 0);
	assert_false(local_copy_has_block(b->copy, "default", &block.block));
}

static void damaged_files_are_told_and_left(void **state)
{
	struct bench *b = *state;
	struct attachment a = example("c1");
	struct attachment_key key = attachment_key(&a);
	char name[HASH_TEXT], path[256], other[256];
	AUTO(close) int dir = -1;

	put(b, "c1");
	snprintf(path, sizeof(path), "%s/attachments", b->dir);
	dir = dir_open(path);
	assert_int_equal(file_publish(dir, attachment_file_name(&key, name), 0600, "{\"vers", 6),
			 0);
	read_all(b);
	assert_int_equal(b->attachments, 0);
	assert_int_equal(b->damaged, 1);
	assert_non_null(strstr(b->last_damage, name));
	/* A copy under another name would make one address two. */
	put(b, "c1");
	snprintf(path, sizeof(path), "%s/attachments/%s", b->dir, name);
	snprintf(other, sizeof(other), "%s/attachments/%s", b->dir,
		 "00000000000000000000000000000000");
	assert_int_equal(link(path, other), 0);
	read_all(b);
	assert_int_equal(b->attachments, 1);
	assert_int_equal(b->damaged, 1);
	assert_non_null(strstr(b->last_damage, "another name"));
}

static void our_own_changes_are_no_tampering(void **state)
{
	struct bench *b = *state;
	struct attachment a = example("c1");
	struct attachment_key key = attachment_key(&a);

	for (int i = 0; i < 3; i++) {
		put(b, "c1");
		put(b, "c1");
		assert_int_equal(local_copy_remove_attachment(b->copy, &key), 0);
		assert_int_equal(local_copy_remove_attachment(b->copy, &key), 0);
	}
	run_events(b);
	assert_int_equal(b->tampered, 0);
}

static void a_file_removed_by_somebody_is_noticed(void **state)
{
	struct bench *b = *state;
	struct attachment a = example("c1");
	struct attachment_key key = attachment_key(&a);
	char name[HASH_TEXT], path[256];

	put(b, "c1");
	run_events(b);
	snprintf(path, sizeof(path), "%s/attachments/%s", b->dir, attachment_file_name(&key, name));
	assert_int_equal(unlink(path), 0);
	run_events(b);
	assert_int_equal(b->tampered, 1);
	assert_false(local_copy_has_attachment(b->copy, &key));
}

static void a_folder_removed_by_somebody_is_noticed_and_made_again(void **state)
{
	struct bench *b = *state;
	char path[256];

	snprintf(path, sizeof(path), "%s/attachments", b->dir);
	assert_int_equal(rmdir(path), 0);
	run_events(b);
	assert_true(b->tampered > 0);
	assert_int_equal(local_copy_reopen(b->copy), 0);
	put(b, "c1");
	read_all(b);
	assert_int_equal(b->attachments, 1);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_was_written_is_read_by_the_next_agent),
		CASE(damaged_files_are_told_and_left),
		CASE(our_own_changes_are_no_tampering),
		CASE(a_file_removed_by_somebody_is_noticed),
		CASE(a_folder_removed_by_somebody_is_noticed_and_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
