/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/base64.h"

#include <errno.h>
#include <stdint.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Value of a letter plus one; 0 marks what is none. */
static const uint8_t values[256] = {
	['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,
	['H'] = 8,  ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14,
	['O'] = 15, ['P'] = 16, ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21,
	['V'] = 22, ['W'] = 23, ['X'] = 24, ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28,
	['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32, ['g'] = 33, ['h'] = 34, ['i'] = 35,
	['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, ['p'] = 42,
	['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48, ['w'] = 49,
	['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
	['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63,
	['/'] = 64,
};

void base64_encode(const void *data, size_t n, char *text)
{
	const uint8_t *in = data;
	char *out = text;

	for (; n >= 3; in += 3, n -= 3) {
		*out++ = letters[in[0] >> 2];
		*out++ = letters[(in[0] & 3) << 4 | in[1] >> 4];
		*out++ = letters[(in[1] & 15) << 2 | in[2] >> 6];
		*out++ = letters[in[2] & 63];
	}
	if (n) {
		uint8_t second = n == 2 ? in[1] : 0;

		*out++ = letters[in[0] >> 2];
		*out++ = letters[(in[0] & 3) << 4 | second >> 4];
		*out++ = n == 2 ? letters[(second & 15) << 2] : '=';
		*out++ = '=';
	}
	*out = '\0';
}

/* Four letters to 24 bits; -EINVAL if one of them is none. */
static int32_t quad(const uint8_t *in)
{
	uint32_t a = values[in[0]], b = values[in[1]], c = values[in[2]], d = values[in[3]];

	if (!a || !b || !c || !d)
		return -EINVAL;
	return (int32_t)((a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1));
}

/* The last four letters, with up to two of padding; unused bits must be zero. */
static ssize_t decode_tail(const uint8_t *in, uint8_t *out)
{
	unsigned pad = in[3] != '=' ? 0 : in[2] != '=' ? 1 : 2;
	uint8_t filled[4] = { in[0], in[1], pad == 2 ? 'A' : in[2], pad ? 'A' : in[3] };
	int32_t bits = quad(filled);

	if (bits < 0 || (pad == 1 && bits & 0xff) || (pad == 2 && bits & 0xffff))
		return -EINVAL;
	out[0] = (uint8_t)(bits >> 16);
	if (pad < 2)
		out[1] = (uint8_t)(bits >> 8);
	if (pad < 1)
		out[2] = (uint8_t)bits;
	return 3 - pad;
}

ssize_t base64_decode(const char *text, size_t n, void *data)
{
	const uint8_t *in = (const uint8_t *)text;
	uint8_t *out = data;
	ssize_t tail;

	if (n % 4)
		return -EINVAL;
	if (!n)
		return 0;

	for (; n > 4; in += 4, n -= 4) {
		int32_t bits = quad(in);

		if (bits < 0)
			return -EINVAL;
		*out++ = (uint8_t)(bits >> 16);
		*out++ = (uint8_t)(bits >> 8);
		*out++ = (uint8_t)bits;
	}
	tail = decode_tail(in, out);
	if (tail < 0)
		return tail;
	return out - (uint8_t *)data + tail;
}
