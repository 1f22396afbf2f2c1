/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/cni_away.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/files.h"

#define NS_PER_S UINT64_C(1000000000)

/* The socket's folder, which is not made here; or -errno. */
static int open_folder(const char *socket)
{
	int fd, length = (int)(strrchr(socket, '/') - socket);
	char path[1040]; /* a checked path has at most 1023 bytes */

	snprintf(path, sizeof(path), "%.*s/", length, socket);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* 0: no note, or none that makes sense on this boot. */
static uint64_t read_note(int folder, uint64_t now)
{
	AUTO(free) char *text = NULL;
	uint64_t since = 0;
	char *end;
	size_t len;

	if (file_read(folder, CNI_AWAY_FILE, 64, &text, &len) < 0)
		return 0;
	since = strtoull(text, &end, 10);
	return end != text && since <= now ? since : 0;
}

bool cni_away_short(const char *socket)
{
	AUTO(close) int folder = open_folder(socket);
	uint64_t since, now = clock_boottime_ns();
	char text[32];
	struct stat st;

	if (folder < 0 || lstat(socket, &st) < 0 || !S_ISSOCK(st.st_mode))
		return false;
	since = read_note(folder, now);
	if (since)
		return now - since < CNI_AWAY_S * NS_PER_S;
	snprintf(text, sizeof(text), "%" PRIu64 "\n", now);
	/* Without a note the time would never pass. */
	return file_publish(folder, CNI_AWAY_FILE, 0600, text, strlen(text)) == 0;
}

void cni_away_over(const char *socket)
{
	AUTO(close) int folder = open_folder(socket);

	if (folder >= 0)
		file_remove(folder, CNI_AWAY_FILE);
}
