/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/cni_place.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/cni/cni_conf.h"

#define FOLDER_TEXT 1040 /* a checked path has at most 1023 bytes */

bool cni_place_is_of_run(const char *socket)
{
	const char *name;
	size_t n;

	if (strncmp(socket, "/var/run/", 9) == 0)
		socket += 4;
	if (strncmp(socket, "/run/", 5) != 0)
		return false;
	name = socket + 5;
	n = strcspn(name, "/");
	if (n == 0 || (n <= 2 && strncmp(name, "..", n) == 0))
		return false;
	return name[n] == '/' && name[n + 1] && !strchr(name + n + 1, '/');
}

/* Nobody but root can have made it, or can change it. */
static bool is_of_root(const struct stat *st)
{
	return (st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

static bool is_an_agents(const char *folder)
{
	AUTO(close) int fd = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && is_of_root(&st) &&
	       fstatat(fd, "agent.lock", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       is_of_root(&st);
}

int cni_place_check(const char *socket, struct err *err)
{
	char folder[FOLDER_TEXT];

	if (strcmp(socket, CNI_SOCKET_DEFAULT) == 0)
		return 0;
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(socket, '/') - socket), socket);
	if (cni_place_is_of_run(socket) && is_an_agents(folder))
		return 0;
	return err_set(
		err, -EPERM,
		"field \"socket\": %s is no socket of this node's agent: no agent has run in "
		"%s, or it is not a folder of /run that belongs to root; remove the field, or "
		"name agent.sock in the agent's --run-dir",
		socket, *folder ? folder : "/");
}
