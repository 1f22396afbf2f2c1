/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/attachments/local_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "ipam/attachments/attachment_file.h"
#include "lib/base/files.h"
#include "lib/json/tree.h"

#define ATTACHMENTS  "attachments"
#define BLOCKS       "blocks"
#define RECORDS      "records"
#define FILE_MAX     (64U * 1024U)
#define RECORDS_MAX  (8U * 1024U * 1024U)
#define FILE_MODE    0600
#define REMOVED_MASK (IN_DELETE | IN_MOVED_FROM)

struct local_copy {
	int run, attachments, blocks;
	sd_event *event;
	sd_event_source *watch, *watch_run, *watch_blocks;
	local_copy_tampered_fn *tampered;
	void *arg;
	uint64_t removed; /* by ourselves, not yet seen by inotify */
};

/* --- tampering ------------------------------------------------------------------------------ */

static int on_removed(sd_event_source *source, const struct inotify_event *e, void *arg)
{
	struct local_copy *c = arg;

	/* Temporary names come and go with every write. */
	if (e->len && e->name[0] == '.')
		return 0;
	if ((e->mask & IN_DELETE) && c->removed) {
		c->removed--;
		return 0;
	}
	c->tampered(c->arg);
	return 0;
}

/* A folder of which we hold a descriptor does not tell of its own end; the one above it does. */
static int on_folder_removed(sd_event_source *source, const struct inotify_event *e, void *arg)
{
	struct local_copy *c = arg;

	if (e->len && (strcmp(e->name, ATTACHMENTS) == 0 || strcmp(e->name, BLOCKS) == 0))
		c->tampered(c->arg);
	return 0;
}

/* We never remove one. */
static int on_network_removed(sd_event_source *source, const struct inotify_event *e, void *arg)
{
	struct local_copy *c = arg;

	c->tampered(c->arg);
	return 0;
}

static int watch_one(struct local_copy *c, int dir, sd_event_inotify_handler_t fn,
		     sd_event_source **ret)
{
	char path[64];
	int r;

	*ret = sd_event_source_disable_unref(*ret);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	r = sd_event_add_inotify(c->event, ret, path, REMOVED_MASK, fn, c);
	return r < 0 ? r : 0;
}

static int watch(struct local_copy *c)
{
	int r;

	c->removed = 0;
	if (!c->event || !c->tampered)
		return 0;
	r = watch_one(c, c->attachments, on_removed, &c->watch);
	r = r ?: watch_one(c, c->blocks, on_network_removed, &c->watch_blocks);
	return r ?: watch_one(c, c->run, on_folder_removed, &c->watch_run);
}

int local_copy_reopen(struct local_copy *c)
{
	int r;

	if (c->attachments >= 0)
		close(c->attachments);
	if (c->blocks >= 0)
		close(c->blocks);
	c->attachments = dir_open_at(c->run, ATTACHMENTS);
	c->blocks = dir_open_at(c->run, BLOCKS);
	r = c->attachments < 0 ? c->attachments : c->blocks < 0 ? c->blocks : 0;
	return r ?: watch(c);
}

int local_copy_open(const char *run_dir, sd_event *event, local_copy_tampered_fn *tampered,
		    void *arg, struct local_copy **ret, struct err *err)
{
	AUTO(local_copy_close) struct local_copy *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	*c = (struct local_copy){
		.run = -1,
		.attachments = -1,
		.blocks = -1,
		.event = sd_event_ref(event),
		.tampered = tampered,
		.arg = arg,
	};
	c->run = dir_open(run_dir);
	r = c->run < 0 ? c->run : local_copy_reopen(c);
	if (r < 0)
		return err_set(err, r, "%s: %s", run_dir, strerror(-r));
	*ret = TAKE(c);
	return 0;
}

void local_copy_close(struct local_copy *c)
{
	if (!c)
		return;
	sd_event_source_disable_unref(c->watch);
	sd_event_source_disable_unref(c->watch_run);
	sd_event_source_disable_unref(c->watch_blocks);
	sd_event_unref(c->event);
	if (c->attachments >= 0)
		close(c->attachments);
	if (c->blocks >= 0)
		close(c->blocks);
	if (c->run >= 0)
		close(c->run);
	free(c);
}

/* --- attachments ---------------------------------------------------------------------------- */

int local_copy_put_attachment(struct local_copy *c, const struct attachment *a)
{
	struct attachment_key key = attachment_key(a);
	char name[HASH_TEXT];
	AUTO(free) char *text = NULL;
	int r = attachment_encode(a, &text);

	return r
		       ?: file_publish(c->attachments, attachment_file_name(&key, name), FILE_MODE,
				       text, strlen(text));
}

int local_copy_remove_attachment(struct local_copy *c, const struct attachment_key *key)
{
	char name[HASH_TEXT];

	attachment_file_name(key, name);
	if (unlinkat(c->attachments, name, 0) < 0)
		return errno == ENOENT || errno == EISDIR ? 0 : -errno;
	c->removed += c->watch != NULL;
	return 0;
}

bool local_copy_has_attachment(struct local_copy *c, const struct attachment_key *key)
{
	char name[HASH_TEXT];
	struct stat st;

	return fstatat(c->attachments, attachment_file_name(key, name), &st, AT_SYMLINK_NOFOLLOW) ==
		       0 &&
	       S_ISREG(st.st_mode);
}

/* --- blocks --------------------------------------------------------------------------------- */

int local_copy_put_block(struct local_copy *c, const struct block_copy *block)
{
	AUTO(close) int folder = dir_open_at(c->blocks, block->network);
	struct tree t = tree_new();
	AUTO(free) char *text = NULL;
	char name[PREFIX_TEXT];
	int r;

	tree_text(&t, "pool", block->pool);
	tree_prefix(&t, "cidr", &block->cidr);
	/* Only what is set is written. */
	if (block->lost)
		tree_bool(&t, "lost", true);
	if (block->unrouted)
		tree_bool(&t, "unrouted", true);
	if (block->nat)
		tree_bool(&t, "natOutgoing", true);
	r = tree_end_text(&t, &text);
	r = folder < 0 ? folder : r;
	return r
		       ?: file_publish(folder, prefix_print_key(&block->block, name), FILE_MODE,
				       text, strlen(text));
}

int local_copy_remove_block(struct local_copy *c, const char *network, const struct prefix *block)
{
	AUTO(close) int folder = dir_open_at(c->blocks, network);
	char name[PREFIX_TEXT];

	return folder < 0 ? folder : file_remove(folder, prefix_print_key(block, name));
}

bool local_copy_has_block(struct local_copy *c, const char *network, const struct prefix *block)
{
	AUTO(close) int folder = dir_open_at(c->blocks, network);
	char name[PREFIX_TEXT];

	return folder >= 0 && faccessat(folder, prefix_print_key(block, name), F_OK, 0) == 0;
}

/* --- records -------------------------------------------------------------------------------- */

int local_copy_put_records(struct local_copy *c, const char *text)
{
	return file_publish(c->run, RECORDS, FILE_MODE, text, strlen(text));
}

int local_copy_get_records(struct local_copy *c, char **ret, size_t *ret_len)
{
	return file_read(c->run, RECORDS, RECORDS_MAX, ret, ret_len);
}

/* --- reading -------------------------------------------------------------------------------- */

struct reading {
	const struct local_copy_taker *taker;
	void *arg;
	const char *network;
};

static int damaged(struct reading *r, const char *folder, const char *file, const char *why)
{
	char path[NAME_MAX + 128];

	snprintf(path, sizeof(path), "%s/%s%s%s", folder, r->network ?: "", r->network ? "/" : "",
		 file);
	r->taker->damaged(path, why, r->arg);
	return 0;
}

static int read_attachment(int dir, const char *file, void *arg)
{
	AUTO(attachment_free) struct attachment *a = NULL;
	AUTO(free) char *text = NULL;
	struct reading *reading = arg;
	struct attachment_key key;
	struct err err = { "" };
	char name[HASH_TEXT];
	size_t len;
	int r = file_read(dir, file, FILE_MAX, &text, &len);

	if (r < 0)
		return damaged(reading, ATTACHMENTS, file, strerror(-r));
	r = attachment_decode(text, len, &a, &err);
	if (r < 0)
		return r == -ENOMEM ? r : damaged(reading, ATTACHMENTS, file, err.text);
	key = attachment_key(a);
	if (strcmp(attachment_file_name(&key, name), file) != 0)
		return damaged(reading, ATTACHMENTS, file,
			       "its content belongs under another name: it was copied or renamed");
	return reading->taker->attachment(TAKE(a), reading->arg);
}

static int decode_block(const char *text, size_t len, struct block_copy *ret, struct err *err)
{
	AUTO(json_put) struct json_object *o = NULL;
	const char *pool = "";
	struct json_at root;
	int r = json_parse(text, len, &o, err);

	if (r < 0)
		return r;
	root = json_root(o, err);
	r = json_read_text(json_need(&root, "pool"), NAME_TEXT - 1, &pool);
	if (r > 0)
		r = json_read_prefix(json_need(&root, "cidr"), &ret->cidr);
	if (r > 0)
		r = json_read_bool(json_member(&root, "lost"), &ret->lost);
	if (r >= 0)
		r = json_read_bool(json_member(&root, "unrouted"), &ret->unrouted);
	if (r >= 0)
		r = json_read_bool(json_member(&root, "natOutgoing"), &ret->nat);
	if (r < 0)
		return r;
	if (!prefix_contains_prefix(&ret->cidr, &ret->block))
		return err_set(err, -EINVAL, "the block does not lie in its pool");
	snprintf(ret->pool, sizeof(ret->pool), "%s", pool);
	return 0;
}

static int read_block(int dir, const char *file, void *arg)
{
	AUTO(free) char *text = NULL;
	struct reading *reading = arg;
	struct block_copy copy = { 0 };
	struct err err = { "" };
	size_t len;
	int r = file_read(dir, file, FILE_MAX, &text, &len);

	if (r < 0)
		return damaged(reading, BLOCKS, file, strerror(-r));
	if (prefix_parse_key(file, &copy.block) < 0)
		return damaged(reading, BLOCKS, file, "its name is not a block");
	r = decode_block(text, len, &copy, &err);
	if (r < 0)
		return r == -ENOMEM ? r : damaged(reading, BLOCKS, file, err.text);
	snprintf(copy.network, sizeof(copy.network), "%s", reading->network);
	return reading->taker->block(&copy, reading->arg);
}

static int read_network(int dir, const char *name, void *arg)
{
	struct reading reading = *(struct reading *)arg;
	AUTO(close) int folder = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (folder < 0)
		return damaged(&reading, BLOCKS, name, strerror(errno));
	if (strlen(name) >= NAME_TEXT)
		return damaged(&reading, BLOCKS, name, "its name is not a network");
	reading.network = name;
	return dir_each(folder, read_block, &reading);
}

int local_copy_read(struct local_copy *c, const struct local_copy_taker *taker, void *arg)
{
	struct reading reading = { taker, arg, NULL };
	int r = dir_each(c->attachments, read_attachment, &reading);

	return r ?: dir_each(c->blocks, read_network, &reading);
}
