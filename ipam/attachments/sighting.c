/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/attachments/sighting.h"

#include <errno.h>
#include <net/if.h>
#include <sys/stat.h>

static enum seen look_at_netns(const struct attachment *a)
{
	struct stat st;

	if (!a->netns[0] || !a->netns_inode)
		return SEEN_UNKNOWN;
	if (stat(a->netns, &st) < 0)
		return errno == ENOENT ? SEEN_GONE : SEEN_UNKNOWN;
	return st.st_ino == a->netns_inode ? SEEN_SAME : SEEN_OTHER;
}

static enum seen look_at_link(const struct attachment *a)
{
	if (a->state != ATTACHMENT_ATTACHED || !a->link[0])
		return SEEN_UNKNOWN;
	if (if_nametoindex(a->link))
		return SEEN_SAME;
	return errno == ENODEV ? SEEN_GONE : SEEN_UNKNOWN;
}

struct sighting sighting_of(const struct attachment *a)
{
	return (struct sighting){
		.attachment = a,
		.link = look_at_link(a),
		.netns = look_at_netns(a),
	};
}
