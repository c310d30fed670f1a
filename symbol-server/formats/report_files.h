/* SPDX-License-Identifier: Apache-2.0 */
/* Files inside the program for format=svg and html (report_files.S), built from web/report/. Each
 * ends with NUL. */
#ifndef SYMBOL_SERVER_FORMATS_REPORT_FILES_H
#define SYMBOL_SERVER_FORMATS_REPORT_FILES_H

extern const char report_svg_script[];
extern const char report_page[]; /* holds REPORT_PAGE_DATA once */
/* SHA-256 in base64, as a content policy has it, of the script and of the page's script. */
extern const char report_svg_script_hash[], report_page_script_hash[];

#define REPORT_PAGE_DATA "@profile@"

#endif
