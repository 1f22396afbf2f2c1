/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/cni_away.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/auto.h"
#include "lib/base/clock.h"
#include "lib/base/files.h"

struct world {
	char folder[32], socket[64];
	int dir;
};

static int make_world(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	snprintf(w->folder, sizeof(w->folder), "/tmp/roost-away-XXXXXX");
	if (!mkdtemp(w->folder))
		return -1;
	snprintf(w->socket, sizeof(w->socket), "%s/agent.sock", w->folder);
	w->dir = dir_open(w->folder);
	*state = w;
	return w->dir < 0 ? -1 : 0;
}

static int remove_world(void **state)
{
	struct world *w = *state;
	int r;

	unlink(w->socket);
	cni_away_over(w->socket);
	close(w->dir);
	r = rmdir(w->folder);
	free(w);
	return r;
}

static void listen_once(const struct world *w)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	AUTO(close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", w->socket);
	assert_int_equal(bind(fd, (const struct sockaddr *)&sa, sizeof(sa)), 0);
}

static void note(const struct world *w, const char *text)
{
	assert_int_equal(file_publish(w->dir, CNI_AWAY_FILE, 0600, text, strlen(text)), 0);
}

static void note_seconds_ago(const struct world *w, uint64_t seconds)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 "\n",
		 clock_boottime_ns() - seconds * UINT64_C(1000000000));
	note(w, text);
}

static void where_no_agent_was_nothing_is_waited_for(void **state)
{
	const struct world *w = *state;

	assert_false(cni_away_short(w->socket));
	assert_int_equal(faccessat(w->dir, CNI_AWAY_FILE, F_OK, 0), -1);
}

static void the_first_miss_counts(void **state)
{
	const struct world *w = *state;

	listen_once(w);
	assert_true(cni_away_short(w->socket));
	assert_int_equal(faccessat(w->dir, CNI_AWAY_FILE, F_OK, 0), 0);
	assert_true(cni_away_short(w->socket));
	note_seconds_ago(w, CNI_AWAY_S / 2);
	assert_true(cni_away_short(w->socket));
	note_seconds_ago(w, CNI_AWAY_S + 1);
	assert_false(cni_away_short(w->socket));
	cni_away_over(w->socket);
	assert_true(cni_away_short(w->socket));
}

static void a_note_without_sense_is_written_again(void **state)
{
	const struct world *w = *state;

	listen_once(w);
	note(w, "");
	assert_true(cni_away_short(w->socket));
	note(w, "junk");
	assert_true(cni_away_short(w->socket));
	/* From the future: another boot's, on a folder that survived it. */
	note(w, "18446744073709551615");
	assert_true(cni_away_short(w->socket));
	note_seconds_ago(w, CNI_AWAY_S + 1);
	assert_false(cni_away_short(w->socket));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(where_no_agent_was_nothing_is_waited_for,
						make_world, remove_world),
		cmocka_unit_test_setup_teardown(the_first_miss_counts, make_world, remove_world),
		cmocka_unit_test_setup_teardown(a_note_without_sense_is_written_again, make_world,
						remove_world),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
