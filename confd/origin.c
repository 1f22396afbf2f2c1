/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/origin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/files.h"

#define FORMAT "cluster %016" PRIx64 " revision %" PRId64 "%s\n"
#define KEEPS  " keeps"

int origin_read(const char *dir, const char *resource, struct origin *ret, struct err *err)
{
	AUTO(close) int fd = dir_open(dir);
	AUTO(free) char *text = NULL;
	struct origin found = { 0 };
	char again[128], word[16] = "";
	int r = fd < 0 ? fd : file_read(fd, resource, sizeof(again), &text, NULL);

	if (r == -ENOENT) {
		*ret = found;
		return 0;
	}
	if (r < 0)
		return err_set(err, r, "%s/%s: %s", dir, resource, strerror(-r));
	if (sscanf(text, "cluster %" SCNx64 " revision %" SCNd64 " %15s", &found.cluster,
		   &found.revision, word) >= 2)
		found.keeps = word[0];
	/* Only what we would write ourselves is believed. */
	snprintf(again, sizeof(again), FORMAT, found.cluster, found.revision,
		 found.keeps ? KEEPS : "");
	if (!found.cluster || strcmp(again, text) != 0)
		return err_set(err, -EBADMSG, "%s/%s is damaged", dir, resource);
	*ret = found;
	return 0;
}

int origin_write(const char *dir, const char *resource, const struct origin *origin,
		 struct err *err)
{
	AUTO(close) int fd = dir_open(dir);
	char text[128];
	int r, len = snprintf(text, sizeof(text), FORMAT, origin->cluster, origin->revision,
			      origin->keeps ? KEEPS : "");

	r = fd < 0 ? fd : file_publish(fd, resource, 0600, text, (size_t)len);
	return r < 0 ? err_set(err, r, "%s/%s: %s", dir, resource, strerror(-r)) : 0;
}

bool origin_went_back(const struct origin *origin, uint64_t cluster, int64_t revision)
{
	return origin->keeps ||
	       (origin->cluster && (cluster != origin->cluster || revision < origin->revision));
}
