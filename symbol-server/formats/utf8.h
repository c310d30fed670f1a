/* SPDX-License-Identifier: Apache-2.0 */
/* Names are strangers' bytes: where a text has to be UTF-8, this says how far it is. */
#ifndef SYMBOL_SERVER_FORMATS_UTF8_H
#define SYMBOL_SERVER_FORMATS_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Length of the well-formed character that begins here (Unicode 15, table 3-7); 0: none does. The
 * text ends with NUL. */
size_t utf8_length(const unsigned char *text);
/* The same for a character that may be shown: not one of the controls beyond ASCII (U+0080 to
 * U+009F, which some terminals obey) or of those that turn the order of what follows. *step: how
 * far on the next one is, after 0 too. */
size_t utf8_shown(const unsigned char *text, size_t *step);
/* Its number; length as utf8_length() said. */
uint32_t utf8_point(const unsigned char *text, size_t length);

#endif
