#include "base/digest.h"

#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void absorb(EVP_MD_CTX *hash, struct rlmd_text text)
{
	unsigned char size[8];

	for (size_t i = 0; i < sizeof size; i++)
		size[i] = (unsigned char)((uint64_t)text.size >> (8 * i));
	if (!EVP_DigestUpdate(hash, size, sizeof size) ||
	    (text.size && !EVP_DigestUpdate(hash, text.bytes, text.size)))
		abort();
}

void digest_texts(const struct rlmd_text *texts, size_t count, char ret[static DIGEST_SIZE])
{
	EVP_MD_CTX *hash = EVP_MD_CTX_new();
	unsigned char bytes[EVP_MAX_MD_SIZE];
	unsigned int size = 0;

	if (!hash || !EVP_DigestInit_ex(hash, EVP_sha256(), NULL))
		abort();
	for (size_t i = 0; i < count; i++)
		absorb(hash, texts[i]);
	if (!EVP_DigestFinal_ex(hash, bytes, &size) || 2 * size != DIGEST_SIZE - 1)
		abort();
	EVP_MD_CTX_free(hash);
	for (unsigned int i = 0; i < size; i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}
