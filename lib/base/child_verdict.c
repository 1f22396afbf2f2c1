/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "lib/base/child.h"

static bool is_control(char c)
{
	return (unsigned char)c < ' ' || c == 127;
}

const char *child_words(const struct child_result *result, char *text, size_t room)
{
	size_t n = result->len, used = 0;

	while (n && strchr("\n\r\t ", result->output[n - 1]))
		n--;
	for (size_t i = 0; i < n && used + 3 < room; i++) {
		char c = result->output[i];

		if (c == '\n') {
			text[used++] = ';';
			text[used++] = ' ';
		} else {
			text[used++] = is_control(c) ? '?' : c;
		}
	}
	text[used] = '\0';
	return text;
}

int child_verdict(const struct child_result *result, struct err *err)
{
	char words[sizeof(err->text)];
	const char *colon;

	if (result->end == CHILD_EXITED && result->number == 0)
		return 0;
	child_words(result, words, sizeof(words));
	colon = words[0] ? ": " : "";
	switch (result->end) {
	case CHILD_TIMED_OUT:
		return err_set(err, -ETIMEDOUT, "still running after %g s%s%s",
			       result->timeout_ms / 1000.0, colon, words);
	case CHILD_SIGNALLED:
		return err_set(err, -EINVAL, "killed by SIG%s%s%s",
			       sigabbrev_np(result->number) ?: "?", colon, words);
	case CHILD_EXITED:
		break;
	}
	return err_set(err, -EINVAL, "exit %d%s%s", result->number, colon, words);
}
