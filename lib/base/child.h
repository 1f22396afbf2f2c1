/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program, or a function of ours, run beside the loop: started, listened to, given a deadline,
 * reaped.
 *
 *   caller -> [child] -> check and reload commands -> verdict -> caller
 *
 * It gets /dev/null as input, one pipe for both outputs, no other descriptor of
 * ours, no blocked or ignored signals, and a process group of its own: past the
 * deadline the whole group is killed. What it says last is kept, because that
 * tells why it failed. Its end is that of the program itself: what it left in the
 * background may go on and hold the pipe. Needs no SIGCHLD, but that signal must
 * not be ignored. Callbacks come from the loop, never from within child_start().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/base/auto.h"
#include "lib/base/err.h"

#define CHILD_TIMEOUT_MS 30000
#define CHILD_OUTPUT_MAX 4096

struct child;

struct child_result {
	enum child_end { CHILD_EXITED, CHILD_SIGNALLED, CHILD_TIMED_OUT } end;
	int number;         /* exit code or signal */
	const char *output; /* its last words, both outputs together; NUL-terminated */
	size_t len;
	bool cut; /* it said more before */
	uint32_t timeout_ms;
};
/* The child is gone: the handle is no longer valid. */
typedef void child_done_fn(const struct child_result *result, void *arg);

struct child_options {
	const char *const *argv; /* argv[0] by PATH; ends with NULL. Or: */
	const char *shell;       /* a line for /bin/sh -c; or: */
	/*
	 * A function, in a copy of this process: whatever it loads, takes or breaks ends with it.
	 * What it returns is the exit code; it says what it has to say on the standard output.
	 */
	int (*run)(void *run_arg);
	void *run_arg;
	const char *folder;  /* where it runs; NULL: here */
	uint32_t timeout_ms; /* 0: CHILD_TIMEOUT_MS */
	size_t max_output;   /* 0: CHILD_OUTPUT_MAX */
	child_done_fn *on_done;
	void *arg;
};

/* 0 or -errno: -ENOENT, -EACCES, ... when the program cannot be run. */
int child_start(sd_event *event, const struct child_options *options, struct child **ret);
/* Kills it and waits for its end, which SIGKILL makes a matter of microseconds. No callback. */
void child_cancel(struct child *c);
AUTO_DEFINE(struct child *, child_cancel)

/*
 * 0 for exit 0. Else the sentence "exit 1: bird.conf:3:1 syntax error" ("killed by SIGSEGV: ...",
 * "still running after 30 s: ...") and -EINVAL, or -ETIMEDOUT. Lines are joined by "; ".
 */
int child_verdict(const struct child_result *result, struct err *err);
/* The output as one line: trimmed, lines joined by "; ", '?' for control bytes. Returns text. */
const char *child_words(const struct child_result *result, char *text, size_t room);
