/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "lib/base/files.h"

static int wrong(const struct target *t, int r, const char *what, struct err *err)
{
	return err_set(err, r, "%s: %s: %s", t->rules.path, what, strerror(-r));
}

/* --- looking -------------------------------------------------------------------------------- */

static int name_files(struct target *t, struct err *err)
{
	const char *slash = strrchr(t->rules.path, '/');
	size_t n = slash ? strlen(slash + 1) : 0, longest = strlen(".before-roost");

	if (n == 0 || n + longest > NAME_MAX || strcmp(slash, "/.") == 0 ||
	    strcmp(slash, "/..") == 0)
		return err_set(err, -EINVAL, "%s cannot be the path of a file", t->rules.path);
	memcpy(t->base, slash + 1, n + 1);
	snprintf(t->candidate, sizeof(t->candidate), ".%.*s.new", (int)n, t->base);
	snprintf(t->previous, sizeof(t->previous), ".%.*s.previous", (int)n, t->base);
	snprintf(t->kept, sizeof(t->kept), "%.*s.before-roost", (int)n, t->base);
	return 0;
}

static int open_folder(struct target *t, struct err *err)
{
	size_t n = (size_t)(strrchr(t->rules.path, '/') - t->rules.path);
	char path[PATH_MAX];

	if (n >= sizeof(path))
		return err_set(err, -ENAMETOOLONG, "%s: the path is too long", t->rules.path);
	memcpy(path, t->rules.path, n);
	path[n] = '\0';
	t->dir = open(n ? path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return t->dir < 0
		       ? err_set(err, -errno, "%s: its folder: %s", t->rules.path, strerror(errno))
		       : 0;
}

static int look(struct target *t, struct err *err)
{
	int r;

	if (fstatat(t->dir, t->base, &t->st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : wrong(t, -errno, "cannot be looked at", err);
	if (S_ISLNK(t->st.st_mode))
		return err_set(err, -ELOOP,
			       "%s is a symbolic link and is not replaced: name the file itself",
			       t->rules.path);
	if (!S_ISREG(t->st.st_mode))
		return err_set(err, -EINVAL, "%s is not a regular file and is not replaced",
			       t->rules.path);
	r = file_read(t->dir, t->base, TARGET_SIZE_MAX, &t->text, &t->len);
	if (r < 0)
		return wrong(t, r, "cannot be read", err);
	t->exists = true;
	return 0;
}

int target_open(const struct target_rules *rules, struct target *ret, struct err *err)
{
	struct target t = { .rules = *rules, .dir = -1 };
	int r = name_files(&t, err);

	r = r ?: open_folder(&t, err);
	r = r ?: look(&t, err);
	if (r < 0) {
		target_done(&t);
		return r;
	}
	*ret = t;
	return 0;
}

void target_done(struct target *t)
{
	free(t->text);
	if (t->dir >= 0)
		close(t->dir);
	*t = (struct target){ .dir = -1 };
}

bool target_equals(const struct target *t, const char *text, size_t len)
{
	uid_t uid = t->rules.uid == (uid_t)-1 ? geteuid() : t->rules.uid;
	gid_t gid = t->rules.gid == (gid_t)-1 ? getegid() : t->rules.gid;

	return t->exists && t->len == len && memcmp(t->text, text, len) == 0 &&
	       (t->st.st_mode & 07777) == t->rules.mode && t->st.st_uid == uid &&
	       t->st.st_gid == gid;
}

static bool is_file(const struct target *t, const char *name)
{
	struct stat st;

	return fstatat(t->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

bool target_unsettled(const struct target *t)
{
	return is_file(t, t->previous);
}

const char *target_candidate_path(const struct target *t, char *text)
{
	int n = (int)(strrchr(t->rules.path, '/') - t->rules.path);

	snprintf(text, PATH_MAX, "%.*s/%s", n, t->rules.path, t->candidate);
	return text;
}

/* --- writing -------------------------------------------------------------------------------- */

static bool needs_sync(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) < 0 || (fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC);
}

static int fill(int fd, const char *text, size_t len, mode_t mode, uid_t uid, gid_t gid)
{
	int r = fd_write_all(fd, text, len);

	if (r < 0)
		return r;
	/* The owner before the mode, because a change of owner takes bits away; until then it is
	 * ours alone. */
	return fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0 ? -errno : 0;
}

/* -EEXIST if there is one: it may be somebody's. Not synced. */
static int write_new(int dir, const char *name, const char *text, size_t len,
		     const struct stat *like)
{
	AUTO(close)
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = fill(fd, text, len, like->st_mode & 07777, like->st_uid, like->st_gid);
	if (r < 0)
		unlinkat(dir, name, 0);
	return r;
}

static int sync_fd(int fd)
{
	return needs_sync(fd) && fsync(fd) < 0 ? -errno : 0;
}

static int sync_file(const struct target *t, const char *name)
{
	AUTO(close) int fd = openat(t->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : sync_fd(fd);
}

static int sync_folder(const struct target *t)
{
	return sync_fd(t->dir);
}

int target_write_candidate(const struct target *t, const char *text, size_t len, struct err *err)
{
	struct stat like = { .st_mode = t->rules.mode,
			     .st_uid = t->rules.uid,
			     .st_gid = t->rules.gid };
	int r = file_remove(t->dir, t->candidate);

	r = r ?: write_new(t->dir, t->candidate, text, len, &like);
	return r < 0 ? wrong(t, r, "the new content cannot be written", err) : 0;
}

int target_sync_candidate(const struct target *t, struct err *err)
{
	int r = sync_file(t, t->candidate);

	return r < 0 ? wrong(t, r, "the new content cannot be synced", err) : 0;
}

void target_drop_candidate(const struct target *t)
{
	file_remove(t->dir, t->candidate);
}

/* Under a second name, or as a copy where there are no hard links. One that is there stays. */
static int keep_as(const struct target *t, const char *name)
{
	int r;

	if (is_file(t, name) || linkat(t->dir, t->base, t->dir, name, 0) == 0)
		return 0;
	r = write_new(t->dir, name, t->text, t->len, &t->st);
	return r ?: sync_file(t, name);
}

int target_keep_foreign(const struct target *t, struct err *err)
{
	int r = t->exists ? keep_as(t, t->kept) : 0;

	r = r ?: sync_folder(t);
	return r < 0 ? err_set(err, r,
			       "%s was not made by roost and is not replaced: it cannot be kept as "
			       "%s: %s",
			       t->rules.path, t->kept, strerror(-r))
		     : 0;
}

static int keep_previous(const struct target *t)
{
	struct stat none = { .st_mode = 0, .st_uid = (uid_t)-1, .st_gid = (gid_t)-1 };

	if (t->exists)
		return keep_as(t, t->previous);
	return is_file(t, t->previous) ? 0 : write_new(t->dir, t->previous, "", 0, &none);
}

int target_swap(const struct target *t, bool settle_later, struct err *err)
{
	int r = settle_later ? keep_previous(t) : 0;

	if (r < 0)
		return wrong(t, r, "it cannot be kept until the reload is done", err);
	if (renameat(t->dir, t->candidate, t->dir, t->base) < 0)
		return wrong(t, -errno, "cannot be replaced", err);
	/* Where a reload follows it need not wait for the disk: after a crash either is a good one.
	 */
	r = settle_later ? 0 : sync_folder(t);
	return r < 0 ? wrong(t, r, "its folder cannot be synced", err) : 0;
}

/* --- afterwards ----------------------------------------------------------------------------- */

void target_settle(const struct target *t)
{
	file_remove(t->dir, t->previous);
	sync_folder(t);
}

int target_restore(const struct target *t, struct err *err)
{
	struct stat st;
	int r = 0;

	if (fstatat(t->dir, t->previous, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return wrong(t, -errno, "the previous one cannot be put back", err);
	if (st.st_size == 0 && (st.st_mode & 07777) == 0) {
		r = file_remove(t->dir, t->base);
		r = r ?: file_remove(t->dir, t->previous);
	} else if (renameat(t->dir, t->previous, t->dir, t->base) < 0) {
		r = -errno;
	}
	/* Of two names of one file rename() keeps both. */
	r = r ?: file_remove(t->dir, t->previous);
	r = r ?: sync_folder(t);
	return r < 0 ? wrong(t, r, "the previous one cannot be put back", err) : 0;
}
