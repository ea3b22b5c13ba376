#include "cli/serve_blob.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"

enum { BASE64_CHARACTERS = 4, BASE64_BYTES = 3 }; /* of a group */

struct serve_blob {
	char *name; /* owned */
	int fd;     /* owned: a memory file */
	size_t size;
	bool ended;                  /* all of it is there */
	int users;                   /* jobs and sessions that read it */
	bool freed;                  /* its client has no use for it */
	struct serve_client *client; /* lent */
	LIST_ENTRY(serve_blob) entry;
};

static struct serve_blob *find(const struct serve_client *client, const char *name,
			       struct rlmd_error *err)
{
	struct serve_blob *blob;

	LIST_FOREACH (blob, &client->blobs, entry)
		if (!blob->freed && !strcmp(blob->name, name))
			return blob;
	error_set(err, RLMD_ERROR_USAGE, "there is no blob '%.40s'", name);
	return NULL;
}

static void drop(struct serve_blob *blob)
{
	if (blob->users)
		return;
	blob->client->held_bytes -= blob->size;
	LIST_REMOVE(blob, entry);
	close(blob->fd);
	free(blob->name);
	free(blob);
}

void serve_blob_begin(struct serve_client *client, const json_t *params,
		      struct rpc_request *request)
{
	struct rlmd_error err;
	int fd = file_in_memory("blob", text_of(""), &err);
	struct serve_blob *blob;

	(void)params;
	if (fd < 0) {
		rpc_fail(request, &err);
		return;
	}
	blob = xcalloc(1, sizeof *blob);
	blob->name = xasprintf("b%" PRId64, ++client->last_blob);
	blob->fd = fd;
	blob->client = client;
	LIST_INSERT_HEAD(&client->blobs, blob, entry);
	rpc_reply(request, json_make("{s:s}", "blob", blob->name));
}

/* RFC 4648, section 4; NULL: it is none. */
static char *decode(struct rlmd_text text, size_t *ret_size)
{
	auto_free char *bytes = xcalloc(text.size + 1, 1);
	size_t padding = 0;
	int size;

	while (padding < 2 && padding < text.size && text.bytes[text.size - 1 - padding] == '=')
		padding++;
	if (text.size % BASE64_CHARACTERS || memchr(text.bytes, '=', text.size - padding))
		return NULL;
	size = EVP_DecodeBlock((unsigned char *)bytes, (const unsigned char *)text.bytes,
			       (int)text.size);
	if (size < 0 || (size_t)size != text.size / BASE64_CHARACTERS * BASE64_BYTES)
		return NULL;
	*ret_size = (size_t)size - padding;
	return take_pointer(&bytes);
}

static bool append(struct serve_client *client, const json_t *params, struct rlmd_error *err)
{
	struct serve_blob *blob = find(client, json_get_string(params, "blob"), err);
	auto_free char *bytes = NULL;
	size_t size;

	if (!blob)
		return false;
	if (blob->ended)
		return error_set(err, RLMD_ERROR_USAGE, "the blob %s has ended", blob->name);
	if (!json_is_string(json_object_get(params, "base64")))
		return error_set(err, RLMD_ERROR_USAGE, "base64 is missing");
	bytes = decode(json_get_text(params, "base64"), &size);
	if (!bytes)
		return error_set(err, RLMD_ERROR_USAGE, "base64 is none (RFC 4648, section 4)");
	if (blob->size + size > SERVE_HELD_MAX)
		return error_set(err, RLMD_ERROR_USAGE, "a blob has at most 4 GiB");
	if (client->serve->confined && client->held_bytes + size > SERVE_HELD_MAX)
		return error_set(err, RLMD_ERROR_USAGE,
				 "all blobs and texts together have at most 4 GiB here: "
				 "blob.free gives back");
	if (!file_write_all(blob->fd, text_from(bytes, size)))
		return error_errno(err, RLMD_ERROR_MACHINE, "the blob");
	blob->size += size;
	client->held_bytes += size;
	return true;
}

static void answer(struct rpc_request *request, bool ok, const struct rlmd_error *err)
{
	if (ok)
		rpc_reply(request, json_make_object());
	else
		rpc_fail(request, err);
}

void serve_blob_append(struct serve_client *client, const json_t *params,
		       struct rpc_request *request)
{
	struct rlmd_error err;

	answer(request, append(client, params, &err), &err);
}

void serve_blob_end(struct serve_client *client, const json_t *params, struct rpc_request *request)
{
	struct rlmd_error err;
	struct serve_blob *blob = find(client, json_get_string(params, "blob"), &err);

	if (blob)
		blob->ended = true;
	answer(request, blob, &err);
}

void serve_blob_free(struct serve_client *client, const json_t *params, struct rpc_request *request)
{
	struct rlmd_error err;
	struct serve_blob *blob = find(client, json_get_string(params, "blob"), &err);

	if (blob) {
		blob->freed = true;
		drop(blob);
	}
	answer(request, blob, &err);
}

struct serve_blob *serve_blob_use(const struct serve_client *client, const char *name,
				  struct rlmd_error *err)
{
	struct serve_blob *blob = find(client, name, err);

	if (!blob)
		return NULL;
	if (!blob->ended) {
		error_set(err, RLMD_ERROR_USAGE, "the blob %s has not ended: send blob.end", name);
		return NULL;
	}
	blob->users++;
	return blob;
}

char *serve_blob_path(const struct serve_blob *blob)
{
	return xasprintf("/proc/self/fd/%d", blob->fd);
}

void serve_blob_unuse(struct serve_blob *blob)
{
	if (!blob)
		return;
	blob->users--;
	if (blob->freed)
		drop(blob);
}

void serve_blob_free_all(struct serve_client *client)
{
	while (!LIST_EMPTY(&client->blobs))
		drop(LIST_FIRST(&client->blobs));
}
