/*
 * net/curl_check.h - results of libcurl's, which may say that it found no memory.
 *
 * A request that lacks a header, or a transfer that nobody waits for, would be all that is seen
 * of it. So the process ends, as for memory of our own; other results are handed on.
 */
#pragma once

#include <curl/curl.h>

#include "base/alloc.h"

static inline CURLcode curl_check(CURLcode result)
{
	if (result == CURLE_OUT_OF_MEMORY)
		alloc_failed();
	return result;
}

static inline CURLUcode curl_check_url(CURLUcode result)
{
	if (result == CURLUE_OUT_OF_MEMORY)
		alloc_failed();
	return result;
}

static inline CURLMcode curl_check_multi(CURLMcode result)
{
	if (result == CURLM_OUT_OF_MEMORY || result == CURLM_INTERNAL_ERROR)
		alloc_failed();
	return result;
}

#define curl_set(curl, option, value) curl_check(curl_easy_setopt(curl, option, value))
