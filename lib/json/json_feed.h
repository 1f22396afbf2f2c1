/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_tokener_parse_ex() as it should be, whatever json-c's version.
 *
 * json-c 0.18, when it is strict, takes every byte beyond ASCII in a string for
 * a control character and refuses the text. So runs of such bytes go in
 * without that flag: in a string they mean nothing else, and outside of one
 * they are refused either way. Pure.
 */
#pragma once

#include <json-c/json.h>
#include <stddef.h>

/*
 * The object if it is complete; json_tokener_get_error() tells the rest. ret_end: how many bytes
 * were looked at. flags: the tokener's; characters of several bytes that lie whole in text stay
 * whole.
 */
struct json_object *json_feed(struct json_tokener *tok, int flags, const char *text, size_t n,
			      size_t *ret_end);
