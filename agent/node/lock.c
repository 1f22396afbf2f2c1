/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/files.h"

/* roost-install looks for an agent by taking the lock for an instant. */
#define TRIES       5
#define PAUSE_NS    (50 * 1000 * 1000L)
#define HOLDER_TEXT 64

int lock_owner_check(const char *path, const struct stat *st, uid_t self, struct err *err)
{
	if (st->st_uid != 0 && st->st_uid != self)
		return err_set(err, -EPERM,
			       "%s belongs to user %u, who could replace the agent's lock; chown "
			       "root %s",
			       path, (unsigned)st->st_uid, path);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, -EPERM,
			       "%s has mode %04o, so others could replace the agent's lock; chmod "
			       "go-w %s",
			       path, (unsigned)(st->st_mode & 07777), path);
	return 0;
}

/* Its inode; 0 if it cannot be had. */
static unsigned long namespace_of(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? 0 : (unsigned long)st.st_ino;
}

struct holder {
	int pid;
	unsigned long pid_space, net_space;
};

/* All zero if the file does not say it. */
static struct holder read_holder(int fd)
{
	char text[HOLDER_TEXT] = "";
	struct holder h = { 0 };

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0 ||
	    sscanf(text, "%d %lu %lu", &h.pid, &h.pid_space, &h.net_space) != 3)
		return (struct holder){ 0 };
	return h;
}

/* A number of another PID namespace means nothing here. */
static int busy(int fd, const char *path, struct err *err)
{
	const struct holder h = read_holder(fd);

	if (h.pid > 0 && h.pid_space == namespace_of("/proc/self/ns/pid"))
		return err_set(err, -EBUSY, "another agent, process %d, runs here (it holds %s)",
			       h.pid, path);
	return err_set(err, -EBUSY,
		       "another agent runs here (%s is held by a process that cannot be seen from "
		       "here)",
		       path);
}

static int write_holder(int fd)
{
	char text[HOLDER_TEXT];
	int n = snprintf(text, sizeof(text), "%d %lu %lu\n", (int)getpid(),
			 namespace_of("/proc/self/ns/pid"), namespace_of("/proc/self/ns/net"));

	return ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n ? -errno : 0;
}

static int try_lock(int fd)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	for (int i = 1;; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK || i == TRIES)
			return -errno;
		nanosleep(&pause, NULL);
	}
}

/* 1: the file was removed or replaced between its opening and the lock. */
static int hold(int dir, const char *name, const char *path, int *ret_fd, struct err *err)
{
	const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	AUTO(close) int fd = openat(dir, name, flags, 0600);
	struct stat st, now;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s is not a file", path);
	r = lock_owner_check(path, &st, geteuid(), err);
	if (r < 0)
		return r;
	r = try_lock(fd);
	if (r == -EWOULDBLOCK)
		return busy(fd, path, err);
	if (r < 0)
		return err_set(err, r, "%s cannot be locked: %s", path, strerror(-r));
	if (fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) < 0 || now.st_ino != st.st_ino ||
	    now.st_dev != st.st_dev)
		return 1;
	r = write_holder(fd);
	if (r < 0)
		return err_set(err, r, "%s cannot be written: %s", path, strerror(-r));
	*ret_fd = fd;
	fd = -1; /* NOLINT(clang-analyzer-deadcode.DeadStores): else it would be closed here */
	return 0;
}

static int take_in(const char *dir_path, const char *name, int *ret_fd, struct err *err)
{
	AUTO(close) int dir = dir_open(dir_path);
	char path[PATH_MAX];
	struct stat st;
	int r;

	if (dir < 0)
		return err_set(err, dir, "%s: %s", dir_path, strerror(-dir));
	if (fstat(dir, &st) < 0)
		return err_set(err, -errno, "%s: %s", dir_path, strerror(errno));
	r = lock_owner_check(dir_path, &st, geteuid(), err);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/%s", dir_path, name);
	for (int i = 0; i < TRIES; i++) {
		r = hold(dir, name, path, ret_fd, err);
		if (r <= 0)
			return r;
	}
	return err_set(err, -EBUSY, "%s is replaced again and again", path);
}

static bool same_dir(const char *a, const char *b)
{
	struct stat sa, sb;

	return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

int lock_take(const char *run_dir, const char *common_dir, struct lock *ret, struct err *err)
{
	const char *common = common_dir ?: LOCK_COMMON_DIR;
	struct lock lock = LOCK_NONE;
	char name[sizeof("agent-net-.lock") + 20];
	int r = take_in(run_dir, LOCK_FILE, &lock.run, err);

	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "agent-net-%lu.lock", namespace_of("/proc/self/ns/net"));
	r = take_in(common, name, &lock.net, err);
	if (r < 0 && (r == -EBUSY || same_dir(run_dir, common))) {
		lock_drop(&lock);
		return r;
	}
	if (r < 0 && err)
		err->text[0] = '\0';
	*ret = lock;
	return 0;
}

void lock_drop(struct lock *lock)
{
	if (lock->net >= 0)
		close(lock->net);
	if (lock->run >= 0)
		close(lock->run);
	*lock = (struct lock)LOCK_NONE;
}

bool lock_is_held_here(const char *run_dir)
{
	char path[PATH_MAX];
	AUTO(close) int fd = -1;

	snprintf(path, sizeof(path), "%s/" LOCK_FILE, run_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK &&
	       read_holder(fd).net_space == namespace_of("/proc/self/ns/net");
}
