#include "base/address.h"

#include <string.h>

/* Where a password stands; NULL: nowhere. */
struct password {
	const char *begin, *end;
};

/* Between the first colon behind the scheme and the last '@' before the query. */
static struct password password_of_user(const char *address)
{
	const char *host = strstr(address, "://");
	struct password password = {0};
	const char *query;

	if (!host)
		return password;
	host += strlen("://");
	query = host + strcspn(host, "?");
	for (const char *at = host; at < query; at++)
		if (*at == '@')
			password.end = at;
	password.begin = password.end ? memchr(host, ':', (size_t)(password.end - host)) : NULL;
	if (password.begin)
		password.begin++;
	return password;
}

/* The next of the query, from `rest` on. */
static struct password password_of_query(const char *rest)
{
	static const char *const names[] = {"password=", "sslpassword="};

	for (; (rest = strpbrk(rest, "?&")); rest++)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (!strncmp(rest + 1, names[i], strlen(names[i]))) {
				const char *begin = rest + 1 + strlen(names[i]);

				return (struct password){begin, begin + strcspn(begin, "&")};
			}
	return (struct password){0};
}

static void cover(char *address, const struct password *password)
{
	if (password->begin)
		memset(address + (password->begin - address), '*',
		       (size_t)(password->end - password->begin));
}

void address_hide(char *address)
{
	struct password password = password_of_user(address);

	if (!strstr(address, "://"))
		return;
	cover(address, &password);
	for (password = password_of_query(address); password.begin;
	     password = password_of_query(password.end))
		cover(address, &password);
}

bool address_has_password(const char *address)
{
	return password_of_user(address).begin ||
	       (strstr(address, "://") && password_of_query(address).begin);
}

bool address_check(const char *address, struct rlmd_error *err)
{
	struct password password = password_of_user(address);

	return !password.begin || password.begin + strcspn(password.begin, "@/") >= password.end ||
	       error_set(err, RLMD_ERROR_USAGE,
			 "the password has '@' or '/' in it: write %%40 and %%2F, or leave the "
			 "password to PGPASSFILE");
}
