/* Whose certificates are believed: over real TLS connections, to a server with its own. */
#include "net/trust.h"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	DAY = 24 * 60 * 60,
};

static char directory[64], ours[128], other[128], hashed[128];
static int port;
static pid_t server;

curl_version_info_data *__real_curl_version_info(CURLversion version);
curl_version_info_data *__wrap_curl_version_info(CURLversion version);

static curl_version_info_data *built; /* NULL: as it is */

curl_version_info_data *__wrap_curl_version_info(CURLversion version)
{
	return built ? built : __real_curl_version_info(version);
}

static void extend(X509 *certificate, int kind, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, kind, value);

	assert_non_null(extension);
	assert_true(X509_add_ext(certificate, extension, -1));
	X509_EXTENSION_free(extension);
}

/* For 127.0.0.1, by itself. */
static X509 *certify(EVP_PKEY *key, const char *owner)
{
	X509 *certificate = X509_new();
	X509_NAME *name = X509_get_subject_name(certificate);

	X509_set_version(certificate, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
	X509_gmtime_adj(X509_getm_notBefore(certificate), -DAY);
	X509_gmtime_adj(X509_getm_notAfter(certificate), DAY);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)owner, -1, -1,
				   0);
	X509_set_issuer_name(certificate, name);
	X509_set_pubkey(certificate, key);
	extend(certificate, NID_basic_constraints, "critical,CA:TRUE");
	extend(certificate, NID_subject_alt_name, "IP:127.0.0.1");
	assert_true(X509_sign(certificate, key, EVP_sha256()));
	return certificate;
}

static void write_certificate(X509 *certificate, const char *path)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(PEM_write_X509(file, certificate));
	fclose(file);
}

static void serve(int listener, SSL_CTX *context)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n"
				     "Content-Length: 2\r\n\r\nok";
	char head[2048];
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		SSL *ssl = SSL_new(context);

		SSL_set_fd(ssl, fd);
		if (SSL_accept(ssl) == 1 && SSL_read(ssl, head, sizeof head) > 0)
			SSL_write(ssl, answer, sizeof answer - 1);
		SSL_shutdown(ssl);
		SSL_free(ssl);
		close(fd);
	}
	_exit(0);
}

static void start_server(EVP_PKEY *key, X509 *certificate)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(SSL_CTX_use_certificate(context, certificate), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	port = ntohs(address.sin_port);
	server = fork();
	if (!server)
		serve(listener, context);
	close(listener);
	SSL_CTX_free(context);
}

/* Files with the server's certificate and with somebody else's; a directory as OpenSSL wants it. */
static int group_setup(void **state)
{
	EVP_PKEY *key = EVP_EC_gen("P-256"), *foreign = EVP_EC_gen("P-256");
	X509 *certificate = certify(key, "ours"), *stranger = certify(foreign, "other");

	(void)state;
	strcpy(directory, "/tmp/rlmd-trust-XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(ours, sizeof ours, "%s/ours.pem", directory);
	snprintf(other, sizeof other, "%s/other.pem", directory);
	snprintf(hashed, sizeof hashed, "%s/%08lx.0", directory,
		 X509_NAME_hash_ex(X509_get_subject_name(certificate), NULL, NULL, NULL));
	write_certificate(certificate, hashed);
	write_certificate(stranger, other);
	start_server(key, certificate);
	X509_free(certificate);
	X509_free(stranger);
	EVP_PKEY_free(key);
	EVP_PKEY_free(foreign);
	return curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int group_teardown(void **state)
{
	(void)state;
	kill(server, SIGKILL);
	unlink(ours);
	unlink(other);
	unlink(hashed);
	curl_global_cleanup();
	return waitpid(server, NULL, 0) != server || rmdir(directory);
}

static int setup(void **state)
{
	(void)state;
	unsetenv("CURL_CA_BUNDLE");
	unsetenv("SSL_CERT_FILE");
	unsetenv("SSL_CERT_DIR");
	if (strncmp(curl_version_info(CURLVERSION_NOW)->ssl_version, "OpenSSL/", 8)) {
		print_message("libcurl's TLS is not OpenSSL's, which reads the files itself\n");
		skip();
	}
	return 0;
}

static void copy_file(const char *from, const char *to)
{
	char bytes[8192];
	FILE *in = fopen(from, "r"), *out = fopen(to, "w");
	size_t size = fread(bytes, 1, sizeof bytes, in);

	assert_int_equal(fwrite(bytes, 1, size, out), size);
	fclose(in);
	fclose(out);
}

static size_t ignore(char *bytes, size_t one, size_t size, void *owner)
{
	(void)bytes, (void)one, (void)owner;
	return size;
}

/* A new connection, whose handle is one of `multi`. */
static CURLcode ask(CURLM *multi)
{
	CURL *easy = curl_easy_init();
	const CURLMsg *message;
	char url[64];
	CURLcode code;
	int left;

	snprintf(url, sizeof url, "https://127.0.0.1:%d/", port);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
	trust_apply(easy);
	curl_multi_add_handle(multi, easy);
	do
		curl_multi_poll(multi, NULL, 0, 10, NULL);
	while (!curl_multi_perform(multi, &left) && left);
	message = curl_multi_info_read(multi, &left);
	assert_non_null(message);
	code = message->data.result;
	curl_multi_remove_handle(multi, easy);
	curl_easy_cleanup(easy);
	return code;
}

static CURLcode ask_once(void)
{
	CURLM *multi = curl_multi_init();
	CURLcode code = ask(multi);

	curl_multi_cleanup(multi);
	return code;
}

/* Each variable names a file; CURL_CA_BUNDLE comes first. Who is not in it is not believed. */
static void test_files(void **state)
{
	static const char *const variables[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE"};

	(void)state;
	copy_file(hashed, ours);
	for (size_t i = 0; i < 2; i++) {
		setenv(variables[i], other, 1);
		assert_int_equal(ask_once(), CURLE_PEER_FAILED_VERIFICATION);
		setenv(variables[i], ours, 1);
		assert_int_equal(ask_once(), CURLE_OK);
	}
	setenv("SSL_CERT_FILE", other, 1);
	assert_int_equal(ask_once(), CURLE_OK);
	setenv("CURL_CA_BUNDLE", "", 1);
	assert_int_equal(ask_once(), CURLE_PEER_FAILED_VERIFICATION);
}

static void test_directory(void **state)
{
	(void)state;
	setenv("SSL_CERT_FILE", other, 1);
	setenv("SSL_CERT_DIR", directory, 1);
	assert_int_equal(ask_once(), CURLE_OK);
}

/* A file that is missing or has no certificate is said to be that. */
static void test_unreadable(void **state)
{
	static const char *const paths[] = {"/nowhere/at/all.pem", "/dev/null"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		setenv("SSL_CERT_FILE", paths[i], 1);
		assert_int_equal(ask_once(), CURLE_SSL_CACERT_BADFILE);
	}
}

/* Certificates that were read are believed (for a day, by libcurl's clock): until then no
 * connection needs the file, also where there is a directory. What could not be read is looked at
 * again. */
static void test_read_once(void **state)
{
	CURLM *multi;

	(void)state;
	if (curl_version_info(CURLVERSION_NOW)->version_num < 0x075700)
		skip(); /* it reads the files for each connection */
	for (int i = 0; i < 2; i++) {
		multi = curl_multi_init();
		unlink(ours);
		setenv("SSL_CERT_FILE", ours, 1);
		if (i)
			setenv("SSL_CERT_DIR", "/nowhere", 1);
		assert_int_equal(ask(multi), CURLE_SSL_CACERT_BADFILE);
		copy_file(hashed, ours);
		assert_int_equal(ask(multi), CURLE_OK);
		unlink(ours);
		assert_int_equal(ask(multi), CURLE_OK);
		assert_int_equal(ask_once(), CURLE_SSL_CACERT_BADFILE);
		curl_multi_cleanup(multi);
	}
}

/* A libcurl that was built on another system, whose file is not here. */
static void test_another_systems(void **state)
{
	static curl_version_info_data elsewhere;

	(void)state;
	elsewhere = *__real_curl_version_info(CURLVERSION_NOW);
	elsewhere.cainfo = (char[]){"/nowhere.pem"};
	elsewhere.capath = NULL;
	built = &elsewhere;
	assert_int_equal(access("/etc/ssl/certs/ca-certificates.crt", R_OK), 0);
	assert_int_equal(ask_once(), CURLE_PEER_FAILED_VERIFICATION); /* read, and not in it */
	built = NULL;
}

static void test_names(void **state)
{
	char name[64], small[8];

	(void)state;
	trust_name(name, sizeof name);
	assert_string_equal(name, "the system's");
	setenv("SSL_CERT_FILE", "/a/\x1b[2J.pem", 1);
	trust_name(name, sizeof name);
	assert_string_equal(name, "SSL_CERT_FILE=/a/\\x1b[2J.pem");
	setenv("CURL_CA_BUNDLE", "/b.pem", 1);
	trust_name(name, sizeof name);
	assert_string_equal(name, "CURL_CA_BUNDLE=/b.pem");
	trust_name(small, sizeof small);
	assert_string_equal(small, "CURL_CA");
}

#define TEST(test) cmocka_unit_test_setup(test, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_files),     TEST(test_directory),       TEST(test_unreadable),
		TEST(test_read_once), TEST(test_another_systems), TEST(test_names),
	};

	return cmocka_run_group_tests_name("trust", tests, group_setup, group_teardown);
}
