/* SPDX-License-Identifier: Apache-2.0 */
/* https against openssl's own server, with certificates made by openssl. */
#include "tests/check.h"

#include <signal.h>
#include <sys/wait.h>

#include "node-agent/network/http_client.h"
#include "tests/unit/ship/scripted_server.h"

static char directory[] = "/tmp/farflame_tls_XXXXXX";

static const char make[] = "cd '%s' && openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem "
			   "-out cert.pem -days 2 "
			   "-subj /CN=localhost -addext subjectAltName=%s >/dev/null 2>&1";

static bool make_certificate(const char *names)
{
	char text[512];

	snprintf(text, sizeof text, make, directory, names);
	return system(text) == 0;
}

static uint16_t free_port(void)
{
	struct scripted_server other = {0};

	server_start(&other, 0);
	server_stop(&other);
	return other.port;
}

static bool is_listening(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool ok = !connect(fd, (struct sockaddr *)&address, sizeof address);

	close(fd);
	return ok;
}

/* s_server -HTTP answers with files of its directory; the answer file is a whole HTTP answer. */
static pid_t start_openssl(uint16_t port)
{
	char text[16];
	pid_t pid;

	snprintf(text, sizeof text, "%u", port);
	pid = fork();
	if (!pid) {
		if (chdir(directory) || !freopen("/dev/null", "w", stdout) ||
		    !freopen("/dev/null", "w", stderr))
			_exit(1);
		execlp("openssl", "openssl", "s_server", "-quiet", "-HTTP", "-accept", text,
		       "-cert", "cert.pem", "-key", "key.pem", (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 100 && !is_listening(port); i++)
		usleep(50000);
	return pid;
}

/* One request with these certificates; the error's text, "" when answered. */
static const char *ask(const char *address, const char *ca_file, int *status)
{
	static struct error err;
	struct http_client_options options = {.timeout_ms = 5000, .interrupt_fd = -1};
	struct http_request request = {
		.method = "GET", .path = "/answer", .content_type = "text/plain"};
	struct http_answer answer;
	struct http_client *client;
	struct url url;

	err = (struct error){0};
	*status = 0;
	if (!url_parse(address, &url, &err))
		return err.message;
	options.url = &url;
	options.tls = tls_context_new(ca_file, &err);
	if (!options.tls)
		return err.message;
	client = http_client_new(&options, &err);
	if (http_client_send(client, &request, &answer, &err)) {
		*status = answer.status;
		err.message[0] = '\0';
	}
	http_answer_release(&answer);
	http_client_free(client);
	tls_context_free(options.tls);
	return err.message;
}

static void check_against(const char *names, const char *host, bool is_trusted, const char *want)
{
	char address[64], ca_file[64];
	uint16_t port = free_port();
	int status;
	pid_t pid;
	const char *said;

	CHECK(make_certificate(names));
	snprintf(ca_file, sizeof ca_file, "%s/cert.pem", directory);
	snprintf(address, sizeof address, "https://%s:%u", host, port);
	pid = start_openssl(port);
	said = ask(address, is_trusted ? ca_file : NULL, &status);
	if (*want) {
		if (!CHECK(strstr(said, want)))
			printf("# %s\n", said);
		CHECK_NUMBER(status, 0);
	} else {
		CHECK_TEXT(said, "");
		CHECK_NUMBER(status, 203);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void check_plain_server(void)
{
	char address[64];
	struct scripted_server plain = {0};
	int status;
	const char *said;

	server_start(&plain, 0); /* nobody speaks TLS: its function is never reached */
	snprintf(address, sizeof address, "https://127.0.0.1:%u", plain.port);
	plain.answer = NULL;
	plain.raw = NULL;
	shutdown(plain.listener, SHUT_RDWR);
	said = ask(address, NULL, &status);
	CHECK(*said && !status);
	server_stop(&plain);
}

int main(void)
{
	char path[64];
	FILE *file;

	signal(SIGPIPE, SIG_IGN);
	if (system("openssl version >/dev/null 2>&1") || !mkdtemp(directory)) {
		SKIP("the openssl command is needed");
		return checks_done();
	}
	snprintf(path, sizeof path, "%s/answer", directory);
	file = fopen(path, "w");
	fputs("HTTP/1.1 203 Fine\r\nContent-Length: 2\r\n\r\nok", file);
	fclose(file);
	check_against("DNS:localhost", "localhost", true, "");
	check_against("IP:127.0.0.1", "127.0.0.1", true, "");
	check_against("DNS:localhost", "localhost", false, "is not trusted: self");
	check_against("DNS:elsewhere", "localhost", true, "is not trusted: hostname mismatch");
	check_against("DNS:localhost", "127.0.0.1", true, "is not trusted: IP address mismatch");
	check_plain_server();
	snprintf(path, sizeof path, "rm -r '%s'", directory);
	CHECK(!system(path));
	return checks_done();
}
