/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool: DELs that plugins left while no agent was there. Read at the start
 * and whenever a note appears. A note frees only what was assigned before it.
 */
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>

#include "agent/addresses/ipam_parts.h"
#include "ipam/attachments/request.h"
#include "lib/base/files.h"

#define NOTE_MAX (64U * 1024U)

static void take_note(struct ipam *m, const char *name, const struct release_request *note)
{
	struct attachment_key key = release_request_key(note);
	const struct attachment *a = allocator_find(m->allocator, &key);
	AUTO(json_put) struct json_object *released = NULL;
	struct err err = { "" };

	if (a && note->boottime && a->assigned >= note->boottime) {
		log_info("ipam", "spool/%s is older than what it would release and is dropped",
			 name);
		return;
	}
	released = ipam_drop(m, &key, &err);
	if (!released)
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
		log_error("ipam", "%s/spool/%s is not understood and removed: %s", m->o.run_dir,
			  name, err.text[0] ? err.text : strerror(-r));
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
