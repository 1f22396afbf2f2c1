/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaks: attachments whose pod is gone though nobody sent a DEL.
 *
 *   attachments -> (agent looks at links and paths) -> sightings -> [leaks_judge] -> verdicts
 *
 * Pure. Evidence is: the host link of an attached one gone from our own namespace;
 * or the netns path gone, or another inode there, in a directory where we see the
 * netns of another attachment as it was written down (else we may just not see
 * that directory). A path under /proc is never evidence: processes end before
 * their namespaces do. Evidence counts when it is seen twice, LEAK_APART or more
 * apart, and at no look in between was it absent. In doubt: in use.
 */
#pragma once

#include "ipam/attachments/attachments.h"

#define LEAK_APART (120LL * 1000000000LL)

/* SEEN_UNKNOWN also for any error but ENOENT: it proves nothing. */
enum seen { SEEN_UNKNOWN, SEEN_SAME, SEEN_GONE, SEEN_OTHER };

struct sighting {
	const struct attachment *attachment;
	enum seen link;  /* SAME or GONE; OTHER is not used */
	enum seen netns; /* OTHER: the path is there with another inode */
	bool others;     /* the caller itself saw other namespaces in the directory of netns */
};

enum leak_verdict { LEAK_KEEP, LEAK_SUSPECT, LEAK_RELEASE };

struct leak {
	enum leak_verdict verdict;
	int64_t suspected_since; /* for allocator_set_suspected(); 0 with KEEP */
	const char *reason;      /* "its link is gone", ... ; "" with KEEP */
};

/* leaks[i] is about sightings[i]. 0 or -ENOMEM. */
int leaks_judge(const struct sighting *sightings, size_t n, int64_t now, struct leak *leaks);
