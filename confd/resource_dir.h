/* SPDX-License-Identifier: Apache-2.0 */
/* All resources of a folder: *.json, in the order of their names. */
#pragma once

#include "confd/resource.h"

struct resources {
	struct resource *v;
	size_t n;
};

/* A resource that is bad: reported and left out. */
typedef void resource_bad_fn(const char *name, const char *sentence, void *arg);

/* only: NULL, or the one to read. 0 or -errno with a sentence about the folder. */
int resources_load(const char *folder, const char *only, resource_bad_fn *bad, void *arg,
		   struct resources *ret, struct err *err);
void resources_done(struct resources *r);
