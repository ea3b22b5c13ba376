#include "base/digest.h"

#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

struct digest {
	EVP_MD_CTX *hash; /* owned */
};

struct digest *digest_new(void)
{
	struct digest *digest = xcalloc(1, sizeof *digest);

	digest->hash = xpresent(EVP_MD_CTX_new());
	if (!EVP_DigestInit_ex(digest->hash, EVP_sha256(), NULL))
		alloc_failed();
	return digest;
}

void digest_add(struct digest *digest, struct rlmd_text text)
{
	unsigned char size[8];

	for (size_t i = 0; i < sizeof size; i++)
		size[i] = (unsigned char)((uint64_t)text.size >> (8 * i));
	if (!EVP_DigestUpdate(digest->hash, size, sizeof size) ||
	    (text.size && !EVP_DigestUpdate(digest->hash, text.bytes, text.size)))
		alloc_failed();
}

void digest_end(struct digest *digest, char ret[static DIGEST_SIZE])
{
	unsigned char bytes[EVP_MAX_MD_SIZE];
	unsigned int size = 0;

	if (!EVP_DigestFinal_ex(digest->hash, bytes, &size) || size != DIGEST_BYTES)
		alloc_failed();
	for (unsigned int i = 0; i < size; i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	digest_free(digest);
}

void digest_free(struct digest *digest)
{
	if (!digest)
		return;
	EVP_MD_CTX_free(digest->hash);
	free(digest);
}

void digest_texts(const struct rlmd_text *texts, size_t count, char ret[static DIGEST_SIZE])
{
	struct digest *digest = digest_new();

	for (size_t i = 0; i < count; i++)
		digest_add(digest, texts[i]);
	digest_end(digest, ret);
}

void digest_bytes(struct rlmd_text text, unsigned char ret[static DIGEST_BYTES])
{
	if (!EVP_Digest(text.size ? text.bytes : "", text.size, ret, NULL, EVP_sha256(), NULL))
		alloc_failed();
}
