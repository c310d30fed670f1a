/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/network/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tls_context {
	SSL_CTX *ssl;
};

struct tls {
	SSL *ssl;
	int fd;
};

/* OpenSSL is linked statically and looks where Debian keeps certificates; other distributions have
 * them here. */
static const char *const other_bundles[] = {
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
};

/* What OpenSSL has to say, which is often nothing. */
static bool openssl_error(struct error *err, const char *doing)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	return error_set(err, ERROR_REMOTE, "%s: %s", doing, reason ? reason : "TLS failed");
}

static bool load_system_certificates(SSL_CTX *ssl)
{
	SSL_CTX_set_default_verify_paths(ssl);
	for (size_t i = 0; i < sizeof other_bundles / sizeof *other_bundles; i++)
		if (!access(other_bundles[i], R_OK))
			SSL_CTX_load_verify_locations(ssl, other_bundles[i], NULL);
	ERR_clear_error();
	return true;
}

struct tls_context *tls_context_new(const char *ca_file, struct error *err)
{
	struct tls_context *context = calloc(1, sizeof *context);

	if (!context || !(context->ssl = SSL_CTX_new(TLS_client_method()))) {
		error_set(err, ERROR_MEMORY, "no memory for TLS");
		goto fail;
	}
	SSL_CTX_set_min_proto_version(context->ssl, TLS1_2_VERSION);
	SSL_CTX_set_verify(context->ssl, SSL_VERIFY_PEER, NULL);
	/* Writing resumes with other addresses of the same bytes; buffers of idle connections go.
	 */
	SSL_CTX_set_mode(context->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE |
					       SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					       SSL_MODE_RELEASE_BUFFERS);
	/* A server that goes away without close_notify is an end like any other; lengths tell
	 * whether the answer was whole. */
	SSL_CTX_set_options(context->ssl, SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_session_cache_mode(context->ssl, SSL_SESS_CACHE_OFF);
	if (!ca_file) {
		load_system_certificates(context->ssl);
		return context;
	}
	if (SSL_CTX_load_verify_locations(context->ssl, ca_file, NULL) == 1)
		return context;
	ERR_clear_error();
	error_set(err, ERROR_OPTION, "'%s' holds no PEM certificates that can be read", ca_file);
fail:
	tls_context_free(context);
	return NULL;
}

void tls_context_free(struct tls_context *context)
{
	if (!context)
		return;
	SSL_CTX_free(context->ssl);
	free(context);
}

static bool set_host(SSL *ssl, const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set_tlsext_host_name(ssl, host) == 1 && SSL_set1_host(ssl, host) == 1;
}

/* After a call returned result ≤ 0: waits for what it wants. False: it failed for good. */
static bool wait_wanted(struct tls *tls, int result, const struct wait_limits *limits,
			const char *doing, struct error *err)
{
	int system_error = errno;

	switch (SSL_get_error(tls->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		return wait_for_descriptor(tls->fd, POLLIN, limits, doing, err);
	case SSL_ERROR_WANT_WRITE:
		return wait_for_descriptor(tls->fd, POLLOUT, limits, doing, err);
	case SSL_ERROR_SYSCALL:
		ERR_clear_error();
		if (system_error)
			return error_set_system(err, system_error, "%s", doing);
		return error_set(err, ERROR_REMOTE, "%s: the server closed the connection", doing);
	default:
		return openssl_error(err, doing);
	}
}

static bool handshake(struct tls *tls, const char *host, const struct wait_limits *limits,
		      struct error *err)
{
	int result;

	while (errno = 0, (result = SSL_connect(tls->ssl)) != 1) {
		long verdict = SSL_get_verify_result(tls->ssl);

		if (verdict != X509_V_OK) {
			ERR_clear_error();
			return error_set(err, ERROR_REMOTE,
					 "the certificate of '%s' is not trusted: %s", host,
					 X509_verify_cert_error_string(verdict));
		}
		if (!wait_wanted(tls, result, limits, "TLS handshake", err))
			return false;
	}
	return true;
}

struct tls *tls_open(struct tls_context *context, int fd, const char *host,
		     const struct wait_limits *limits, struct error *err)
{
	struct tls *tls = calloc(1, sizeof *tls);

	if (!tls || !(tls->ssl = SSL_new(context->ssl)) || SSL_set_fd(tls->ssl, fd) != 1) {
		error_set(err, ERROR_MEMORY, "no memory for TLS");
		goto fail;
	}
	tls->fd = fd;
	if (!set_host(tls->ssl, host)) {
		openssl_error(err, "set the host name");
		goto fail;
	}
	if (handshake(tls, host, limits, err))
		return tls;
fail:
	if (tls)
		SSL_free(tls->ssl);
	free(tls);
	return NULL;
}

bool tls_write(struct tls *tls, const void *bytes, size_t length, const struct wait_limits *limits,
	       struct error *err)
{
	const char *at = bytes;

	while (length) {
		size_t written;
		int result;

		errno = 0;
		result = SSL_write_ex(tls->ssl, at, length, &written);
		if (result == 1) {
			at += written;
			length -= written;
		} else if (!wait_wanted(tls, result, limits, "sending", err)) {
			return false;
		}
	}
	return true;
}

bool tls_read(struct tls *tls, void *bytes, size_t room, size_t *got,
	      const struct wait_limits *limits, struct error *err)
{
	for (;;) {
		int result;

		errno = 0;
		result = SSL_read_ex(tls->ssl, bytes, room, got);
		if (result == 1)
			return true;
		if (SSL_get_error(tls->ssl, result) == SSL_ERROR_ZERO_RETURN) {
			*got = 0;
			return true;
		}
		if (!wait_wanted(tls, result, limits, "waiting for the answer", err))
			return false;
	}
}

void tls_close(struct tls *tls)
{
	if (!tls)
		return;
	/* One try, without waiting: lets the server tell an end from a cut. */
	SSL_shutdown(tls->ssl);
	ERR_clear_error();
	SSL_free(tls->ssl);
	free(tls);
}
