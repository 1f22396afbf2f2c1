/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/command_text.h"

#include <errno.h>
#include <string.h>

int command_path_check(const char *text, struct err *err)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				  "/._-+:@%,=";
	char shown[SHOW_TEXT];

	if (text[strspn(text, set)] == '\0')
		return 0;
	return err_set(
		err, -EINVAL,
		"\"%s\" has characters that a shell might act on: give the command as a list "
		"of words",
		text_show(text, shown));
}

char *command_fill(const char *text, const char *path)
{
	size_t n = 0, len = strlen(path);
	const char *hole;
	char *ret, *to;

	for (hole = text; (hole = strstr(hole, "{}")); hole += 2)
		n++;
	ret = to = malloc(strlen(text) + n * len + 1);
	if (!ret)
		return NULL;
	for (; (hole = strstr(text, "{}")); text = hole + 2) {
		to = mempcpy(to, text, (size_t)(hole - text));
		to = mempcpy(to, path, len);
	}
	memcpy(to, text, strlen(text) + 1);
	return ret;
}
