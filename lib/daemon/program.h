/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the mains of the programs share: where the log goes, answers to --help, and the store.
 *
 *   struct etcd_settings (lib/daemon/options.h) -> [store_open] -> lib/etcd/store_etcd
 */
#pragma once

#include <systemd/sd-event.h>

#include "lib/daemon/health.h"
#include "lib/daemon/options.h"
#include "lib/store/store.h"

/* Journal where there is one and nothing else is asked for. */
void program_choose_log(enum log_level level, enum log_format format);
/* Prints and frees it; the exit code. NULL: out of memory, 1. */
int program_tell(char *text);

/*
 * 0, or a negative errno with the sentence. Connects only when the first request is made. name: who
 * we are, decides which member is tried first; NULL: the first. *ret_warning: "", or a sentence
 * that is worth a line in the log, which lib/ does not write.
 */
int store_open(sd_event *event, const struct etcd_settings *settings, const char *name,
	       struct store **ret, struct err *ret_warning, struct err *err);
/* Health part "etcd-transport": http:// to other machines, unless that was accepted. */
void store_check_transport(const struct etcd_settings *s, struct health *health);
