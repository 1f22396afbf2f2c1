/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as handlers see them, and the forms of an answer. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/daemon/serve_parts.h"

#define ERROR_TEXT_MAX 1024
#define RETRY_AFTER_S  "1"

const char *serve_method(const struct serve_request *q)
{
	return q->method;
}

const char *serve_path(const struct serve_request *q)
{
	return q->path;
}

const char *serve_query(const struct serve_request *q, const char *name)
{
	const char *value = NULL;
	size_t n = 0;

	if (MHD_lookup_connection_value_n(q->connection, MHD_GET_ARGUMENT_KIND, name, strlen(name),
					  &value, &n) != MHD_YES)
		return NULL;
	if (!value)
		return "";
	/* A %00 inside: what a handler would see of it is not what was asked. */
	return strlen(value) == n ? value : NULL;
}

const char *serve_body(const struct serve_request *q, size_t *ret_len)
{
	if (ret_len)
		*ret_len = q->len;
	return q->body ?: "";
}

int serve_body_json(struct serve_request *q, struct json_object **ret)
{
	struct err err = { "" };
	int r = json_parse(q->body ?: "", q->len, ret, &err);

	if (r == -ENOMEM)
		serve_reply_error(q, 500, CNI_CODE_IO, NULL, "out of memory");
	else if (r < 0)
		serve_reply_error(q, 400, CNI_CODE_CONFIG, err.text, "the body is not understood");
	return r;
}

/* --- answers -------------------------------------------------------------------------------- */

static struct MHD_Response *make_response(const char *content_type, const char *body, size_t len)
{
	union {
		const char *in;
		void *out;
	} text = { .in = body }; /* copied, whatever the prototype says */
	struct MHD_Response *response = MHD_create_response_from_buffer(len, text.out,
									MHD_RESPMEM_MUST_COPY);

	if (response && MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
						content_type) != MHD_YES) {
		MHD_destroy_response(response);
		return NULL;
	}
	return response;
}

void serve_reply_text(struct serve_request *q, unsigned status, const char *content_type,
		      const char *body, size_t len)
{
	serve_answer(q, status, make_response(content_type, body, len));
}

struct serve_shared *serve_shared_new(unsigned status, const char *content_type, const char *body,
				      size_t len)
{
	struct serve_shared *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return NULL;
	shared->refs = 1;
	shared->status = status;
	shared->response = make_response(content_type, body, len);
	if (shared->response)
		return shared;
	free(shared);
	return NULL;
}

void serve_shared_unref(struct serve_shared *shared)
{
	if (!shared || --shared->refs)
		return;
	MHD_destroy_response(shared->response);
	free(shared);
}

void serve_reply_shared(struct serve_request *q, struct serve_shared *shared)
{
	if (q->answered)
		return;
	shared->refs++;
	q->shared = shared;
	serve_answer(q, shared->status, NULL);
}

void serve_reply(struct serve_request *q, unsigned status, const char *json)
{
	serve_reply_text(q, status, "application/json", json, strlen(json));
}

void serve_reply_json(struct serve_request *q, unsigned status, struct json_object *object)
{
	size_t len = 0;
	const char *text = json_object_to_json_string_length(
		object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);

	if (text)
		serve_reply_text(q, status, "application/json", text, len);
	else
		serve_answer(q, 500, NULL);
}

/* The length of the UTF-8 character at s, 0 if there is none. */
static size_t character_at(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	unsigned second = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
	unsigned last = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;

	if (s[0] > 0xf4 || (n > 1 && (s[1] < second || s[1] > last)))
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* A sentence that was cut to a buffer's size may end in half a character, which JSON forbids. */
static void make_utf8(char *text)
{
	for (size_t i = 0; text[i];) {
		size_t n = character_at((const unsigned char *)text + i);

		if (n == 0)
			text[i++] = '?';
		else
			i += n;
	}
}

static int add_text(struct json_object *o, const char *name, char *text)
{
	struct json_object *value;

	make_utf8(text);
	value = json_object_new_string(text);
	return value ? json_object_object_add(o, name, value) : -1;
}

static void reply_sentence(struct serve_request *q, unsigned status, const char *error,
			   const char *details)
{
	char text[2 * ERROR_TEXT_MAX + 4];
	struct MHD_Response *response;
	int n = snprintf(text, sizeof(text), "%s%s%s\n", error, details[0] ? ": " : "", details);

	response = make_response("text/plain; charset=utf-8", text, (size_t)n);
	if (response && status == 503)
		MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, RETRY_AFTER_S);
	serve_answer(q, status, response);
}

void serve_reply_error(struct serve_request *q, unsigned status, enum cni_code code,
		       const char *details, const char *fmt, ...)
{
	AUTO(json_put) struct json_object *o = json_object_new_object();
	char error[ERROR_TEXT_MAX], more[ERROR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error, sizeof(error), fmt, ap);
	va_end(ap);
	snprintf(more, sizeof(more), "%s", details ?: "");
	if (q->serve->plain_errors)
		reply_sentence(q, status, error, more);
	else if (!o || json_object_object_add(o, "code", json_object_new_int(code)) < 0 ||
		 add_text(o, "error", error) < 0 || add_text(o, "details", more) < 0)
		serve_answer(q, 500, NULL);
	else
		serve_reply_json(q, status, o);
}
