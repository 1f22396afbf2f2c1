/* SPDX-License-Identifier: Apache-2.0 */
/* A record as a file in the operator's editor, and back. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/records/record_verbs.h"
#include "lib/json/json_comments.h"

static int write_file(struct json_object *object, char **ret_path, struct err *err)
{
	const char *folder = getenv("TMPDIR"), *text;
	AUTO(fclose) FILE *out = NULL;
	AUTO(free) char *path = NULL;
	int fd;

	if (asprintf(&path, "%s/roostctl-XXXXXX.json", folder && *folder ? folder : "/tmp") < 0)
		return -ENOMEM;
	fd = mkostemps(path, (int)strlen(".json"), O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	out = fdopen(fd, "w");
	text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY |
							      JSON_C_TO_STRING_SPACED |
							      JSON_C_TO_STRING_NOSLASHESCAPE);
	if (!out || !text)
		return -ENOMEM;
	if (fprintf(out, "%s\n", text) < 0 || fflush(out) != 0)
		return err_set(err, -EIO, "%s: %s", path, strerror(errno));
	*ret_path = TAKE(path);
	return 0;
}

/* By a shell, because EDITOR may have arguments. */
static int run_editor(char *path, struct err *err)
{
	char shell[] = "sh", flag[] = "-c", name[] = "roostctl",
	     script[] = "exec ${VISUAL:-${EDITOR:-vi}} \"$1\"";
	char *argv[] = { shell, flag, script, name, path, NULL };
	int status = 0, r;
	pid_t pid;

	r = posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ);
	if (r != 0)
		return err_set(err, -r, "/bin/sh: %s", strerror(r));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(err, -errno, "the editor: %s", strerror(errno));
	if (status != 0)
		return err_set(err, -ECANCELED, "not done: the editor failed");
	return 0;
}

static int read_file(const char *path, struct json_object **ret, struct err *err)
{
	AUTO(fclose) FILE *in = fopen(path, "re");
	AUTO(free) char *text = malloc(JSON_SIZE_MAX + 1);
	size_t len;
	int r;

	if (!in)
		return err_set(err, -EIO, "%s: %s", path, strerror(errno));
	if (!text)
		return -ENOMEM;
	len = fread(text, 1, JSON_SIZE_MAX + 1, in);
	r = json_blank_comments(text, len, err);
	return r < 0 ? r : json_parse(text, len, ret, err);
}

int editor_edit(struct json_object *object, struct json_object **ret, char **ret_path,
		struct err *err)
{
	int r = write_file(object, ret_path, err);

	r = r < 0 ? r : run_editor(*ret_path, err);
	return r < 0 ? r : read_file(*ret_path, ret, err);
}
