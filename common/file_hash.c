/* SPDX-License-Identifier: Apache-2.0 */
#include "common/file_hash.h"

#include <errno.h>
#include <nettle/sha2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HASHED_END = 4096 };

/* A file that shrinks meanwhile would give a hash of nothing that ever existed: an error instead.
 */
static bool hash_range(int fd, struct sha256_ctx *sha, uint64_t offset, size_t length,
		       struct error *err)
{
	uint8_t bytes[HASHED_END];
	size_t done = 0;

	while (done < length) {
		ssize_t got = pread(fd, bytes + done, length - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set_system(err, errno, "read the file to hash it");
		if (got == 0)
			return error_set(err, ERROR_FORMAT, "the file shrank while it was hashed");
		done += (size_t)got;
	}
	sha256_update(sha, length, bytes);
	return true;
}

bool file_hash(int fd, struct build_id *id, struct error *err)
{
	uint8_t size[8], digest[FILE_HASH_BYTES];
	struct sha256_ctx sha;
	struct stat st;
	uint64_t length;
	size_t end;

	if (fstat(fd, &st))
		return error_set_system(err, errno, "ask for the file's length");
	length = (uint64_t)st.st_size;
	end = length < HASHED_END ? (size_t)length : HASHED_END;

	sha256_init(&sha);
	if (!hash_range(fd, &sha, 0, end, err) || !hash_range(fd, &sha, length - end, end, err))
		return false;
	for (int i = 0; i < 8; i++)
		size[i] = (uint8_t)(length >> (56 - 8 * i));
	sha256_update(&sha, sizeof(size), size);
	sha256_digest(&sha, sizeof(digest), digest);
	return build_id_set(id, digest, sizeof(digest));
}
