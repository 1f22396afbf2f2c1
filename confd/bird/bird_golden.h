/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: what real BIRDs said, from golden/bird-<version>.txt. ">>> command" and below it
 * the bytes of the reply. All three ran one configuration beside one neighbour.
 */
#pragma once

#include <stdio.h>
#include <string.h>

#include "confd/bird/bird_reply.h"

static const char *const golden_versions[] = { "2.0.12", "2.17", "3.1" };

/* The reply to the nth (from 0) of these commands. Exits when there is none: run from the root. */
static inline void golden(const char *version, const char *command, int nth,
			  struct bird_reader *reader, struct bird_reply *ret)
{
	char path[64], line[1024];
	AUTO(fclose) FILE *f = NULL;
	bool here = false;
	size_t used;

	snprintf(path, sizeof(path), "confd/golden/bird-%s.txt", version);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, ">>> ", 4) == 0) {
			line[strcspn(line, "\n")] = '\0';
			here = strcmp(line + 4, command) == 0 && nth-- == 0;
		} else if (here && bird_reader_feed(reader, line, strlen(line), &used, ret) == 1) {
			return;
		}
	}
	fprintf(stderr, "no \"%s\" in %s\n", command, path);
	exit(1);
}
