/* SPDX-License-Identifier: Apache-2.0 */
#include "integration-tests/tools/json_lines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/auto.h"

void line_text(struct json_object *o, const char *name, const char *text)
{
	json_object_object_add(o, name, json_object_new_string(text));
}

void line_number(struct json_object *o, const char *name, int64_t n)
{
	json_object_object_add(o, name, json_object_new_int64(n));
}

void line_bool(struct json_object *o, const char *name, bool v)
{
	json_object_object_add(o, name, json_object_new_boolean(v));
}

void line_end(struct json_object *o)
{
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
						       JSON_C_TO_STRING_NOSLASHESCAPE));
	fflush(stdout);
	json_object_put(o);
}

const char *command_text(struct json_object *o, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) && v ? json_object_get_string(v) : NULL;
}

int64_t command_number(struct json_object *o, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) ? json_object_get_int64(v) : 0;
}

bool command_flag(struct json_object *o, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) && json_object_get_boolean(v);
}

/* getrusage() would count what the parent had before exec as well. */
int64_t peak_rss_kib(void)
{
	AUTO(fclose) FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM:", 6) == 0)
			kib = strtol(line + 6, NULL, 10);
	return kib;
}

struct lines {
	sd_event *event;
	struct json_stream *commands;
	json_stream_fn *fn;
	void *arg;
};

static int on_command(struct json_object *c, void *arg)
{
	const struct lines *l = arg;

	if (strcmp(command_text(c, "op") ?: "", "quit") == 0)
		return sd_event_exit(l->event, 0);
	return l->fn(c, l->arg);
}

static int on_stdin(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct lines *l = arg;
	struct err err = { "" };
	char buffer[65536];
	ssize_t n = read(fd, buffer, sizeof(buffer));

	if (n > 0 && json_stream_feed(l->commands, buffer, (size_t)n, &err) == 0)
		return 0;
	if (err.text[0])
		fprintf(stderr, "commands: %s\n", err.text);
	return sd_event_exit(l->event, n < 0 || err.text[0] ? -EBADMSG : 0);
}

int json_lines_run(sd_event *event, json_stream_fn *fn, void *arg)
{
	struct lines l = { .event = event, .fn = fn, .arg = arg };
	int r = json_stream_new(1 << 24, on_command, &l, &l.commands);

	r = r < 0 ? r : sd_event_add_io(event, NULL, STDIN_FILENO, EPOLLIN, on_stdin, &l);
	r = r < 0 ? r : sd_event_loop(event);
	json_stream_free(l.commands);
	return r;
}
