/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where libnftables is called: in a process of its own (lib/base/child), which lists our table,
 * compares, and sets it by one transaction if it is not as it should be.
 *
 *   firewall -> job -> [firewall_child] -> libnftables -> kernel
 *                            `-> one line, perhaps a reason -> firewall_verdict() -> firewall
 *
 * The library takes milliseconds and megabytes: neither is the agent's. It is loaded by name,
 * so that only a node that needs it has to have it.
 *
 * How a table looks that is right follows from the library's own listing of what it has just set,
 * because versions differ in how they print; that nobody came between is known by the generation.
 */
#pragma once

#include "agent/firewall/desired_firewall.h"
#include "lib/base/child.h"
#include "lib/base/hash.h"

/* Tried in this order until one is taken: the whole, then fewer and fewer parts. */
#define FIREWALL_TEXTS ((1 << FIREWALL_PARTS) - 1)

struct firewall_job {
	const char *library;
	char *texts[FIREWALL_TEXTS]; /* none: the table is to go */
	unsigned parts[FIREWALL_TEXTS];
	size_t n;
	bool compare; /* nothing is done if the listing has this digest */
	struct hash expect;
};
void firewall_job_done(struct firewall_job *j);

struct firewall_verdict {
	enum firewall_did { FIREWALL_SAME, FIREWALL_SET, FIREWALL_GONE, FIREWALL_BUSY } did;
	unsigned parts;      /* that stand now */
	uint32_t generation; /* of the listing */
	struct hash digest;
	struct err refused; /* why not all parts stand; "" */
};

const char *firewall_did_name(enum firewall_did did); /* "same", "set", ... */

/* Removes the table, in this process: for a program that ends afterwards. 1 or -errno. */
int firewall_drop(const char *library, struct err *err);
/* child_options.run; the argument is a struct firewall_job. */
int firewall_child(void *job);
/* 0, or -errno with the reason why nothing was done. */
int firewall_verdict(const struct child_result *result, struct firewall_verdict *ret,
		     struct err *err);
