/* SPDX-License-Identifier: Apache-2.0 */
/* Release at scope end, and explicit hand-over of ownership. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * AUTO(free) for a pointer, whose kind needs AUTO_DEFINE() once; AUTO_DONE(fn) for a value, which
 * fn(&value) releases.
 */
#define AUTO(fn) __attribute__((cleanup(fn##_auto)))
#define AUTO_DEFINE(type, fn)                                                                      \
	static inline void fn##_auto(type *p)                                                      \
	{                                                                                          \
		if (*p)                                                                            \
			fn(*p);                                                                    \
	}
#define AUTO_DONE(fn) __attribute__((cleanup(fn)))
#define TAKE(p)                                                                                    \
	({                                                                                         \
		__auto_type took_ = (p);                                                           \
		(p) = NULL;                                                                        \
		took_;                                                                             \
	})

static inline void free_auto(void *p)
{
	free(*(void **)p);
}

AUTO_DEFINE(FILE *, fclose)
AUTO_DEFINE(DIR *, closedir)

static inline void close_auto(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define ARRAY_SIZE(a)           (sizeof(a) / sizeof((a)[0]))
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))
