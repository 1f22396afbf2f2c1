/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/hash.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

struct sip {
	uint64_t v[4];
	uint8_t tail[8];
	size_t len;
};

static uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static uint64_t load(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return le64toh(word);
}

static void rounds(uint64_t v[4], unsigned n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static struct sip sip_start(const uint8_t key[16])
{
	const uint64_t k0 = load(key), k1 = load(key + 8);

	/* The letters of "somepseudorandomlygeneratedbytes"; 0xee asks for 128 bits. */
	return (struct sip){ .v = { k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee,
				    k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573 } };
}

static void compress(struct sip *s, uint64_t word)
{
	s->v[3] ^= word;
	rounds(s->v, 2);
	s->v[0] ^= word;
}

static void sip_feed(struct sip *s, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++) {
		s->tail[s->len++ % 8] = bytes[i];
		if (s->len % 8 == 0)
			compress(s, load(s->tail));
	}
}

static struct hash sip_end(struct sip *s)
{
	struct hash h;
	size_t left = s->len % 8;

	memset(s->tail + left, 0, 8 - left);
	s->tail[7] = (uint8_t)s->len;
	compress(s, load(s->tail));
	s->v[2] ^= 0xee;
	rounds(s->v, 4);
	h.low = s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
	s->v[1] ^= 0xdd;
	rounds(s->v, 4);
	h.high = s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
	return h;
}

struct hash siphash128(const uint8_t key[16], const void *data, size_t len)
{
	struct sip s = sip_start(key);

	sip_feed(&s, data, len);
	return sip_end(&s);
}

struct hash hash_texts(const char *const *texts, size_t n)
{
	/* Never to be changed: files and claims of other versions would not be found. */
	static const uint8_t key[16] = "roost addresses";
	struct sip s = sip_start(key);

	for (size_t i = 0; i < n; i++) {
		const char *text = texts[i] ?: "";

		sip_feed(&s, text, strlen(text) + 1); /* the NUL keeps them apart */
	}
	return sip_end(&s);
}

const char *hash_print(struct hash h, char *text)
{
	snprintf(text, HASH_TEXT, "%016llx%016llx", (unsigned long long)htobe64(htole64(h.low)),
		 (unsigned long long)htobe64(htole64(h.high)));
	return text;
}
