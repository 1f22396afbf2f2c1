/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ipam/attachments/leaks.h"

#define SECONDS(n) ((n)*1000000000LL)
#define NOW        SECONDS(5000)

static struct attachment attachment(const char *netns, const char *link)
{
	return (struct attachment){
		.netns = netns, .netns_inode = 77, .link = link, .state = ATTACHMENT_ATTACHED
	};
}

/* The verdict about a, while b is seen as it should be. */
static struct leak judge(const struct attachment *a, enum seen link, enum seen netns,
			 const char *other, int64_t now)
{
	const struct attachment b = attachment(other, "");
	const struct sighting s[] = { { a, link, netns, false },
				      { &b, SEEN_UNKNOWN, SEEN_SAME, false } };
	struct leak leaks[2];

	assert_int_equal(leaks_judge(s, 2, now, leaks), 0);
	assert_int_equal(leaks[1].verdict, LEAK_KEEP);
	return leaks[0];
}

static void evidence_must_be_seen_twice_and_apart(void **unused)
{
	struct attachment a = attachment("/run/netns/a", "");
	struct leak l;

	l = judge(&a, SEEN_UNKNOWN, SEEN_GONE, "/run/netns/b", NOW);
	assert_int_equal(l.verdict, LEAK_SUSPECT);
	assert_int_equal(l.suspected_since, NOW);
	a.suspected_since = l.suspected_since;
	l = judge(&a, SEEN_UNKNOWN, SEEN_GONE, "/run/netns/b", NOW + LEAK_APART - 1);
	assert_int_equal(l.verdict, LEAK_SUSPECT);
	assert_int_equal(l.suspected_since, NOW);
	l = judge(&a, SEEN_UNKNOWN, SEEN_GONE, "/run/netns/b", NOW + LEAK_APART);
	assert_int_equal(l.verdict, LEAK_RELEASE);
	assert_string_equal(l.reason, "its network namespace is gone");
}

static void one_look_without_evidence_starts_anew(void **unused)
{
	struct attachment a = attachment("/run/netns/a", "");
	struct leak l;

	a.suspected_since = NOW - SECONDS(1000);
	l = judge(&a, SEEN_UNKNOWN, SEEN_UNKNOWN, "/run/netns/b", NOW);
	assert_int_equal(l.verdict, LEAK_KEEP);
	assert_int_equal(l.suspected_since, 0);
	assert_string_equal(l.reason, "");
}

static void a_path_counts_only_where_others_are_seen(void **unused)
{
	struct attachment a = attachment("/run/netns/a", "");
	const struct sighting alone = { &a, SEEN_UNKNOWN, SEEN_GONE, false };
	const struct sighting told = { &a, SEEN_UNKNOWN, SEEN_GONE, true };
	struct leak l;

	a.suspected_since = 1;
	assert_int_equal(judge(&a, SEEN_UNKNOWN, SEEN_GONE, "/var/netns/b", NOW).verdict,
			 LEAK_KEEP);
	assert_int_equal(judge(&a, SEEN_UNKNOWN, SEEN_GONE, "/run/netns/x/b", NOW).verdict,
			 LEAK_KEEP);
	assert_int_equal(judge(&a, SEEN_UNKNOWN, SEEN_GONE, "/run/netns2/b", NOW).verdict,
			 LEAK_KEEP);
	leaks_judge(&alone, 1, NOW, &l);
	assert_int_equal(l.verdict, LEAK_KEEP);
	leaks_judge(&told, 1, NOW, &l);
	assert_int_equal(l.verdict, LEAK_RELEASE);
	assert_int_equal(leaks_judge(NULL, 0, NOW, NULL), 0);
}

static void another_inode_is_evidence_if_the_first_was_known(void **unused)
{
	struct attachment a = attachment("/run/netns/a", "");
	struct leak l;

	a.suspected_since = 1;
	l = judge(&a, SEEN_UNKNOWN, SEEN_OTHER, "/run/netns/b", NOW);
	assert_int_equal(l.verdict, LEAK_RELEASE);
	assert_string_equal(l.reason, "its network namespace is another one now");
	a.netns_inode = 0;
	assert_int_equal(judge(&a, SEEN_UNKNOWN, SEEN_OTHER, "/run/netns/b", NOW).verdict,
			 LEAK_KEEP);
}

static void paths_under_proc_are_never_evidence(void **unused)
{
	struct attachment a = attachment("/proc/123/ns/net", "");

	a.suspected_since = 1;
	assert_int_equal(judge(&a, SEEN_UNKNOWN, SEEN_GONE, "/proc/123/ns/b", NOW).verdict,
			 LEAK_KEEP);
	a.netns = "/host/proc/123/ns/net";
	assert_int_equal(judge(&a, SEEN_UNKNOWN, SEEN_OTHER, "/host/proc/123/ns/b", NOW).verdict,
			 LEAK_KEEP);
	a.netns = "";
	assert_int_equal(judge(&a, SEEN_UNKNOWN, SEEN_GONE, "", NOW).verdict, LEAK_KEEP);
}

static void a_link_counts_only_once_it_was_attached(void **unused)
{
	struct attachment a = attachment("/proc/1/ns/net", "roost0123456789");

	a.suspected_since = 1;
	assert_int_equal(judge(&a, SEEN_GONE, SEEN_UNKNOWN, "/x/b", NOW).verdict, LEAK_RELEASE);
	assert_string_equal(judge(&a, SEEN_GONE, SEEN_UNKNOWN, "/x/b", NOW).reason,
			    "its link is gone");
	assert_int_equal(judge(&a, SEEN_UNKNOWN, SEEN_UNKNOWN, "/x/b", NOW).verdict, LEAK_KEEP);
	assert_int_equal(judge(&a, SEEN_SAME, SEEN_UNKNOWN, "/x/b", NOW).verdict, LEAK_KEEP);
	a.state = ATTACHMENT_ASSIGNED;
	assert_int_equal(judge(&a, SEEN_GONE, SEEN_UNKNOWN, "/x/b", NOW).verdict, LEAK_KEEP);
	a = attachment("/proc/1/ns/net", "");
	a.suspected_since = 1;
	assert_int_equal(judge(&a, SEEN_GONE, SEEN_UNKNOWN, "/x/b", NOW).verdict, LEAK_KEEP);
}

static void what_is_being_released_is_left_to_who_does_it(void **unused)
{
	struct attachment a = attachment("/run/netns/a", "roost0123456789");

	a.suspected_since = 1;
	a.state = ATTACHMENT_RELEASING;
	assert_int_equal(judge(&a, SEEN_GONE, SEEN_GONE, "/run/netns/b", NOW).verdict, LEAK_KEEP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evidence_must_be_seen_twice_and_apart),
		cmocka_unit_test(one_look_without_evidence_starts_anew),
		cmocka_unit_test(a_path_counts_only_where_others_are_seen),
		cmocka_unit_test(another_inode_is_evidence_if_the_first_was_known),
		cmocka_unit_test(paths_under_proc_are_never_evidence),
		cmocka_unit_test(a_link_counts_only_once_it_was_attached),
		cmocka_unit_test(what_is_being_released_is_left_to_who_does_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
