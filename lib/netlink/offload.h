/* SPDX-License-Identifier: Apache-2.0 */
/* A device's checksum offload, which rtnetlink does not know. */
#pragma once

#include <stdbool.h>

/* 0, -ENODEV, or another -errno. In the network namespace of the caller. */
int offload_read(const char *device, bool *ret);
int offload_write(const char *device, bool on);
