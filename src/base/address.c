#include "base/address.h"

#include <string.h>

/* Where a password stands; NULL: nowhere. */
struct place {
	const char *begin, *end;
};

/* Between the first colon behind the scheme and the last '@' before the query. */
static struct place of_user(const char *address)
{
	const char *host = strstr(address, "://");
	struct place place = {0};
	const char *query;

	if (!host)
		return place;
	host += strlen("://");
	query = host + strcspn(host, "?");
	for (const char *at = host; at < query; at++)
		if (*at == '@')
			place.end = at;
	place.begin = place.end ? memchr(host, ':', (size_t)(place.end - host)) : NULL;
	if (place.begin)
		place.begin++;
	return place;
}

/* The next of the query, from `rest` on. */
static struct place of_query(const char *rest)
{
	static const char *const names[] = {"password=", "sslpassword="};

	for (; (rest = strpbrk(rest, "?&")); rest++)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (!strncmp(rest + 1, names[i], strlen(names[i]))) {
				const char *begin = rest + 1 + strlen(names[i]);

				return (struct place){begin, begin + strcspn(begin, "&")};
			}
	return (struct place){0};
}

static void cover(char *address, const struct place *place)
{
	if (place->begin)
		memset(address + (place->begin - address), '*',
		       (size_t)(place->end - place->begin));
}

void address_hide(char *address)
{
	struct place place = of_user(address);

	if (!strstr(address, "://"))
		return;
	cover(address, &place);
	for (place = of_query(address); place.begin; place = of_query(place.end))
		cover(address, &place);
}

bool address_has_password(const char *address)
{
	return of_user(address).begin || (strstr(address, "://") && of_query(address).begin);
}

bool address_check(const char *address, struct rlmd_error *err)
{
	struct place place = of_user(address);

	return !place.begin || place.begin + strcspn(place.begin, "@/") >= place.end ||
	       error_set(err, RLMD_ERROR_USAGE,
			 "the password has '@' or '/' in it: write %%40 and %%2F, or leave the "
			 "password to PGPASSFILE");
}
