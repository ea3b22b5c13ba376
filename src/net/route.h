/*
 * net/route.h - the way to a server, as the environment has it: a proxy.
 *
 * libcurl reads the variables of proxies itself, and decides by no_proxy. These functions are for
 * messages: who is at the other end of a connection that failed.
 */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>

enum { ROUTE_NAME_SIZE = 300 };

struct route {
	char origin[ROUTE_NAME_SIZE]; /* "http://127.0.0.1:11434": no password that a URL holds */
	char proxy[ROUTE_NAME_SIZE];  /* likewise, of URLs with this scheme; "": none */
	const char *variable;         /* static: the one that names the proxy, or NULL */
	long port, proxy_port;
};

void route_init(struct route *, const char *url);

/* Whether a connection to this port goes to the proxy, and not by it to the server itself. */
bool route_is_proxied(const struct route *, long port);

/* "https://host:port" of a URL of http or https, new; NULL where it is none. */
char *route_origin(const char *url);
