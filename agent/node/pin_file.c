/* SPDX-License-Identifier: Apache-2.0 */
/* The thin part of the pin: the file itself. */
#include <errno.h>
#include <string.h>

#include "agent/node/pin.h"
#include "lib/base/files.h"

#define PIN_SIZE_MAX 4096

int pin_read(const char *run_dir, struct identity *id, struct err *err)
{
	AUTO(close) int dir = dir_open(run_dir);
	struct identity found = *id;
	AUTO(free) char *text = NULL;
	size_t len;
	int r = dir < 0 ? dir : file_read(dir, PIN_FILE, PIN_SIZE_MAX, &text, &len);

	if (r == -ENOENT)
		return 0;
	/* Neither a file nor a small one: it is not what we wrote. */
	if (r == -EFBIG || r == -ELOOP)
		r = -EINVAL;
	if (r < 0)
		return err_set(err, r, "%s/%s: %s", run_dir, PIN_FILE,
			       r == -EINVAL ? "is not the file we wrote" : strerror(-r));
	r = pin_decode(text, len, &found, err);
	if (r < 0)
		return err_wrap(err, r, "%s/%s is damaged", run_dir, PIN_FILE);
	if (strcmp(found.boot, id->boot) != 0)
		return 0;
	*id = found;
	return 1;
}

int pin_write(const char *run_dir, const struct identity *id, struct err *err)
{
	AUTO(close) int dir = dir_open(run_dir);
	AUTO(free) char *text = NULL;
	int r = dir < 0 ? dir : pin_encode(id, &text);

	if (r == 0)
		r = file_publish(dir, PIN_FILE, 0600, text, strlen(text));
	return r < 0 ? err_set(err, r, "%s/%s: %s", run_dir, PIN_FILE, strerror(-r)) : 0;
}
