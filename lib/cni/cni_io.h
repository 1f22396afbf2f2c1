/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a plugin touches the world: stdin, stdout, the clock, the pod's namespace.
 *
 * Blocking, without stdio: a plugin lives for a millisecond and reads or writes once.
 */
#pragma once

#include <stdint.h>

#include "lib/base/prefix.h"
#include "lib/cni/cni_error.h"

/* One deadline for several steps: milliseconds on CLOCK_MONOTONIC. */
struct deadline {
	uint64_t at_ms;
};
struct deadline deadline_in(unsigned ms);
/* 0 when it has passed. */
unsigned deadline_left(const struct deadline *d);

/* More on stdin is no network configuration. */
#define CNI_INPUT_MAX (1024U * 1024U)

/* All of fd up to its end; free() *ret. CNI_CODE_IO, also if that does not come in time, or
 * CNI_CODE_DECODE if there is too much. */
int cni_input_read(int fd, const struct deadline *d, char **ret, size_t *ret_len,
		   struct cni_error *e);

/* The text and a newline, in one write if the pipe takes it. 0 or a negative errno. */
int cni_output_write(int fd, const char *text);

/*
 * Whether that interface in the network namespace at path carries one of the addresses: 1 or 0;
 * a path that is no namespace, or nothing at all, carries none. The thread is back in its own
 * namespace afterwards; -errno if that failed or the kernel did not answer.
 */
int cni_netns_carries(const char *path, const char *ifname, const struct address *v, size_t n);
