/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/cni_main.h"

#include <string.h>
#include <unistd.h>

#include "lib/base/json_out.h"

static const char *variable(const char *name, void *arg)
{
	return getenv(name);
}

static int output(const char *text)
{
	return cni_output_write(STDOUT_FILENO, text) < 0 ? 1 : 0;
}

static int fail(const struct cni_error *e, enum cni_version version)
{
	AUTO(free) char *text = NULL;

	if (cni_error_print(e, version, &text) == 0)
		output(text);
	return 1;
}

static int print_versions(void)
{
	AUTO(free) char *text = NULL;
	struct json_out out = { 0 };

	json_out_open(&out, NULL, '{');
	json_out_text(&out, "cniVersion", cni_version_name(CNI_VERSION_NEWEST));
	json_out_open(&out, "supportedVersions", '[');
	for (int i = 0; i < CNI_VERSIONS; i++)
		json_out_text(&out, NULL, cni_version_name((enum cni_version)i));
	json_out_close(&out, ']');
	json_out_close(&out, '}');
	return json_out_take(&out, &text) < 0 ? 1 : output(text);
}

static int print_about(const char *program)
{
	char text[256];
	int n = snprintf(text, sizeof(text),
			 "%s " ROOST_VERSION
			 ": a CNI plugin of roost, to be run by a container runtime\n"
			 "CNI protocol versions supported:",
			 program);

	for (int i = 0; i < CNI_VERSIONS; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s %s", i ? "," : "",
			      cni_version_name((enum cni_version)i));
	return cni_output_write(STDERR_FILENO, text) < 0 ? 1 : 0;
}

/*
 * The agent's own limit is 8 s, so an ADD gets its answer rather than ours. STATUS is polled, and
 * some runtimes hold a lock meanwhile.
 */
unsigned cni_time_ms(enum cni_verb verb)
{
	static const unsigned ms[CNI_VERBS] = {
		[CNI_ADD] = 10000 - CNI_UNDO_MS,
		[CNI_DEL] = 5000,
		[CNI_CHECK] = 5000,
		[CNI_GC] = 10000,
		[CNI_STATUS] = 1000,
	};

	return ms[verb];
}

static int run(struct cni_call *call, cni_verb_fn *const verbs[CNI_VERBS])
{
	struct cni_error e = { 0 };
	AUTO(free) char *text = NULL;

	/* VERSION comes from probes that may leave stdin open. */
	if (call->env.verb == CNI_VERSION)
		return print_versions();
	call->deadline = deadline_in(cni_time_ms(call->env.verb));
	call->conf.version = CNI_VERSION_NEWEST;
	if (cni_input_read(STDIN_FILENO, &call->deadline, &call->input, &call->input_len, &e) < 0 ||
	    cni_conf_read(call->input, call->input_len, call->env.verb, &call->conf, &e) < 0 ||
	    verbs[call->env.verb](call, &text, &e) < 0)
		return fail(&e, call->conf.version);
	return text ? output(text) : 0;
}

int cni_main(const char *program, cni_verb_fn *const verbs[CNI_VERBS])
{
	struct cni_call call = { .program = program };
	struct cni_error e = { 0 };
	int r = cni_env_read(variable, NULL, &call.env, &e);

	if (r == 0)
		return print_about(program);
	if (r < 0)
		return fail(&e, CNI_VERSION_NEWEST);
	r = run(&call, verbs);
	cni_conf_done(&call.conf);
	cni_env_done(&call.env);
	free(call.input);
	return r;
}

/* --- stderr --------------------------------------------------------------------------------- */

PRINTF_LIKE(2, 0)
static void line(const struct cni_call *call, const char *fmt, va_list ap)
{
	char text[1024];
	int n = snprintf(text, sizeof(text), "%s: ", call->program);

	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	cni_output_write(STDERR_FILENO, text);
}

void cni_debug(const struct cni_call *call, bool more, const char *fmt, ...)
{
	const char *debug = getenv("ROOST_DEBUG");
	va_list ap;

	if (!more && (!debug || strcmp(debug, "1") != 0))
		return;
	va_start(ap, fmt);
	line(call, fmt, ap);
	va_end(ap);
}

void cni_complain(const struct cni_call *call, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line(call, fmt, ap);
	va_end(ap);
}
