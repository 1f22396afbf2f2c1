/* SPDX-License-Identifier: Apache-2.0 */
/* What the mains of the programs share: where the log goes, and answers to --help. */
#pragma once

#include "lib/daemon/options.h"

/* Journal where there is one and nothing else is asked for. */
void program_choose_log(enum log_level level, enum log_format format);
/* Prints and frees it; the exit code. NULL: out of memory, 1. */
int program_tell(char *text);
