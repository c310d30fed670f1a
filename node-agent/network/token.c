/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/network/token.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_dev == b->st_dev &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool take_text(struct token *token, char *text, struct error *err)
{
	size_t length = strcspn(text, "\r\n");

	while (length && isblank((unsigned char)text[length - 1]))
		length--;
	for (size_t i = 0; i < length; i++)
		if (!isgraph((unsigned char)text[i]))
			return error_set(err, ERROR_FORMAT, "'%s' holds more than one word",
					 token->path);
	if (!length)
		return error_set(err, ERROR_FORMAT, "'%s' is empty", token->path);
	memcpy(token->text, text, length);
	token->text[length] = '\0';
	return true;
}

bool token_refresh(struct token *token, struct error *err)
{
	char text[TOKEN_MAX + 2];
	struct stat now;
	ssize_t length;
	int fd;
	bool ok = false;

	if (!token->path || (!stat(token->path, &now) && is_unchanged(&now, &token->seen)))
		return true;
	fd = open(token->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return error_set_system(err, errno, "open '%s'", token->path);
	length = read(fd, text, sizeof text - 1);
	if (length < 0 || fstat(fd, &now) < 0) {
		error_set_system(err, errno, "read '%s'", token->path);
		goto out;
	}
	if (length > TOKEN_MAX) {
		error_set(err, ERROR_LIMIT, "'%s' is longer than %d bytes", token->path, TOKEN_MAX);
		goto out;
	}
	text[length] = '\0';
	token->seen = now;
	ok = take_text(token, text, err);
out:
	close(fd);
	return ok;
}

const char *token_text(const struct token *token)
{
	return token->path && *token->text ? token->text : NULL;
}
