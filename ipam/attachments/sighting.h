/* SPDX-License-Identifier: Apache-2.0 */
/* A look at an attachment's link and network namespace; ipam/attachments/leaks decides what it means. */
#pragma once

#include "ipam/attachments/leaks.h"

/* In the network and mount namespace of the caller, which must be the agent's. */
struct sighting sighting_of(const struct attachment *a);
