/* SPDX-License-Identifier: Apache-2.0 */
/* cni_io and cni_spool: what touches pipes, files and namespaces. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/cni/cni_io.h"
#include "lib/cni/cni_spool.h"

static int file_of(size_t len)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	return fd;
}

static void input_is_read_to_its_end(void **unused)
{
	for (size_t len = 0; len <= CNI_INPUT_MAX; len = len ? len * 16 : 1) {
		struct deadline soon = deadline_in(10000);
		AUTO(close) int fd = file_of(len);
		AUTO(free) char *text = NULL;
		struct cni_error e = { 0 };
		size_t got = 7;

		assert_int_equal(cni_input_read(fd, &soon, &text, &got, &e), 0);
		assert_int_equal(got, len);
	}
}

static void input_has_an_end(void **unused)
{
	struct deadline soon = deadline_in(10000);
	AUTO(close) int fd = file_of(CNI_INPUT_MAX + 1);
	struct cni_error e = { 0 };
	char *text = NULL;
	size_t len;

	assert_int_equal(cni_input_read(fd, &soon, &text, &len, &e), -EINVAL);
	assert_int_equal(e.code, CNI_CODE_DECODE);
	assert_int_equal(cni_input_read(1000, &soon, &text, &len, &e), -EBADF);
	assert_int_equal(e.code, CNI_CODE_IO);
	assert_string_equal(e.msg.text,
			    "cannot read the network configuration from stdin: Bad file "
			    "descriptor");
}

static void input_without_an_end_is_given_up(void **unused)
{
	struct deadline soon = deadline_in(20);
	struct cni_error e = { 0 };
	char *text = NULL;
	size_t len;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "{}", 2), 2);
	assert_int_equal(cni_input_read(ends[0], &soon, &text, &len, &e), -EINVAL);
	assert_int_equal(e.code, CNI_CODE_IO);
	assert_non_null(strstr(e.msg.text, "on stdin is incomplete: 2 bytes were read"));
	close(ends[0]);
	close(ends[1]);
}

static void output_ends_its_line(void **unused)
{
	char got[16] = "";
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(cni_output_write(p[1], "{}"), 0);
	assert_int_equal(read(p[0], got, sizeof(got)), 3);
	assert_string_equal(got, "{}\n");
	close(p[0]);
	close(p[1]);
	assert_int_equal(cni_output_write(p[1], "{}"), -EBADF);
}

static void a_deadline_passes(void **unused)
{
	struct deadline past = deadline_in(0), future = deadline_in(60000);
	unsigned left = deadline_left(&future);

	assert_int_equal(deadline_left(&past), 0);
	assert_in_range(left, 1, 60000);
}

static void a_namespace_tells_what_its_interface_carries(void **unused)
{
	struct address v[3];

	address_parse("10.99.0.5", &v[0]);
	address_parse("fd00:99::5", &v[1]);
	address_parse("127.0.0.1", &v[2]);
	/* Not a namespace, or none at all. */
	assert_int_equal(cni_netns_carries("/nowhere", "lo", v, 3), 0);
	assert_int_equal(cni_netns_carries("/proc/self/status", "lo", v, 3),
			 geteuid() ? -EPERM : 0);
	if (geteuid() != 0)
		skip();
	assert_int_equal(cni_netns_carries("/proc/self/ns/net", "lo", v, 3), 1);
	assert_int_equal(cni_netns_carries("/proc/self/ns/net", "lo", v, 2), 0);
	assert_int_equal(cni_netns_carries("/proc/self/ns/net", "eth99", v, 3), 0);
}

/* --- the spool ------------------------------------------------------------------------------ */

/* In /run, with the file that root's agent leaves: a network configuration may name only such a folder. */
static char folder[] = "/run/cni_io_test-XXXXXX";

static void remove_all(const char *path)
{
	AUTO(closedir) DIR *d = opendir(path);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    unlinkat(dirfd(d), e->d_name, 0) < 0) {
			char inner[512];

			snprintf(inner, sizeof(inner), "%s/%s", path, e->d_name);
			remove_all(inner);
		}
	rmdir(path);
}

static int make_folder(void **unused)
{
	char lock[64];
	int fd;

	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(lock, sizeof(lock), "%s/agent.lock", folder);
	fd = open(lock, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 ? -1 : close(fd);
}

static int drop_folder(void **unused)
{
	remove_all(folder);
	return 0;
}

static mode_t mode_of(const char *path)
{
	struct stat st = { 0 };

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static const struct cni_env env = { .container = "c1", .ifname = "eth0" };

static void a_note_says_what_when_and_is_private(void **unused)
{
	char socket[128], spool[128], note[CNI_NOTE_NAME], path[256], text[256] = "", c[16], i[16],
								      n[16];
	struct cni_conf conf = { .name = "pods", .socket = socket };
	struct err err = { "" };
	uint64_t before = clock_boottime_ns(), in_name, in_text;
	AUTO(close) int at = -1;
	int pid;
	FILE *f;

	snprintf(socket, sizeof(socket), "%s/agent.sock", folder);
	snprintf(spool, sizeof(spool), "%s/spool", folder);
	assert_int_equal(cni_spool_release(&conf, &env, &at, note, &err), 0);
	assert_int_equal(mode_of(spool), 0700);
	snprintf(path, sizeof(path), "%s/%s", spool, note);
	assert_int_equal(mode_of(path), 0600);
	assert_int_equal(sscanf(note, "%lu-%d.json", &in_name, &pid), 2);
	assert_int_equal(pid, getpid());
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fread(text, 1, sizeof(text) - 1, f) > 0, 1);
	fclose(f);
	assert_int_equal(sscanf(text,
				"{\"network\":\"%15[a-z]\",\"container\":\"%15[a-z0-9]\","
				"\"interface\":\"%15[a-z0-9]\",\"boottime\":%lu}",
				n, c, i, &in_text),
			 4);
	assert_string_equal(n, "pods");
	assert_string_equal(c, "c1");
	assert_string_equal(i, "eth0");
	assert_true(in_text == in_name && before <= in_text && in_text <= clock_boottime_ns());
}

static void a_spool_that_cannot_be_is_told(void **unused)
{
	char socket[128], spool[128], note[CNI_NOTE_NAME], want[256];
	struct cni_conf conf = { .name = "pods", .socket = socket };
	struct err err = { "" };
	AUTO(close) int file = -1;
	int at = -1;

	snprintf(socket, sizeof(socket), "%s/agent.sock", folder);
	snprintf(spool, sizeof(spool), "%s/spool", folder);
	file = open(spool, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	assert_int_equal(cni_spool_release(&conf, &env, &at, note, &err), -ENOTDIR);
	snprintf(want, sizeof(want), "cannot open %s: Not a directory", spool);
	assert_string_equal(err.text, want);
	assert_int_equal(at, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input_is_read_to_its_end),
		cmocka_unit_test(input_has_an_end),
		cmocka_unit_test(input_without_an_end_is_given_up),
		cmocka_unit_test(output_ends_its_line),
		cmocka_unit_test(a_deadline_passes),
		cmocka_unit_test(a_namespace_tells_what_its_interface_carries),
		cmocka_unit_test_setup_teardown(a_note_says_what_when_and_is_private, make_folder,
						drop_folder),
		cmocka_unit_test_setup_teardown(a_spool_that_cannot_be_is_told, make_folder,
						drop_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
