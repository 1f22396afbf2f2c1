/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes in the run directory.
 *
 * spool/: DELs that plugins left while no agent was there. Read at the start and whenever a note
 * appears. A note frees only what was assigned before it.
 *
 * released/: released addresses that etcd may still list. A DEL unlinks the attachment's file at
 * once and writes to etcd later; an agent that is killed in between would find a key of this boot
 * without a file, which otherwise means "in use by an unknown container". So each released address
 * leaves a note, the empty file released/<network>_<address>, until etcd has deleted its key. While
 * it is there, what etcd says of that address is old, and only a file makes it one in use. The note
 * stays for a minute more: a write that was repeated may lie in a stopped member of etcd, and bring
 * the key back after its deletion.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/addresses/ipam_state.h"
#include "lib/base/files.h"

#define NOTE_MAX     (64U * 1024U)
#define NAME_ROOM    (NAME_TEXT + ADDRESS_TEXT + 1)
#define KEEP_SECONDS 60

/* --- DELs ----------------------------------------------------------------------------------- */

static void take_note(struct ipam *m, const char *name, const struct release_request *note)
{
	struct attachment_key key = request_key(note);
	const struct attachment *a = allocator_find(m->allocator, &key);
	AUTO(json_put) struct json_object *released = json_object_new_array();
	struct tree t = { .object = released };
	struct err err = { "" };

	if (a && note->boottime && a->assigned >= note->boottime)
		log_info("ipam",
			 "spool/%s is older than the attachment that it names, and is ignored",
			 name);
	else if (ipam_drop(m, &key, &t, &err) < 0)
		log_error("ipam", "spool/%s: %s", name, err.text);
	else if (json_object_array_length(released))
		log_info("ipam", "a DEL left in the spool releases %s of container %s",
			 json_object_to_json_string_ext(released, JSON_C_TO_STRING_PLAIN),
			 key.container);
}

static int read_note(int dir, const char *name, void *arg)
{
	AUTO_DONE(release_request_done) struct release_request note = { 0 };
	AUTO(free) char *text = NULL;
	struct ipam *m = arg;
	struct err err = { "" };
	size_t len = strlen(name);
	int r;

	/* Being written, or none of ours. */
	if (len < 5 || strcmp(name + len - 5, ".json") != 0)
		return 0;
	r = file_read(dir, name, NOTE_MAX, &text, &len);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = release_request_decode(text, len, &note, &err);
	if (r < 0)
		log_error("ipam", "%s/spool/%s is invalid and is removed: %s", m->o.run_dir, name,
			  err.text[0] ? err.text : strerror(-r));
	else
		take_note(m, name, &note);
	r = file_remove(dir, name);
	if (r < 0)
		log_error("ipam", "%s/spool/%s cannot be removed: %s", m->o.run_dir, name,
			  strerror(-r));
	return 0;
}

static int on_note(sd_event_source *source, const struct inotify_event *event, void *arg)
{
	struct ipam *m = arg;
	int r = dir_each(m->spool_dir, read_note, m);

	if (r < 0)
		log_error("ipam", "%s/spool: %s", m->o.run_dir, strerror(-r));
	return 0;
}

int ipam_spool_start(struct ipam *m)
{
	char path[4096];
	int r;

	snprintf(path, sizeof(path), "%s/spool", m->o.run_dir);
	m->spool_dir = dir_open(path);
	if (m->spool_dir < 0)
		return m->spool_dir;
	/* Watched first, read then: a note that comes between is read twice, not missed. */
	r = sd_event_add_inotify(m->o.event, &m->spool, path, IN_MOVED_TO, on_note, m);
	return r < 0 ? r : dir_each(m->spool_dir, read_note, m);
}

void ipam_spool_done(struct ipam *m)
{
	sd_event_source_disable_unref(m->spool);
	if (m->spool_dir >= 0)
		close(m->spool_dir);
}

/* --- released addresses --------------------------------------------------------------------- */

static const char *name_of(const char *network, const struct address *address, char *text)
{
	char a[ADDRESS_TEXT];

	snprintf(text, NAME_ROOM, "%s_%s", network, address_print(address, a));
	return text;
}

int ipam_released_open(struct ipam *m)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/released", m->o.run_dir);
	fd = dir_open(path);
	if (fd < 0)
		return fd;
	ipam_released_close(m);
	m->released_dir = fd;
	return 0;
}

void ipam_released_close(struct ipam *m)
{
	if (m->released_dir >= 0)
		close(m->released_dir);
	m->released_dir = -1;
}

/* Without a note the address may be held for nobody after a crash, but is never given twice. */
void ipam_released_note(struct ipam *m, const struct attachment *a)
{
	char name[NAME_ROOM];
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->addresses.n; i++)
		if (a->addresses.v[i].network[0])
			r = file_publish(m->released_dir,
					 name_of(a->addresses.v[i].network,
						 &a->addresses.v[i].address, name),
					 0600, "", 0);
	if (r < 0)
		log_warning("ipam", "%s/released cannot be written: %s", m->o.run_dir,
			    strerror(-r));
}

bool ipam_released(const struct ipam *m, const char *network, const struct address *address)
{
	char name[NAME_ROOM];

	return faccessat(m->released_dir, name_of(network, address, name), F_OK, 0) == 0;
}

/* Whether etcd has heard of it, and long enough ago. */
static bool is_over(const struct ipam *m, int dir, const char *name, const char *network,
		    const struct address *address)
{
	char relative[KEY_TEXT], key[KEY_FULL_TEXT];
	struct stat st;

	if (fstatat(dir, name, &st, 0) < 0 || time(NULL) - st.st_mtim.tv_sec < KEEP_SECONDS)
		return false;
	return key_address(relative, m->o.node, network, address) < 0 ||
	       key_full(m->o.prefix, relative, key) < 0 || behind_told(m->behind, key);
}

static int look_at_note(int dir, const char *name, void *arg)
{
	const char *middle = strchr(name, '_');
	const struct ipam *m = arg;
	char network[NAME_TEXT];
	struct address address;

	if (!middle || middle - name >= NAME_TEXT || address_parse(middle + 1, &address) < 0)
		return file_remove(dir, name);
	snprintf(network, sizeof(network), "%.*s", (int)(middle - name), name);
	return is_over(m, dir, name, network, &address) ? file_remove(dir, name) : 0;
}

void ipam_released_sweep(struct ipam *m)
{
	int r = dir_each(m->released_dir, look_at_note, m);

	if (r < 0)
		log_warning("ipam", "%s/released: %s", m->o.run_dir, strerror(-r));
}
