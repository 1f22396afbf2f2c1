/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who did what: each transaction of roostctl carries one record history/<time> that names the user,
 * the host, the command and the keys, so that neither is without the other.
 *
 *   command, transaction -> [note_command] -> transaction with its history -> etcd
 */
#pragma once

#include "ctl/frame/ctl.h"
#include "lib/store/txn.h"

/*
 * Adds the note to a transaction with relative keys. Its puts of keys that it compares as absent
 * create them. What is more than HISTORY_MAX goes in the same transaction.
 */
int note_command(struct ctl *ctl, struct txn *t, struct err *err);

/* user@host, with the user of sudo if that is set; for records with a field "by". */
void note_who(char *text, size_t size);
