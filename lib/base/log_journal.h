/* SPDX-License-Identifier: Apache-2.0 */
/* The journald sink: PRIORITY, MESSAGE, ROOST_PART, when stderr is the journal's own stream. */
#pragma once

#include "lib/base/log.h"

/* True if stderr is connected to the journal (JOURNAL_STREAM names its device and inode). */
bool log_journal_connected(void);
log_sink_fn log_to_journal;
