/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/job.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <time.h>

#include "confd/bird_step.h"
#include "confd/command.h"
#include "confd/diff.h"
#include "confd/kept.h"
#include "confd/origin.h"
#include "confd/renderer.h"
#include "lib/base/log.h"
#include "lib/store/store_stats.h"

struct watched {
	struct job *job;
	struct store_watch *watch;
	bool in_sync;
	bool went_back; /* what is listed now is an older state, or another etcd's */
};

struct job {
	const struct job_context *context;
	struct resource resource;
	struct target_rules target;
	struct renderer *renderer;
	struct key_tree *tree;
	struct kept kept;
	struct origin origin; /* as it is on the disk */
	bool compared;        /* with that origin, once after the start */
	bool unknown;         /* it went back before the start: what was lost nobody knows */
	struct watched *watched;
	size_t n_watched;
	struct command *check, *reload;
	struct bird_step *bird;
	struct publish *publish;
	sd_event_source *retry, *soon;
	enum job_state state;
	struct err logged;
};

const struct resource *job_resource(const struct job *j)
{
	return &j->resource;
}

enum job_state job_state(const struct job *j)
{
	return j->state;
}

const char *job_reason(const struct job *j)
{
	return j->logged.text;
}

const struct publish_stats *job_stats(const struct job *j)
{
	return publish_stats(j->publish);
}

bool job_keeps(const struct job *j)
{
	return j->unknown || kept_count(&j->kept);
}

/* --- which etcd the file is from ------------------------------------------------------------ */

static void remember(struct job *j, const struct origin *origin)
{
	struct err err = { "" };

	j->origin = *origin;
	if (origin_write(j->context->state_dir, j->resource.name, origin, &err) < 0)
		log_warning("confd",
			    "%s: %s; if etcd is restored to an older state while roost-confd is "
			    "stopped, the file will not be kept",
			    j->resource.name, err.text);
}

/* Once for each publication: a revision that is older than it could be is enough to compare with.
 */
static void remember_now(struct job *j, bool published)
{
	struct store_stats now = { 0 };

	if (!j->context->store)
		return;
	store_stats(j->context->store, &now);
	if (now.cluster_id && (published || !j->origin.cluster ||
			       origin_went_back(&j->origin, now.cluster_id, now.revision)))
		remember(j, &(struct origin){ now.cluster_id, now.revision, false });
}

/* The first time that all keys are known. */
static void compare_origin(struct job *j)
{
	struct store_stats now = { 0 };
	struct err err = { "" };

	if (j->compared || j->context->dry_run)
		return;
	j->compared = true;
	store_stats(j->context->store, &now);
	if (origin_read(j->context->state_dir, j->resource.name, &j->origin, &err) < 0)
		log_warning("confd", "%s: %s; etcd's keys are taken as they are", j->resource.name,
			    err.text);
	if (!j->context->accept && now.cluster_id)
		j->unknown = origin_went_back(&j->origin, now.cluster_id, now.revision);
}

/* Also the next start shall know, whatever revision etcd has reached by then. */
static void remember_to_keep(struct job *j)
{
	struct origin origin = j->origin;

	if (!job_keeps(j) || origin.keeps || !origin.cluster || j->context->dry_run)
		return;
	origin.keeps = true;
	remember(j, &origin);
}

/* --- outcomes ------------------------------------------------------------------------------- */

static void went_wrong(struct job *j, const char *what, const char *why)
{
	struct err text = { "" };

	err_set(&text, 0, "%s%s%s", what, *why ? ": " : "", why);
	if (strcmp(text.text, j->logged.text) != 0)
		log_error("confd", "%s: %s", j->resource.name, text.text);
	j->logged = text;
	j->state = JOB_FAILED;
}

static void went_well(struct job *j, bool news)
{
	if (news)
		log_info("confd", "%s: %s is published", j->resource.name, j->resource.dest);
	else if (j->logged.text[0])
		log_info("confd", "%s: %s is up to date again", j->resource.name, j->resource.dest);
	j->logged.text[0] = '\0';
	j->state = JOB_GOOD;
}

static void try_later(struct job *j)
{
	/* Without the timer the next change or SIGHUP tries again. */
	(void)sd_event_source_set_time_relative(j->retry, JOB_RETRY_MS * 1000ULL);
	(void)sd_event_source_set_enabled(j->retry, SD_EVENT_ONESHOT);
}

/* Nothing may be published now. */
static bool is_held(const struct job *j)
{
	return !job_ready(j) || (job_keeps(j) && !j->context->dry_run);
}

static void on_told(const struct publish_outcome *o, void *arg)
{
	static const char *const words[] = {
		[PUBLISH_UNHEARD] = "is written, but not reloaded yet",
		[PUBLISH_UNRENDERED] = "cannot be rendered and is left unchanged",
		[PUBLISH_UNWRITABLE] = "cannot be written",
		[PUBLISH_REFUSED] = "is left unchanged, the check rejected the new one",
		[PUBLISH_NOT_RELOADED] = "was put back, the reload failed",
	};
	struct job *j = arg;
	char what[PATH_MAX + 80];

	/* render() held it back. */
	if (o->result == PUBLISH_UNRENDERED && is_held(j))
		return;
	switch (o->result) {
	case PUBLISH_NONE:
		return;
	case PUBLISH_UNCHANGED:
	case PUBLISH_DONE:
		went_well(j, o->result == PUBLISH_DONE);
		if (!is_held(j))
			remember_now(j, o->result == PUBLISH_DONE);
		break;
	case PUBLISH_UNHEARD:
		try_later(j);
		/* fall through */
	case PUBLISH_UNWRITABLE: /* publish itself tries these two again */
	case PUBLISH_NOT_RELOADED:
	case PUBLISH_UNRENDERED:
	case PUBLISH_REFUSED:
		snprintf(what, sizeof(what), "%s %s", j->resource.dest, words[o->result]);
		went_wrong(j, what, o->reason.text);
		break;
	}
	j->context->told(j, j->context->arg);
}

/* --- rendering ------------------------------------------------------------------------------ */

static int render_now(char **ret, size_t *ret_len, void *arg, struct err *err)
{
	AUTO(json_put) struct json_object *data = NULL;
	struct job *j = arg;
	const struct mustache_options o = { .html = j->resource.escape == ESCAPE_HTML,
					    .strict = j->resource.strict };
	int r = 0;

	if (j->context->data)
		data = json_object_get(j->context->data);
	else
		r = key_tree_json(j->tree, j->resource.prefix, &data);
	return r ?: renderer_run(j->renderer, data, &o, ret, ret_len, err);
}

static int render(char **ret, size_t *ret_len, void *arg, struct err *err)
{
	return is_held(arg) ? -EAGAIN : render_now(ret, ret_len, arg, err);
}

static int print_difference(struct job *j, const char *text, size_t len, struct err *err)
{
	AUTO_DONE(target_done) struct target t = { .dir = -1 };
	AUTO(free) char *shown = NULL;
	int r = target_open(&j->target, &t, err);
	struct diff_side before, after = { j->resource.dest, text, len };

	if (r < 0)
		return r;
	if (target_equals(&t, text, len))
		return 0;
	before = (struct diff_side){ t.exists ? j->resource.dest : "/dev/null", t.text ?: "",
				     t.len };
	r = diff_unified(&before, &after, &shown, err);
	if (r < 0)
		return r;
	if (t.exists && !shown[0])
		printf("mode or owner of %s would change\n", j->resource.dest);
	else
		fputs(shown, stdout);
	return 1;
}

static void dry_run(struct job *j)
{
	AUTO(free) char *text = NULL;
	struct err err = { "" };
	size_t len = 0;
	int r = render_now(&text, &len, j, &err);

	if (r == 0)
		r = print_difference(j, text, len, &err);
	if (r < 0)
		went_wrong(j, j->resource.dest, err.text[0] ? err.text : strerror(-r));
	else
		j->state = r > 0 ? JOB_DIFFERENT : JOB_GOOD;
	j->context->told(j, j->context->arg);
}

/* True: what etcd's keys give is what the file is, or there is no file to be kept. */
static bool is_as_it_was(struct job *j)
{
	AUTO_DONE(target_done) struct target t = { .dir = -1 };
	AUTO(free) char *text = NULL;
	struct err err = { "" };
	size_t len = 0;

	if (target_open(&j->target, &t, &err) < 0)
		return false;
	return !t.exists || (render_now(&text, &len, j, &err) == 0 && target_equals(&t, text, len));
}

static void keep(struct job *j)
{
	const char *name = j->resource.name;
	char what[PATH_MAX + 80];
	struct err why = { "" };

	if (is_as_it_was(j)) {
		j->unknown = false;
		kept_done(&j->kept);
		publish_changed(j->publish);
		return;
	}
	snprintf(what, sizeof(what), "%s is left unchanged", j->resource.dest);
	if (j->unknown)
		err_set(&why, 0,
			"etcd was restored, emptied or replaced since it was written; restore the "
			"keys, or accept them as they are: roost-confd --once --accept "
			"--resource %s",
			name);
	else
		err_set(&why, 0,
			"etcd was restored, emptied or replaced, and %zu keys such as %.100s are "
			"missing or older; write them again, or accept them as they are: "
			"roost-confd --once --accept --resource %s",
			kept_count(&j->kept), key_tree_any(j->kept.lost), name);
	went_wrong(j, what, why.text);
	/* Another process may have accepted them. */
	try_later(j);
	j->context->told(j, j->context->arg);
}

static int on_soon(sd_event_source *source, void *arg)
{
	struct job *j = arg;

	if (j->context->dry_run)
		dry_run(j);
	else if (job_ready(j) && job_keeps(j))
		keep(j);
	return 0;
}

static int on_retry(sd_event_source *source, uint64_t usec, void *arg)
{
	job_again(arg);
	return 0;
}

bool job_ready(const struct job *j)
{
	for (size_t i = 0; i < j->n_watched; i++)
		if (!j->watched[i].in_sync)
			return false;
	return true;
}

/* Never at once: callbacks of the store are no place for it. */
void job_again(struct job *j)
{
	if (!job_ready(j))
		return;
	if (j->publish && !job_keeps(j))
		publish_changed(j->publish);
	else
		(void)sd_event_source_set_enabled(j->soon, SD_EVENT_ONESHOT);
}

void job_went_back(struct job *j)
{
	for (size_t i = 0; i < j->n_watched; i++) {
		/* Before the first listing is complete nothing is known that could be lost. */
		j->watched[i].went_back = j->watched[i].in_sync || j->watched[i].went_back;
		j->watched[i].in_sync = false;
	}
}

/* --- keys ----------------------------------------------------------------------------------- */

static void on_put(const struct store_kv *kv, void *arg)
{
	struct watched *w = arg;
	struct job *j = w->job;
	int lost = kept_put(&j->kept, j->tree, w->went_back, kv->key, kv->value, kv->value_len);

	if (key_tree_put(j->tree, kv->key, kv->value, kv->value_len) < 0 || lost < 0)
		log_error("confd", "%s: out of memory for %s", j->resource.name, kv->key);
	job_again(j);
}

static void on_deleted(const char *key, int64_t revision, void *arg)
{
	struct watched *w = arg;
	struct job *j = w->job;

	if (kept_deleted(&j->kept, j->tree, w->went_back, key) < 0)
		log_error("confd", "%s: out of memory for %s", j->resource.name, key);
	key_tree_remove(j->tree, key);
	job_again(j);
}

static void on_in_sync(int64_t revision, void *arg)
{
	struct watched *w = arg;

	w->in_sync = true;
	w->went_back = false;
	if (job_ready(w->job)) {
		compare_origin(w->job);
		remember_to_keep(w->job);
	}
	job_again(w->job);
}

static int watch_one(struct job *j, const char *rest, bool whole_prefix)
{
	static const struct store_watch_handlers handlers = { on_put, on_deleted, on_in_sync };
	struct watched *w = &j->watched[j->n_watched++];
	AUTO(free) char *key = NULL;
	AUTO(free) char *end = NULL;

	w->job = j;
	if (asprintf(&key, "%s%s", j->resource.prefix, rest) < 0)
		return -ENOMEM;
	if (whole_prefix) {
		end = store_prefix_end(key);
		if (!end)
			return -ENOMEM;
	}
	return store_watch(j->context->store, key, end, &handlers, w, &w->watch);
}

static int watch_all(struct job *j)
{
	const struct resource *res = &j->resource;
	int r = 0;

	/* Never moved: each is the argument of a watch. */
	j->watched = calloc(res->keys.n + res->prefixes.n, sizeof(*j->watched));
	if (!j->watched)
		return -ENOMEM;
	for (size_t i = 0; i < res->keys.n && r == 0; i++)
		r = watch_one(j, res->keys.v[i], false);
	for (size_t i = 0; i < res->prefixes.n && r == 0; i++)
		r = watch_one(j, res->prefixes.v[i], true);
	return r;
}

/* --- making one ----------------------------------------------------------------------------- */

static bool is_number(const char *text, uint32_t *ret)
{
	size_t n = strspn(text, "0123456789");
	unsigned long long number = strtoull(text, NULL, 10);

	if (n == 0 || text[n] || n > 10 || number >= UINT32_MAX)
		return false;
	*ret = (uint32_t)number;
	return true;
}

static int find_owner(struct job *j, struct err *err)
{
	const struct resource *res = &j->resource;
	const struct passwd *user = NULL;
	const struct group *group = NULL;

	j->target = (struct target_rules){ res->dest, res->mode, (uid_t)-1, (gid_t)-1 };
	if (res->owner && !is_number(res->owner, &j->target.uid)) {
		user = getpwnam(res->owner);
		if (!user)
			return err_set(err, -EINVAL, "there is no user \"%s\"", res->owner);
		j->target.uid = user->pw_uid;
	}
	if (res->group && !is_number(res->group, &j->target.gid)) {
		group = getgrnam(res->group);
		if (!group)
			return err_set(err, -EINVAL, "there is no group \"%s\"", res->group);
		j->target.gid = group->gr_gid;
	}
	return 0;
}

static int make_commands(struct job *j, struct publish_options *o)
{
	struct resource *res = &j->resource;
	int r = 0;

	if (res->check.line || res->check.words.n) {
		r = command_new(j->context->event, &res->check, res->timeout_s * 1000, &j->check);
		if (r == 0)
			o->check = command_step(j->check);
	}
	if (r == 0 && (res->reload.line || res->reload.words.n)) {
		r = command_new(j->context->event, &res->reload, res->timeout_s * 1000, &j->reload);
		if (r == 0)
			o->reload = command_step(j->reload);
	}
	return r;
}

/* What was written while it did not run has not been heard of. */
static void on_bird(const struct bird_version *version, void *arg)
{
	struct job *j = arg;

	if (publish_last(j->publish)->result == PUBLISH_UNHEARD)
		job_again(j);
}

static int make_bird(struct job *j, struct publish_options *o)
{
	static const struct bird_control_handlers handlers = { .on_connected = on_bird };
	const struct bird_step_options bird = { .event = j->context->event,
						.socket = j->resource.bird,
						.handlers = &handlers,
						.arg = j };
	int r = j->resource.bird ? bird_step_new(&bird, &j->bird) : 0;

	if (!j->bird)
		return r;
	o->reload = bird_step_reload(j->bird);
	if (!o->check.start)
		o->check = bird_step_check(j->bird);
	return 0;
}

static int make_publish(struct job *j)
{
	sd_event *event = j->context->event;
	struct publish_options o = {
		.event = event,
		.target = j->target,
		.retry_reload = true,
		.render = render,
		.told = on_told,
		.arg = j,
	};
	int r = make_commands(j, &o);

	r = r ?: make_bird(j, &o);
	r = r ?: publish_new(&o, &j->publish);
	if (r < 0)
		return r;
	r = sd_event_add_time_relative(event, &j->retry, CLOCK_MONOTONIC, 0, 1000000, on_retry, j);
	return r < 0 ? r : sd_event_source_set_enabled(j->retry, SD_EVENT_OFF);
}

static int make_soon(struct job *j)
{
	int r = sd_event_add_defer(j->context->event, &j->soon, on_soon, j);

	return r < 0 ? r : sd_event_source_set_enabled(j->soon, SD_EVENT_OFF);
}

static int make(struct job *j, struct err *err)
{
	int r = find_owner(j, err);

	if (r < 0)
		return r;
	r = renderer_new(j->resource.source, j->context->template_dir, &j->renderer);
	r = r < 0 ? r : key_tree_new(&j->tree);
	r = r < 0 ? r : make_soon(j);
	r = r < 0 || j->context->dry_run ? r : make_publish(j);
	if (r >= 0 && j->context->store)
		r = watch_all(j);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

int job_new(const struct job_context *context, struct resource *resource, struct job **ret,
	    struct err *err)
{
	AUTO(job_free) struct job *j = calloc(1, sizeof(*j));
	struct resource taken = *resource;
	int r;

	if (!j)
		return err_set(err, -ENOMEM, "out of memory");
	j->context = context;
	j->resource = taken;
	if (!j->resource.prefix)
		j->resource.prefix = context->prefix;
	r = make(j, err);
	if (r < 0) {
		/* Still the caller's. */
		j->resource = (struct resource){ 0 };
		return r;
	}
	*resource = (struct resource){ 0 };
	if (!context->store)
		job_again(j);
	*ret = TAKE(j);
	return 0;
}

void job_free(struct job *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->n_watched; i++)
		if (j->watched[i].watch)
			store_unwatch(j->watched[i].watch);
	free(j->watched);
	publish_free(j->publish);
	command_free(j->check);
	command_free(j->reload);
	bird_step_free(j->bird);
	sd_event_source_disable_unref(j->retry);
	sd_event_source_disable_unref(j->soon);
	kept_done(&j->kept);
	key_tree_free(j->tree);
	renderer_free(j->renderer);
	resource_done(&j->resource);
	free(j);
}
