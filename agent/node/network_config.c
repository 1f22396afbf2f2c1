/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/network_config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/node/network_plugins.h"
#include "lib/base/child.h"
#include "lib/base/files.h"

#define PART       "network-config"
#define FILE_MAX   (64U * 1024U)
#define DIRS_MAX   8 /* of plugins */
#define SETTLE_MS  500
#define ANSWER_MS  10000
#define OUR_PLUGIN "roost"

struct network_config {
	struct network_config_options options;
	struct timer look;
	char *dirs[DIRS_MAX + 1]; /* the configuration's first */
	size_t n_dirs;
	sd_event_source *watches[DIRS_MAX + 1];
	struct network_plugins plugins;
	struct child *child; /* NULL: nobody is asked */
	size_t asking;
	char *seen; /* of the files that the last verdict is about; NULL: none */
	char file[PATH_MAX];
};

/* --- files ---------------------------------------------------------------------------------- */

static int on_change(sd_event_source *source, const struct inotify_event *e, void *arg)
{
	struct network_config *c = arg;

	/* A folder that is gone can be watched again when it is back. */
	if (e->mask & IN_IGNORED)
		for (size_t i = 0; i < c->n_dirs; i++)
			if (c->watches[i] == source)
				c->watches[i] = sd_event_source_disable_unref(source);
	if (!e->len || e->name[0] != '.')
		timer_set(c->options.timers, &c->look, SETTLE_MS, SETTLE_MS);
	return 0;
}

static void watch(struct network_config *c)
{
	const uint32_t mask = IN_CLOSE_WRITE | IN_CREATE | IN_ATTRIB | IN_MOVED_TO | IN_MOVED_FROM |
			      IN_DELETE | IN_ONLYDIR;

	for (size_t i = 0; i < c->n_dirs; i++)
		if (!c->watches[i])
			sd_event_add_inotify(c->options.event, &c->watches[i], c->dirs[i], mask,
					     on_change, c);
}

static char *plugin_in(const char *dir, const char *type)
{
	char *path = NULL;

	if (asprintf(&path, "%s/%s", dir, type) < 0)
		return NULL;
	if (access(path, X_OK) == 0)
		return path;
	free(path);
	return NULL;
}

/*
 * The runtime looks in the folder in which our own plugin was installed; in the others too if it
 * has several.
 */
static char *find(const struct network_config *c, const char *type)
{
	char *path = NULL;

	for (size_t i = 1; !path && i < c->n_dirs; i++) {
		AUTO(free) char *ours = plugin_in(c->dirs[i], OUR_PLUGIN);

		if (ours)
			path = plugin_in(c->dirs[i], type);
	}
	for (size_t i = 1; !path && i < c->n_dirs; i++)
		path = plugin_in(c->dirs[i], type);
	return path;
}

/* What tells these files from others; NULL: out of memory. */
static char *describe(const struct network_plugins *p, const char *text)
{
	char *made = NULL;
	size_t len;
	FILE *f = open_memstream(&made, &len);

	if (!f)
		return NULL;
	fputs(text, f);
	for (size_t i = 0; i < p->n; i++) {
		struct stat st = { 0 };

		if (p->v[i].path && stat(p->v[i].path, &st) == 0)
			fprintf(f, "\n%s %ju %jd %jd.%ld", p->v[i].path, (uintmax_t)st.st_ino,
				(intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec,
				st.st_mtim.tv_nsec);
	}
	if (fclose(f) != 0)
		free(TAKE(made));
	return made;
}

/* --- one plugin after the other ------------------------------------------------------------- */

static void ask(struct network_config *c);

static void on_answer(const struct child_result *result, void *arg)
{
	struct network_config *c = arg;

	c->child = NULL;
	if (result->end == CHILD_EXITED && result->number == 0)
		c->plugins.v[c->asking].answer = strdup(result->output);
	c->asking++;
	ask(c);
}

static void tell(struct network_config *c)
{
	char folders[512] = "";
	struct err err = { "" };

	for (size_t i = 1; i < c->n_dirs; i++) {
		size_t n = strlen(folders);

		snprintf(folders + n, sizeof(folders) - n, "%s%s", n ? ", " : "", c->dirs[i]);
	}
	if (network_plugins_check(&c->plugins, c->file, folders, &err) < 0)
		health_set(c->options.health, PART, LOG_LEVEL_ERROR, "%s", err.text);
	else
		health_clear(c->options.health, PART);
	network_plugins_done(&c->plugins);
}

static void ask(struct network_config *c)
{
	while (c->asking < c->plugins.n && !c->plugins.v[c->asking].path)
		c->asking++;
	if (c->asking < c->plugins.n) {
		const char *argv[] = { "sh", "-c", "CNI_COMMAND=VERSION exec \"$0\" 2> /dev/null",
				       c->plugins.v[c->asking].path, NULL };
		const struct child_options o = {
			.argv = argv,
			.timeout_ms = ANSWER_MS,
			.on_done = on_answer,
			.arg = c,
		};

		if (child_start(c->options.event, &o, &c->child) == 0)
			return;
		/* No process to be had: says nothing of the plugins. The next look repeats it. */
		free(TAKE(c->seen));
		network_plugins_done(&c->plugins);
		return;
	}
	tell(c);
}

static void look(struct network_config *c)
{
	AUTO_DONE(network_plugins_done) struct network_plugins p = { 0 };
	AUTO(free) char *path = realpath(c->file, NULL), *text = NULL, *seen = NULL;
	struct err err = { "" };
	size_t len = 0;
	int r = path ? file_read(AT_FDCWD, path, FILE_MAX, &text, &len) : -errno;

	if (r == -ENOENT) {
		free(TAKE(c->seen));
		health_clear(c->options.health, PART);
		return;
	}
	if (r < 0)
		err_set(&err, r, "%s", strerror(-r));
	else
		r = network_plugins_read(text, len, &p, &err);
	if (r < 0) {
		free(TAKE(c->seen));
		health_set(c->options.health, PART, LOG_LEVEL_ERROR,
			   "%s is no network configuration that a runtime can use: %s; run "
			   "roost-install",
			   c->file, err.text);
		return;
	}
	for (size_t i = 0; i < p.n; i++)
		p.v[i].path = find(c, p.v[i].type);
	seen = describe(&p, text);
	if (!seen || (c->seen && strcmp(seen, c->seen) == 0))
		return;
	free(c->seen);
	c->seen = TAKE(seen);
	c->plugins = p;
	p = (struct network_plugins){ 0 };
	c->asking = 0;
	ask(c);
}

static void on_look(void *arg)
{
	struct network_config *c = arg;

	timer_set(c->options.timers, &c->look, c->child ? SETTLE_MS : 10ULL * c->options.minute,
		  c->options.minute);
	if (c->child)
		return;
	/* Before the look: what comes after it is an event. */
	watch(c);
	look(c);
}

/* --- life ----------------------------------------------------------------------------------- */

static int split(struct network_config *c)
{
	for (const char *p = c->options.bin_dirs; *p && c->n_dirs <= DIRS_MAX;) {
		size_t n = strcspn(p, ":");

		if (n && !(c->dirs[c->n_dirs++] = strndup(p, n)))
			return -ENOMEM;
		p += n + (p[n] == ':');
	}
	return 0;
}

int network_config_new(const struct network_config_options *options, struct network_config **ret)
{
	AUTO(network_config_free) struct network_config *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->options = *options;
	c->look = (struct timer){ .fn = on_look, .arg = c };
	c->dirs[c->n_dirs++] = strdup(options->conf_dir);
	if (!c->dirs[0] || split(c) < 0)
		return -ENOMEM;
	snprintf(c->file, sizeof(c->file), "%s/" NETWORK_CONFIG_FILE, options->conf_dir);
	/* Not within the start, which others wait for. */
	timer_set(c->options.timers, &c->look, 0, SETTLE_MS);
	*ret = TAKE(c);
	return 0;
}

void network_config_free(struct network_config *c)
{
	if (!c)
		return;
	child_cancel(c->child);
	timer_clear(c->options.timers, &c->look);
	for (size_t i = 0; i < c->n_dirs; i++) {
		sd_event_source_disable_unref(c->watches[i]);
		free(c->dirs[i]);
	}
	network_plugins_done(&c->plugins);
	free(c->seen);
	free(c);
}
