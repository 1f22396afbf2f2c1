/* SPDX-License-Identifier: Apache-2.0 */
/* One range of cni_ipam.h: its limits and what is left out. */
#include <errno.h>
#include <string.h>

#include "lib/cni/cni_ipam.h"

/* "10.5.0.10-10.5.0.20/16": first, last with the length. */
static bool parse_span(const char *text, struct cni_range *ret)
{
	const char *dash = strchr(text, '-');
	char first[ADDRESS_TEXT];
	struct prefix last;
	size_t n;

	if (!dash || (n = (size_t)(dash - text)) >= sizeof(first))
		return false;
	memcpy(first, text, n);
	first[n] = '\0';
	if (address_parse(first, &ret->start) < 0 || prefix_parse_host(dash + 1, &last) < 0)
		return false;
	ret->end = last.address;
	ret->range = prefix_mask(&last);
	return true;
}

static int read_range(struct json_at at, struct cni_range *ret, struct cni_error *e)
{
	struct prefix p;
	const char *text;

	at.required = true;
	if (cni_read_text(e, at, &text) < 0)
		return -EINVAL;
	if (parse_span(text, ret))
		return 0;
	if (prefix_parse_host(text, &p) < 0) {
		json_refuse(at, "is not a range such as \"10.5.0.0/16\" or "
				"\"10.5.0.10-10.5.0.20/16\"");
		return cni_wrong(e, at, json_type_string);
	}
	ret->range = prefix_mask(&p);
	return 0;
}

/* The limits of a span in "range" win, as they do in Whereabouts. */
static int read_limit(struct json_at at, struct address *ret, struct cni_error *e)
{
	struct address limit;
	int r = cni_read_address(e, at, &limit);

	if (r > 0 && !ret->family)
		*ret = limit;
	return r;
}

static int check_limits(struct json_at at, const struct cni_range *r, struct cni_error *e)
{
	const struct address *outside = NULL;
	char text[ADDRESS_TEXT], range[PREFIX_TEXT];

	if (r->start.family && !prefix_contains(&r->range, &r->start))
		outside = &r->start;
	else if (r->end.family && !prefix_contains(&r->range, &r->end))
		outside = &r->end;
	if (outside)
		json_wrong(at, "%s lies outside the range %s", address_print(outside, text),
			   prefix_print(&r->range, range));
	else if (r->start.family && r->end.family && address_compare(&r->start, &r->end) > 0)
		json_wrong(at, "the range starts after its end, %s", address_print(&r->end, text));
	else
		return 0;
	return cni_wrong(e, at, json_type_object);
}

static int read_excluded(struct json_at at, const char *text, struct prefix *ret,
			 struct cni_error *e)
{
	if (prefix_parse_host(text, ret) == 0) {
		*ret = prefix_mask(ret);
	} else if (address_parse(text, &ret->address) == 0) {
		ret->length = (uint8_t)address_bits(&ret->address);
	} else {
		json_refuse(at, "is neither an address nor a prefix");
		return cni_wrong(e, at, json_type_string);
	}
	return 0;
}

int cni_exclude_read(struct json_at at, struct prefixes *ret, struct cni_error *e)
{
	AUTO(free) struct prefix *v = NULL;
	AUTO(free) const char **texts_v = NULL;
	struct texts texts = { 0 };
	int r = cni_read_texts(e, at, &texts);

	if (r <= 0)
		return r;
	texts_v = texts.v;
	v = calloc(texts.n ?: 1, sizeof(*v));
	if (!v)
		return cni_no_memory(e);
	for (size_t i = 0; i < texts.n; i++)
		if (read_excluded(json_element(&at, i), texts_v[i], &v[i], e) < 0)
			return -EINVAL;
	*ret = (struct prefixes){ TAKE(v), texts.n };
	return 1;
}

int cni_range_read(struct json_at at, struct cni_range *ret, struct cni_error *e)
{
	struct cni_range range = { 0 };
	int r;

	if (cni_read_object(e, at) < 0 || read_range(cni_member(&at, "range"), &range, e) < 0 ||
	    read_limit(cni_member(&at, "range_start"), &range.start, e) < 0 ||
	    read_limit(cni_member(&at, "range_end"), &range.end, e) < 0 ||
	    check_limits(at, &range, e) < 0)
		return -EINVAL;
	r = cni_exclude_read(cni_member(&at, "exclude"), &range.exclude, e);
	if (r < 0)
		return r;
	*ret = range;
	return 0;
}
